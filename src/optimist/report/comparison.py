"""Methods compared on one environment: tables of scores and goals, charts of all seeds and of ablations."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from optimist.report.charts import INK, PALETTE, Chart, Key, Panel, Rows
from optimist.report.formatting import short_steps
from optimist.report.identify import ATARI
from optimist.report.runs import STATISTICS, Run, Statistic, count_seeds, same
from optimist.report.study import Family
from optimist.report.tables import Cell, Head, Table
from optimist.stats.intervals import difference_interval, mean_interval, wilson_interval

ROW_HEADS = (Head("environment", numeric=False), Head("method", numeric=False))
SHARED = "Settings that every column of a method shares are left out on the page; the files and tooltips have them."
MARKS_PER_LINE = 32


def scores_table(family: Family, statistic: Statistic) -> Table | None:
    """One row per environment and method: mean with interval, range, and difference from the first method."""
    rows = []
    bases: list[Sequence[Run]] = []  # the first method of each environment, budget and sticky-action probability
    for env, name, runs in family.compared(statistic):
        base = next((found for found in bases if _comparable(found[0], runs[0])), None)
        rows.append(_score_row(env, Cell(name, brief=family.brief(env, name)), runs, base, statistic))
        bases += [runs] if base is None else []
    if not rows:
        return None
    heads = [*ROW_HEADS, Head("mean", "± 95 %, Student"), Head("seeds"), Head("lowest to highest", "over seeds"),
             Head("difference", "from “base” of the same budget, ± 95 %, Welch"), Head("steps")]  # fmt: skip
    caption = f"{statistic}: {STATISTICS[statistic]}."
    caption += f" {SHARED}" if any(row[1].brief != row[1].text for row in rows) else ""
    name = f"scores-{family.slug}-{statistic}"
    return Table(name, f"{family.name}, {statistic}.", heads, rows, caption, grouped=True)


def goals_table(family: Family) -> Table | None:
    """Tasks with a goal: how many runs reached it, and how many of those solved the task."""
    rows = []
    for env, name, runs in family.compared():
        here = [run.summary for run in runs if "goal_seen" in run.summary]
        if here and family.name != ATARI:
            seen = sum(bool(summary["goal_seen"]) for summary in here)
            solved = sum(bool(summary.get("solved")) for summary in here)
            both = sum(bool(summary["goal_seen"] and summary.get("solved")) for summary in here)
            low, high = wilson_interval(both, seen)
            share = Cell(value=both / seen, digits=2) if seen else Cell()
            bounds = Cell(f"{low:.2f} to {high:.2f}", parts={"": low, "high": high}) if seen else Cell()
            counts = [
                Cell(f"{number} of {len(here)}", parts={"": number, "of": len(here)}) for number in (seen, solved)
            ]
            rows.append([Cell(env), Cell(name, brief=family.brief(env, name)), *counts, share, bounds])
    if not rows:
        return None
    heads = [*ROW_HEADS, Head("goal seen", "runs"), Head("solved", "runs"), Head("conversion"),
             Head("95 % interval", "Wilson")]  # fmt: skip
    caption = (
        "Seen: some training episode reached the goal. Solved: at least 90 % of the last 100 training episodes did. "
        "Conversion: P(solved | seen), which separates keeping a goal from finding it."
    )
    return Table(f"goals-{family.slug}", f"{family.name}, goals.", heads, rows, caption, grouped=True)


def goals_chart(family: Family) -> Chart | None:
    """One mark for each seed: seen and kept, seen and lost, or never seen; the shares with Wilson's interval."""
    panels = []
    for env, groups in _by_env(family).items():
        if _has_goals(groups):
            texts, marks = [], []
            for name, runs in groups.items():
                seen = [run for run in runs if run.summary["goal_seen"]]
                solved = sum(bool(run.summary.get("solved")) for run in seen)
                texts.append(
                    f"{family.brief(env, name)}: kept {share(solved, len(seen))}, seen {len(seen)} of {len(runs)}"
                )
                marks.append((solved, len(seen) - solved, len(runs) - len(seen)))
            rows = Rows(texts, [0.45 * ((sum(counts) - 1) // MARKS_PER_LINE) for counts in marks])
            colors = [family.keys[name].color for name in groups]
            panels.append(Panel(env, draw_marks(rows, marks, colors, list(groups)), 0.45 + 0.42 * rows.units))
    caption = (
        "One mark a seed. Filled: the goal was seen and the task solved; crossed: seen and lost; small dot: never "
        "seen. Kept: share of the seeds that saw the goal, with Wilson's 95 % interval."
    )
    return Chart(f"goals-{family.slug}", "Goals of all seeds", panels, caption, (), (4.3, 2.4), 2) if panels else None


def seeds_chart(family: Family) -> Chart | None:
    """Every seed's score as a dot, the mean with its interval as a bar; no panel where the outcome is a goal."""
    panels = []
    for env, groups in _by_env(family).items():
        if not _has_goals(groups):
            scores = {name: [run.scores[family.statistic].value for run in runs] for name, runs in groups.items()}
            rows = Rows([f"{family.brief(env, name)}  (n = {len(values)})" for name, values in scores.items()])
            panels.append(Panel(env, _draw_seeds(rows, scores, family.keys), 0.75 + 0.38 * rows.units))
    caption = (
        f"Statistic: {family.statistic}. Dot: one seed; bar: mean with Student's 95 % interval over seeds "
        "(none for one seed; for two it can exceed the axes)."
    )
    name = f"seeds-{family.slug}"
    return Chart(name, "Scores of all seeds", panels, caption, (), (4.3, 2.4), 2) if panels else None


def ablations_chart(family: Family) -> Chart | None:
    """Variants of a preset: the difference of each from the unchanged preset, with Welch's interval."""
    panels = []
    for env in family.envs:
        groups: dict[tuple[Any, ...], dict[tuple[str, ...], list[float]]] = {}
        for run in family.runs:
            if run.env == env and family.statistic in run.scores:
                variants = groups.setdefault((run.identity.base, run.budget, run.sticky), {})
                variants.setdefault(run.identity.changes, []).append(run.scores[family.statistic].value)
        for (method, *_), variants in groups.items():
            base = variants.pop((), None)
            if base is not None and variants:
                title = f"{env}: {method}, n = {len(base)}"
                rows = Rows([f"{', '.join(changes)}  (n = {len(scores)})" for changes, scores in variants.items()])
                panels.append(Panel(title, _draw_ablation(rows, base, variants), 0.8 + 0.4 * rows.units))
    caption = (
        f"Difference in {family.statistic} score between a variant (with the settings named) and the unchanged preset, "
        "whose number of seeds is in the title. Bars: Welch's 95 % intervals, none where one side has a single seed."
    )
    return Chart(f"ablations-{family.slug}", "Ablations", panels, caption, (), (4.6, 2.4), 2) if panels else None


def draw_estimate(axis: Any, row: float, color: str, value: float, low: float, high: float) -> None:
    """A point with its interval as a bar; nan bounds draw no bar."""
    axis.plot([low, high], [row, row], color=color, linewidth=5, alpha=0.35)
    axis.plot(value, row, "o", color=color, markersize=5)


def mean_cell(values: Sequence[float]) -> Cell:
    """Mean with Student's half width and number of runs; empty without values."""
    if not values:
        return Cell()
    interval = mean_interval(values)
    half = interval.half_width if math.isfinite(interval.half_width) else None
    return Cell(value=interval.mean, half_width=half, runs=len(values))


def steps_range(runs: Sequence[Run]) -> str:
    """`10M`, or `60k – 100k` for different budgets."""
    low, high = min(run.budget for run in runs), max(run.budget for run in runs)
    return short_steps(low) + ("" if same("budget", low, high) else f" – {short_steps(high)}")


def _comparable(run: Run, other: Run) -> bool:
    """Whether two runs agree in all but the method, so that a difference is due to it."""
    return (
        run.env == other.env and same("budget", run.budget, other.budget) and same("sticky", run.sticky, other.sticky)
    )


def _score_row(
    env: str, name: Cell, runs: Sequence[Run], base: Sequence[Run] | None, statistic: Statistic
) -> list[Cell]:
    values = [run.scores[statistic].value for run in runs]
    mean = mean_cell(values)
    bounds = {"": min(values), "highest": max(values)}
    lowest, highest = (Cell(value=value).shown for value in bounds.values())
    steps = {"": min(run.budget for run in runs), "most": max(run.budget for run in runs)}
    if base is None:
        difference = Cell("base", parts={})
    else:
        interval = difference_interval(values, [run.scores[statistic].value for run in base])
        difference = Cell(value=interval.mean, half_width=interval.half_width)
    return [Cell(env), name, Cell(value=mean.value, half_width=mean.half_width), Cell(str(count_seeds(runs))),
            Cell(f"{lowest} to {highest}" if len(values) > 1 else "", parts=bounds), difference,
            Cell(steps_range(runs), parts=steps)]  # fmt: skip


def _by_env(family: Family) -> dict[str, dict[str, list[Run]]]:
    """Environment → column → runs."""
    found: dict[str, dict[str, list[Run]]] = {}
    for env, _, runs in family.compared():
        found.setdefault(env, {})[family.labels[id(runs[0])]] = runs
    return found


def _has_goals(groups: Mapping[str, Sequence[Run]]) -> bool:
    return all("goal_seen" in run.summary for runs in groups.values() for run in runs)


def share(count: int, total: int) -> str:
    """`3 of 4 (0.30 to 0.95)`, with Wilson's interval."""
    if not total:
        return "–"
    low, high = wilson_interval(count, total)
    return f"{count} of {total} ({low:z.2f} to {high:z.2f})"


def draw_marks(rows: Rows, marks: Sequence[tuple[int, int, int]], colors: Sequence[str], names: Sequence[str]) -> Any:
    """Draw one mark a seed in each row: so many filled, crossed and small; `names` are the tooltips."""

    def draw(axis: Any) -> None:
        for place, (kept, lost, never), color in zip(rows.at, marks, colors, strict=True):
            at = np.arange(kept + lost + never)
            x, y = at % MARKS_PER_LINE, place + 0.45 * (at // MARKS_PER_LINE)
            style = {"color": color, "linestyle": "none"}
            axis.plot(x[:kept], y[:kept], "o", markersize=5.5, **style)
            axis.plot(x[kept : kept + lost], y[kept : kept + lost], "x", markersize=4.5, **style)
            axis.plot(x[kept + lost :], y[kept + lost :], ".", markersize=3, **style)
        axis.set_xlim(-0.5, MARKS_PER_LINE - 0.5)
        axis.set_xticks([])
        axis.spines["bottom"].set_visible(False)
        rows.draw(axis, names)

    return draw


def _draw_seeds(rows: Rows, values: Mapping[str, Sequence[float]], keys: Mapping[str, Key]) -> Any:
    def draw(axis: Any) -> None:
        for row, (name, scores) in zip(rows.at, values.items(), strict=True):
            color = keys[name].color
            spread = ((np.arange(len(scores)) * 0.618) % 1 - 0.5) * 0.3 if len(scores) > 1 else np.zeros(1)
            axis.plot(scores, row + spread, "o", color=color, markersize=3.2, alpha=0.55, markeredgewidth=0)
            mean, half = mean_interval(scores)
            axis.plot([mean - half, mean + half], [row, row], color=color, linewidth=2)
            axis.plot(mean, row, "|", color=color, markersize=11, markeredgewidth=2.2)
        every = [score for scores in values.values() for score in scores]
        margin = 0.35 * (max(every) - min(every)) or 0.1 * abs(every[0]) or 1.0
        low, high = axis.get_xlim()
        axis.set_xlim(max(low, min(every) - margin), min(high, max(every) + margin))
        axis.locator_params(axis="x", nbins=6)
        axis.set_xlabel("return")
        rows.draw(axis, [f"{name}  (n = {len(scores)})" for name, scores in values.items()])

    return draw


def _draw_ablation(rows: Rows, base: Sequence[float], variants: Mapping[tuple[str, ...], Sequence[float]]) -> Any:
    def draw(axis: Any) -> None:
        for row, scores in zip(rows.at, variants.values(), strict=True):
            mean, half = difference_interval(scores, base)
            draw_estimate(axis, row, PALETTE[0], mean, mean - half, mean + half)
        axis.axvline(0.0, color=INK, linewidth=0.8)
        axis.set_xlabel("difference in return")
        rows.draw(axis)

    return draw
