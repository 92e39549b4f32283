"""build_report: folders → OUT/report.html, OUT/figures and OUT/tables."""

from __future__ import annotations

import html
import shlex
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import optimist
from optimist.errors import RunFolderError
from optimist.report import score_charts, score_tables, training_charts
from optimist.report.atari_section import atari_parts
from optimist.report.charts import Chart
from optimist.report.figures import require_matplotlib
from optimist.report.identify import ATARI, CAGE2
from optimist.report.missing import callout, missing_section, of_kind
from optimist.report.page import TITLE, Section, paragraph, render, tiles
from optimist.report.rows import collect
from optimist.report.run_pages import run_page, runs_table
from optimist.report.runs import count_seeds
from optimist.report.scores import STATISTICS, Statistic, Unlike, counted, short_steps
from optimist.report.study import Study
from optimist.report.tables import Cell, Head, Table
from optimist.report.training_charts import slug
from optimist.tracking.atomic import disk_errors, write_text

PAGE = "report.html"
PARTS = {"figures": (".svg", ".png"), "tables": (".md", ".csv", ".tex")}
Part = Table | Chart | str


def build_report(
    folders: Sequence[Path],
    out: Path,
    *,
    title: str = TITLE,
    statistic: Statistic = "last-100",
    unlike: Unlike = "separate",
    published: bool = False,
) -> Path:
    """Writes the report, returns the page's path; `published` unfolds the paper's tables, even without Atari runs."""
    require_matplotlib()
    _check_out(out)
    runs, problems = collect(folders)
    if not runs and not published:
        detail = f"; {problems[0].where}: {problems[0].what}" if problems else ""
        raise RunFolderError(f"no run below {', '.join(map(str, folders))}{detail}")
    study = Study(runs, problems, statistic, unlike)
    study.check()
    _clear(out)
    sections = [Section("overview", "Overview", _overview(study))]
    families = [ATARI] if published and ATARI not in study.families() else []
    for family in [*families, *study.families()]:
        parts = [*(atari_parts(study, published=published) if family == ATARI else ()), *_family_parts(study, family)]
        sections.append(Section(slug(family), family, "".join(_written(part, out) for part in parts)))
    sections += _run_sections(study, out)
    sections.append(Section("reading", "How to read this", _reading(study)))
    command = _command(folders, out, title, statistic, unlike, published=published)
    page = render(title, _lead(study), sections, _footer(command))
    with disk_errors(out):
        write_text(out / PAGE, page)
    return out / PAGE


def _check_out(out: Path) -> None:
    """A report may be written over a report, and into nothing else that is there."""
    if out.exists() and not out.is_dir():
        raise RunFolderError(f"{out} is a file; a report needs a folder")
    if out.exists() and not (out / PAGE).exists() and {path.name for path in out.iterdir()} - set(PARTS):
        raise RunFolderError(f"{out} is not empty and holds no report; choose another -o")


def _clear(out: Path) -> None:
    """Folders for the parts, without those of an older report."""
    with disk_errors(out):
        for folder, suffixes in PARTS.items():
            (out / folder).mkdir(parents=True, exist_ok=True)
            for path in (out / folder).iterdir():
                if path.suffix in suffixes:
                    path.unlink()


def _written(part: Part, out: Path) -> str:
    """The part as HTML; tables and charts also as files."""
    if isinstance(part, str):
        return part
    with disk_errors(out):
        part.save(out / ("tables" if isinstance(part, Table) else "figures"))
    return part.html()


def _family_parts(study: Study, family: str) -> Iterator[Part]:
    for part in (
        score_tables.scores_table(study, family, study.statistic),
        score_tables.conversion_table(study, family),
    ):
        if part is not None:
            yield part
    others = [score_tables.scores_table(study, family, other) for other in STATISTICS if other != study.statistic]
    found = [table for table in others if table is not None]
    if found:
        yield "<details><summary>The same runs under other statistics</summary>"
        yield from found
        yield "</details>"
    charts = (
        score_charts.seeds(study, family),
        training_charts.cage_zoom(study) if family == CAGE2 else training_charts.learning(study, family),
        training_charts.entropy(study, family),
        training_charts.memory(study, family),
        score_charts.ablations(study, family),
    )
    yield from (chart for chart in charts if chart is not None)


