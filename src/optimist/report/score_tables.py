"""The report's tables: the paper's two with our columns, scores by environment, goals kept, aggregates."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from optimist.report import aggregate, audit
from optimist.report.atari_charts import REPS, STATISTICS, TOO_FEW, Normalized
from optimist.report.means import difference_interval, mean_interval
from optimist.report.proportions import wilson_interval
from optimist.report.published import TABLE_1, TABLE_2, PublishedColumn, published_column, table_games
from optimist.report.reference import reference_scores
from optimist.report.runs import Run, count_seeds
from optimist.report.scores import STATISTICS as MEANINGS
from optimist.report.scores import Statistic, counted, readable, same, short_steps
from optimist.report.study import Study
from optimist.report.tables import Cell, Head, Table
from optimist.report.training_charts import slug

OURS = "measured here"
PUBLISHED = (
    "Published: as printed, bold as in the paper; letters mark doubts, listed below. The OPR paper states neither runs "
    "nor statistic nor sticky actions."
)


def paper_table(study: Study, *, long: bool) -> Table | None:
    """Of the paper's 49 games (10M steps) or 14 (50M) those run here: our columns with intervals, then published."""
    ours = study.columns("Atari", long=long)
    games = [game for game in table_games(_block(long)) if game in _games_run(study, long=long)]
    if not games:
        return None
    heads = [Head(name, _fine_print(runs, study.statistic), OURS) for name, runs in ours.items()]
    rows = {
        game: _strongest(
            [
                _mean_cell([run.scores[study.statistic].value for run in runs if run.env == game])
                for runs in ours.values()
            ]
        )
        for game in games
    }
    name = "table-2-14-games-50M" if long else "table-1-49-games-10M"
    most = len(table_games(_block(long)))
    which = f"{most} games" if len(games) == most else f"{len(games)} of {most} games"
    return _beside_published(name, which, heads, rows, _ours_caption(study, ours, long=long), long=long)


def published_table(study: Study, *, long: bool) -> Table | None:
    """The published scores of the games that were not run here; None if there are none."""
    games = [game for game in table_games(_block(long)) if game not in _games_run(study, long=long)]
    if not games:
        return None
    name = "table-2-published-50M" if long else "table-1-published-10M"
    which = f"published scores of {counted(len(games), 'game')} not run here"
    return _beside_published(name, which, [], {game: [] for game in games}, "", long=long)


def _beside_published(
    name: str, which: str, heads: Sequence[Head], cells: Mapping[str, Sequence[Cell]], caption: str, *, long: bool
) -> Table:
    """Rows of games: our cells, then the published ones, with their doubts and sources below."""
    block = _block(long)
    published = [published_column(*column) for column in (TABLE_2 if long else TABLE_1)]
    bold: Mapping[str, Sequence[str]] = reference_scores()["scores"][block]["bold"]
    rows = [
        [Cell(game), *ours, *(_published_cell(column, game, block, bold.get(game, ())) for column in published)]
        for game, ours in cells.items()
    ]
    used = sorted({mark for row in rows for cell in row for mark in cell.marks})
    sources = dict.fromkeys(f"{column.terms.name}, {column.url}" for column in published)
    notes = [f"{mark}: {audit.FLAGS[mark].meaning}" for mark in used]
    notes += [*audit.NOTES, f"Sources: {'; '.join(sources)}."]
    title = f"Table {2 if long else 1}: {which}, {'50M' if long else '10M'} steps."
    all_heads = [Head("game", numeric=False), *heads, *(_published_head(column, block) for column in published)]
    return Table(name, title, all_heads, rows, f"{caption} {PUBLISHED}".strip(), notes)


def _block(long: bool) -> str:
    return "opr_table_50M" if long else "opr_table_10M"


def _games_run(study: Study, *, long: bool) -> set[str]:
    return {run.env for runs in study.columns("Atari", long=long).values() for run in runs}


