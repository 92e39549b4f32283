"""write_claim: the published rows of an experiment → README.md, table.md and figures of `results/CLAIM`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from optimist.errors import RunFolderError
from optimist.report.charts import Chart, Panel, Rows
from optimist.report.comparison import draw_marks, goals_chart, seeds_chart, share
from optimist.report.identify import CAGE2
from optimist.report.rows import ROWS, read_rows
from optimist.report.runs import Run, Statistic
from optimist.report.study import Family, Study
from optimist.report.training_charts import cage_zoom, learning
from optimist.tracking.files import disk_errors, write_text

README, TABLE, FIGURES = "README.md", "table.md", "figures"
MAX_LINES = 8
"""Learning curves are drawn of up to so many methods of one environment."""
GOALS = ("goal_seen", "solved")


class Claim(NamedTuple):
    """What the folder of a claim is made from."""

    name: str
    """That of the experiment's file."""
    comment: str
    """The first lines of that file."""
    has_page: bool
    """Whether docs/results has a page of this name."""
    rows: Path
    table: str
    measures: Sequence[str]


def write_claim(claim: Claim, out: Path) -> list[Path]:
    """Write the claim's README.md, table and figures; the paths of all files."""
    if out.is_file():
        raise RunFolderError(f"{out} is a file; a claim needs a folder")
    if out.exists() and any(out.iterdir()) and not {ROWS, TABLE} & {path.name for path in out.iterdir()}:
        raise RunFolderError(f"{out} is not empty and holds no claim; choose another -o")
    charts = list(claim_charts(claim))
    with disk_errors(out):
        (out / FIGURES).mkdir(parents=True, exist_ok=True)
        for path in (out / FIGURES).glob("*.svg"):
            path.unlink()
        files = [chart.save_svg(out / FIGURES) for chart in charts]
        write_text(out / TABLE, claim.table)
        write_text(out / README, _readme(claim, charts))
    return [out / README, out / TABLE, *files]


def claim_charts(claim: Claim) -> Iterator[Chart]:
    """For each family: goals or scores of all seeds, other two-valued outcomes, and learning curves."""
    runs, problems = read_rows(claim.rows, claim.rows.name)
    damaged = [problem for problem in problems if problem.kind != "unfinished"]
    if damaged:
        raise RunFolderError(f"{claim.rows}: {damaged[0].where}: {damaged[0].what}")
    outcomes = [name for name in claim.measures if name not in GOALS and _is_outcome(runs, name)]
    for family in Study(runs, []).families:
        family = Family(family.name, family.runs, _statistic(family.runs, claim.measures), family.unlike)
        charts = [goals_chart(family), seeds_chart(family), *(outcome_chart(family, name) for name in outcomes)]
        if all(len(groups) <= MAX_LINES for groups in family.drawn("rollout/raw_return").values()):
            charts.append(cage_zoom(family) if family.name == CAGE2 else learning(family))
        yield from (chart for chart in charts if chart is not None)


def outcome_chart(family: Family, measure: str) -> Chart | None:
    """One mark a seed for an outcome that holds or does not, and its share with Wilson's interval."""
    found: dict[str, dict[str, list[Run]]] = {}
    for env, name, runs in family.compared():
        if all(measure in run.summary for run in runs):
            found.setdefault(env, {})[name] = runs
    panels = []
    for env, groups in found.items():
        counts = {name: sum(bool(run.summary[measure]) for run in runs) for name, runs in groups.items()}
        rows = Rows([f"{family.brief(env, name)}: {share(counts[name], len(runs))}" for name, runs in groups.items()])
        marks = [(counts[name], 0, len(runs) - counts[name]) for name, runs in groups.items()]
        colors = [family.keys[name].color for name in groups]
        panels.append(Panel(env, draw_marks(rows, marks, colors, list(groups)), 0.45 + 0.42 * rows.units))
    words = measure.replace("_", " ")
    name = f"{measure.replace('_', '-')}-{family.slug}"
    caption = f"One mark a seed, filled where it holds: {words}. Share with Wilson's 95 % interval."
    return Chart(name, f"Seeds: {words}", panels, caption, (), (4.3, 2.4), 2) if panels else None


def _is_outcome(runs: Sequence[Run], measure: str) -> bool:
    return any(isinstance(run.summary.get(measure), bool) for run in runs)


def _statistic(runs: Sequence[Run], measures: Sequence[str]) -> Statistic:
    """The score that the table shows: argmax if asked for, else the last 100 episodes, else the final policy."""
    shown: list[Statistic] = ["final-greedy"] if "argmax_return" in measures else []
    return next((name for name in (*shown, "last-100") if all(name in run.scores for run in runs)), "final")


def _readme(claim: Claim, charts: Sequence[Chart]) -> str:
    """What is compared, the figures with their captions, and the commands."""
    links = f"[table]({TABLE}) · [one row a run]({ROWS})"
    if claim.has_page:
        links = f"[verdict and limits](../../docs/results/{claim.name}.md) · {links}"
    parts = [f"# {claim.name}", claim.comment, links]
    parts += [f"![{chart.title}]({FIGURES}/{chart.name}.svg)\n\n{chart.caption}" for chart in charts]
    file, folder = f"experiments/{claim.name}.toml", f"results/{claim.name}"
    parts.append(
        f"```bash\noptimist sweep {file} --out DIR                        # all runs again\n"
        f"optimist report --experiment {file} -o {folder}   # this folder from {ROWS}\n```"
    )
    return "\n\n".join(parts) + "\n"
