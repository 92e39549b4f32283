"""build_report: folders → OUT/report.html, OUT/figures and OUT/tables."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from urllib.parse import quote

import optimist
from optimist.errors import ConfigError, RunFolderError
from optimist.report import TITLE, comparison, training_charts
from optimist.report.atari import atari_parts
from optimist.report.charts import require_matplotlib
from optimist.report.formatting import counted, short_steps
from optimist.report.identify import ATARI, CAGE2
from optimist.report.page import Details, Part, Section, render_page, save_parts
from optimist.report.rows import collect
from optimist.report.run_pages import run_page, runs_table
from optimist.report.runs import CONFIG, METRICS, STATISTICS, SUMMARY, Run, Statistic, count_seeds
from optimist.report.study import Family, Study, Unlike
from optimist.report.tables import Cell, Head, Table
from optimist.tracking.files import disk_errors, write_text

PAGE = "report.html"
MANY_METHODS = 6
"""The overview counts more methods than this, and names fewer."""
FILES = {"figures": (".svg", ".png", ".pdf"), "tables": (".md", ".csv", ".tex")}


def build_report(
    folders: Sequence[Path],
    out: Path,
    *,
    title: str = TITLE,
    statistic: Statistic = "last-100",
    unlike: Unlike = "separate",
    published: bool = False,
    methods: Sequence[str] = (),
    command: str = "",
) -> Path:
    """Write the report and return the page's path.

    `published` opens the paper's tables, even without Atari runs; `methods` are those of CAGE 2's figure; `command` is
    shown at the end of the page.
    """
    require_matplotlib()
    _check_out(out)
    runs, problems = collect(folders)
    if not runs and not published:
        detail = f"; {problems[0].where}: {problems[0].what}" if problems else ""
        raise RunFolderError(f"no run below {', '.join(map(str, folders))}{detail}")
    study = Study(runs, problems, statistic, unlike)
    study.check()
    if methods and CAGE2 not in {family.name for family in study.families}:
        raise ConfigError(
            "--methods chooses the methods of CAGE 2's figure, and there are no runs on CAGE 2; leave it out"
        )
    sections = [Section("overview", "Overview", [_overview(study)])]
    families = study.families
    if published and ATARI not in {family.name for family in families}:
        families = [study.family(ATARI), *families]
    for family in families:
        parts = list(atari_parts(family, published=published)) if family.name == ATARI else []
        sections.append(Section(family.slug, family.name, [*parts, *_family_parts(family, methods)]))
    sections.append(Section("runs-all", "Runs", list(_run_parts(study, out))))
    page = render_page(
        title, sections, problems, study=study, meaning=STATISTICS[statistic], facts=_facts(study),
        href=partial(_href, out=out), version=optimist.__version__,
        time=f"{datetime.now(UTC):%Y-%m-%d %H:%M}", command=command,
    )  # fmt: skip
    with disk_errors(out):
        _clear(out)
        for section in sections:
            save_parts(section.parts, out)
        write_text(out / PAGE, page)
    return out / PAGE


def _check_out(out: Path) -> None:
    """Only an earlier report may be overwritten."""
    if out.exists() and not out.is_dir():
        raise RunFolderError(f"{out} is a file; a report needs a folder")
    for path in (out, *(out / folder for folder in FILES)):
        if path.is_symlink():
            raise RunFolderError(f"{path} is a link; a report writes and clears folders of its own, choose another -o")
    if out.exists() and not (out / PAGE).exists() and {path.name for path in out.iterdir()} - set(FILES):
        raise RunFolderError(f"{out} is not empty and holds no report; choose another -o")


def _clear(out: Path) -> None:
    """Make the folders for figures and tables, and remove those of an earlier report."""
    for folder, suffixes in FILES.items():
        (out / folder).mkdir(parents=True, exist_ok=True)
        for path in (out / folder).iterdir():
            if path.suffix in suffixes:
                path.unlink()


def _family_parts(family: Family, methods: Sequence[str]) -> Iterator[Part]:
    others = [comparison.scores_table(family, other) for other in STATISTICS if other != family.statistic]
    folded = [table for table in others if table is not None]
    parts: tuple[Part | None, ...] = (
        comparison.scores_table(family, family.statistic),
        comparison.goals_table(family),
        Details("The same runs under other statistics", folded) if folded else None,
        comparison.goals_chart(family),
        comparison.seeds_chart(family),
        training_charts.cage_zoom(family, methods) if family.name == CAGE2 else training_charts.learning(family),
        training_charts.entropy(family),
        training_charts.memory(family),
        comparison.ablations_chart(family),
    )
    yield from (part for part in parts if part is not None)


def _run_parts(study: Study, out: Path) -> Iterator[Part]:
    brief = {id(run): family.brief(run.env, family.labels.get(id(run), run.method))
             for family in study.families for run in family.runs}  # fmt: skip
    links = {id(run): f"#run-{at}" if run.config else _href(run.path, out) for at, run in enumerate(study.runs)}
    yield Details("Table of all runs", [runs_table(study.runs, brief, links)] if study.runs else [])
    pages = [run_page(run, at, _files(run, out)) for at, run in enumerate(study.runs) if run.config]
    rest = len(study.runs) - len(pages)
    if rest:
        yield f"Without details: {counted(rest, 'run')} from results files, which hold only a row of the table."
    yield from pages


def _files(run: Run, out: Path) -> dict[str, str]:
    """The run's folder and the files in it, with where they link to."""
    if run.path is None:
        return {}
    found = [run.path / name for name in (CONFIG, METRICS, SUMMARY)]
    return {"folder": _href(run.path, out)} | {path.name: _href(path, out) for path in found if path.exists()}