def _run_sections(study: Study, out: Path) -> list[Section]:
    table = _written(runs_table(study.runs), out) if study.runs else ""
    pages = [run_page(run, at) for at, run in enumerate(study.runs) if run.source == "run folder"]
    rest = len(study.runs) - len(pages)
    row = "which hold no more than a row of the table"
    note = paragraph(f"Without a page of their own: {counted(rest, 'run')} from results files, {row}.") if rest else ""
    return [
        Section(
            "runs-all", "Runs", f"<details><summary>Table of all runs</summary>{table}</details>{note}{''.join(pages)}"
        ),
        Section("missing", "What is missing", missing_section(study.problems)),
    ]


def _lead(study: Study) -> str:
    finished = [run for run in study.runs if run.finished]
    facts = [
        ("finished runs", str(len(finished))),
        ("unfinished", str(len(of_kind(study.problems, "unfinished")))),
        ("methods", str(len({run.method for run in study.runs}))),
        ("environments", str(len({(run.identity.family, run.env) for run in study.runs}))),
        ("steps in all", short_steps(sum(run.steps for run in study.runs))),
        ("statistic", study.statistic),
    ]
    words = paragraph(f"Scores are {study.statistic}: {STATISTICS[study.statistic]}. Intervals are 95 %.")
    words += callout(study.problems)
    return words + tiles(facts)


def _overview(study: Study) -> str:
    """Which methods met which environments, with how many seeds."""
    groups: dict[tuple[str, str], list[str]] = {}
    for family in study.families():
        for env in study.envs(family):
            here = [run for run in study.of(family) if run.env == env]
            methods = dict.fromkeys(run.method for run in here)
            words = [
                f"{name} ({count_seeds(run for run in here if run.method == name and run.finished)})"
                for name in methods
            ]
            groups.setdefault((family, "; ".join(words)), []).append(env)
    rows = [
        [Cell(f"{len(envs)} games: {', '.join(envs)}" if len(envs) > 3 else "; ".join(envs)), Cell(family), Cell(words)]
        for (family, words), envs in groups.items()
    ]
    if not rows:
        return paragraph("No runs were given: published numbers only.")
    heads = [Head("environment", numeric=False), Head("family", numeric=False), Head("methods", numeric=False)]
    return Table(
        "overview", "What was run.", heads, rows, "In brackets: seeds of each method with a finished run."
    ).html()


def _reading(study: Study) -> str:
    mixed = "One or more columns, marked *, mix budgets, sticky actions or statistics, as was asked for."
    words = [
        "last-100 is what training itself saw; final is the last policy on fresh episodes; best-epoch is the highest "
        "of many evaluations. The last is a maximum: it grows with the number of evaluations and with their noise, and "
        "no policy need be that good. It is here to be compared with sources that report it, and with nothing else.",
        "A column holds scores of one statistic, one sticky-action probability and one budget. "
        + (mixed if study.unlike == "mix" else "Others stand in columns of their own, named by what differs."),
        "Small samples: an interval over two or three seeds is wide because little is known. Intervals that overlap do "
        "not show that two methods are equal, and a missing interval means a single run.",
        "Aggregates: IQM is the mean of the middle half of all runs of all games; the median looks at one game only, "
        "the mean at outliers; the optimality gap says how far runs stay below a human. Intervals come from redrawing "
        "runs within each game (stratified bootstrap), so they speak of other seeds, not of other games.",
        "Human-normalised scores use the random and human scores of DQN Zoo; its random score of VideoPinball, "
        "16,256.9, is 0.0 in other collections, which changes that game by an order of magnitude.",
    ]
    return "".join(paragraph(text) for text in words)


def _command(
    folders: Sequence[Path], out: Path, title: str, statistic: Statistic, unlike: Unlike, *, published: bool
) -> str:
    """What a shell takes to make this page again, from the same folder."""
    words = ["optimist", "report", *map(str, folders), "-o", str(out)]
    words += ["--title", title] if title != TITLE else []
    words += ["--statistic", statistic] if statistic != "last-100" else []
    words += ["--unlike", unlike] if unlike != "separate" else []
    words += ["--published"] if published else []
    return shlex.join(words)


def _footer(command: str) -> str:
    """The version, the time, and the command that makes the page again."""
    now = datetime.now(UTC)
    return f"<p>optimist {optimist.__version__}, {now:%Y-%m-%d %H:%M} UTC. <code>{html.escape(command)}</code></p>"