def scores_table(study: Study, family: str, statistic: Statistic) -> Table | None:
    """A row a method and environment: mean with interval, range, and the difference from the first method."""
    rows = []
    for env in study.envs(family):
        bases: list[Sequence[Run]] = []  # the first method of each budget and stickiness
        for long in study.tables(family):
            for name, runs in study.columns(family, long=long, statistic=statistic).items():
                here = [run for run in runs if run.env == env]
                if here:
                    base = next((found for found in bases if _comparable(found[0], here[0])), None)
                    rows.append(_score_row(env, name, here, base, statistic))
                    bases += [here] if base is None else []
    if not rows:
        return None
    heads = [Head("environment", numeric=False), Head("method", numeric=False), Head("mean", "± 95 %, Student"),
             Head("seeds"), Head("lowest to highest", "over seeds"),
             Head("difference", "from “base” of the same budget, ± 95 %, Welch"), Head("steps")]  # fmt: skip
    caption = f"{statistic}: {MEANINGS[statistic]}."
    return Table(f"scores-{slug(family)}-{statistic}", f"{family}, {statistic}.", heads, rows, caption, grouped=True)


def conversion_table(study: Study, family: str) -> Table | None:
    """Tasks with a goal: how often it was seen, and how often kept."""
    rows = []
    for env in study.envs(family):
        for name, runs in study.columns(family).items() if family != "Atari" else ():
            here = [run.summary for run in runs if run.env == env and "goal_seen" in run.summary]
            if here:
                seen = sum(bool(summary["goal_seen"]) for summary in here)
                solved = sum(bool(summary.get("solved")) for summary in here)
                kept = sum(bool(summary["goal_seen"] and summary.get("solved")) for summary in here)
                low, high = wilson_interval(kept, seen)
                share = Cell(value=kept / seen, digits=2) if seen else Cell("–")
                bounds = Cell(f"{low:.2f} to {high:.2f}") if seen else Cell("–")
                counts = [Cell(f"{number} of {len(here)}") for number in (seen, solved)]
                rows.append([Cell(env), Cell(name), *counts, share, bounds])
    if not rows:
        return None
    heads = [Head("environment", numeric=False), Head("method", numeric=False), Head("goal seen", "runs"),
             Head("solved", "runs"), Head("conversion"), Head("95 % interval", "Wilson")]  # fmt: skip
    caption = (
        "Seen: some training episode reached the goal. Solved: at least 90 % of the last 100 training episodes did. "
        "Conversion: P(solved | seen), which tells keeping from finding."
    )
    return Table(f"goals-{slug(family)}", f"{family}, goals.", heads, rows, caption, grouped=True)


def aggregate_table(columns: Sequence[Normalized], games: Sequence[str], name: str) -> Table:
    """The numbers behind the chart of aggregates."""
    rows = []
    for column in columns:
        cells = []
        for statistic in STATISTICS.values():
            if column.ours:
                cells.append(Cell(_with_bounds(aggregate.bootstrap(column.scores, statistic, reps=REPS))))
            else:
                cells.append(Cell(value=float(statistic(column.scores)), digits=3))
        rows.append([Cell(column.name), Cell(OURS if column.ours else "published"), *cells])
    heads = [Head("column", numeric=False), Head("", numeric=False), *(Head(title) for title in STATISTICS)]
    which = f": {', '.join(games)}" if len(games) <= 12 else ""
    caption = (
        f"Human-normalised scores on the {counted(len(games), 'game')} that all columns have{which}. "
        f"In brackets: 95 % intervals of the stratified bootstrap; {TOO_FEW}."
    )
    return Table(name, "Aggregates.", heads, rows, caption)


def _with_bounds(estimate: aggregate.Estimate) -> str:
    bounds = "" if np.isnan(estimate.low) else f" ({estimate.low:.3f} to {estimate.high:.3f})"
    return f"{estimate.value:.3f}{bounds}".replace("-", "−")