def _href(path: Path | None, out: Path) -> str:
    """The address of a file, relative to the page."""
    return "" if path is None else quote(Path(os.path.relpath(path, out)).as_posix())


def _facts(study: Study) -> dict[str, str]:
    finished = sum(run.finished for run in study.runs)
    unfinished = sum(problem.kind == "unfinished" for problem in study.problems)
    return {
        "finished runs": str(finished),
        "unfinished": str(unfinished),
        "methods": str(len({run.method for run in study.runs})),
        "environments": str(len({(run.identity.family, run.env) for run in study.runs})),
        "steps in total": short_steps(sum(run.steps for run in study.runs)),
        "statistic": study.statistic,
    }


def _span(counts: Collection[int]) -> str:
    """`2 to 10 seeds`."""
    least, most = min(counts), max(counts)
    return counted(most, "seed") if least == most else f"{least} to {most} seeds"


def _overview(study: Study) -> Part:
    """Which methods ran on which environments, with how many seeds."""
    groups: dict[tuple[str, str, str, str], list[str]] = {}
    for family in study.families:
        for env in family.envs:
            here = [run for run in family.runs if run.env == env]
            seeds = {
                name: count_seeds(run for run in here if run.method == name and run.finished)
                for name in dict.fromkeys(run.method for run in here)
            }
            words = "; ".join(f"{name} ({count})" for name, count in seeds.items())
            brief = "; ".join(f"{family.brief(env, name)} ({count})" for name, count in seeds.items())
            if len(seeds) > MANY_METHODS:
                brief = f"{len(seeds)} methods, {_span(seeds.values())} each"
            groups.setdefault((family.slug, family.name, words, brief), []).append(env)
    rows = [
        [
            Cell(f"{len(envs)} games: {', '.join(envs)}" if len(envs) > 3 else "; ".join(envs)),
            Cell(family, href=f"#{slug}"),
            Cell(words, brief=brief),
        ]
        for (slug, family, words, brief), envs in groups.items()
    ]
    if not rows:
        return "No runs were given: published numbers only."
    heads = [Head("environment", numeric=False), Head("family", numeric=False), Head("methods", numeric=False)]
    return Table("overview", "Runs.", heads, rows, "In parentheses: each method's number of seeds with a finished run.")