def _comparable(run: Run, other: Run) -> bool:
    """Whether a difference between two methods is one of method, not of budget or sticky actions."""
    return same("budget", run.budget, other.budget) and same("sticky", run.sticky, other.sticky)


def _score_row(
    env: str, name: str, runs: Sequence[Run], base: Sequence[Run] | None, statistic: Statistic
) -> list[Cell]:
    values = [run.scores[statistic].value for run in runs]
    mean = _mean_cell(values)
    lowest, highest = Cell(value=min(values)).shown, Cell(value=max(values)).shown
    if base is None:
        difference = Cell("base")
    else:
        interval = difference_interval(values, [run.scores[statistic].value for run in base])
        difference = Cell(value=interval.mean, half_width=interval.half_width)
    budgets = {run.budget for run in runs}
    steps = short_steps(min(budgets)) + (f" – {short_steps(max(budgets))}" if not _one(budgets) else "")
    seeds = Cell(str(count_seeds(runs)))
    return [Cell(env), Cell(name), Cell(value=mean.value, half_width=mean.half_width), seeds,
            Cell(f"{lowest} to {highest}" if len(values) > 1 else "–"), difference, Cell(steps)]  # fmt: skip


def _one(budgets: set[int]) -> bool:
    return same("budget", min(budgets), max(budgets))


def _mean_cell(values: Sequence[float]) -> Cell:
    if not values:
        return Cell()
    interval = mean_interval(list(values))
    half = interval.half_width if math.isfinite(interval.half_width) else None
    return Cell(value=interval.mean, half_width=half, runs=len(values))


def _strongest(cells: Sequence[Cell]) -> list[Cell]:
    """The highest of our means in bold, if there are several."""
    values = [cell.value for cell in cells if cell.value is not None]
    if len(values) < 2:
        return list(cells)
    return [
        Cell(cell.text, cell.value, cell.half_width, cell.runs, cell.marks, cell.value == max(values)) for cell in cells
    ]


def _published_cell(column: PublishedColumn, game: str, block: str, bold: Sequence[str]) -> Cell:
    score = column.scores.get(game)
    if score is None:
        return Cell()
    strong = column.block == block and column.method in bold
    marks = audit.flags(column.block, column.method, game)
    digits = 1 if abs(score.value) < 100_000 else 0
    return Cell(value=score.value, marks=marks, strong=strong, digits=digits)


def _published_head(column: PublishedColumn, block: str) -> Head:
    """What the paper's columns have in common stands above them and in the caption."""
    if column.block == block:
        return Head(column.method, "", "the OPR paper", url=column.url)
    return Head(column.label, column.fine_print, "published elsewhere", url=column.url)


def _fine_print(runs: Sequence[Run], statistic: Statistic) -> str:
    budgets = sorted({run.budget for run in runs})
    steps = short_steps(budgets[0]) + (f" – {short_steps(budgets[-1])}" if not _one(set(budgets)) else "")
    sticky = " / ".join(sorted({readable(run.sticky) for run in runs}))
    return f"{steps} steps, {statistic}, sticky {sticky}"


def _ours_caption(study: Study, ours: Mapping[str, Sequence[Run]], *, long: bool) -> str:
    budget = 50_000_000 if long else 10_000_000
    words = [f"Ours: {study.statistic}, mean over seeds ± 95 % (Student), bold: the highest of ours."]
    short = [name for name, runs in ours.items() if any(run.budget < 0.98 * budget for run in runs)]
    if short:
        words.append(f"Not of this table's budget: {'; '.join(short)} (see the column's head).")
    few = [run for runs in ours.values() for run in runs if (run.scores[study.statistic].episodes or 100) < 100]
    if few and study.statistic == "last-100":
        words.append(f"{counted(len(few), 'run')} finished fewer than 100 training games; then the mean is of those.")
    return " ".join(words)
