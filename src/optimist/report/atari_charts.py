"""Charts over many Atari games: highest-score counts, aggregates, profiles, improvement, sample efficiency."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from optimist.report.charts import INK, MUTED, PALETTE, Chart, Key, Panel, Rows, aligned, draw_band, step_axis
from optimist.report.comparison import draw_estimate
from optimist.report.formatting import counted
from optimist.report.published import PublishedColumn, highest_counts, human_normalized
from optimist.report.runs import FLOAT, RETURN, Run
from optimist.stats import aggregate as stats

STATISTICS: dict[str, Callable[[Any], FLOAT]] = {
    "IQM": stats.iqm,
    "median": stats.median,
    "mean": stats.mean,
    "optimality gap (lower is better)": stats.optimality_gap,
}
REPS = 2000
TOO_FEW = "none for one run per game, too narrow for fewer than five"
DASHES = ("--", ":", "-.", "-")


class Normalized(NamedTuple):
    """Human-normalised scores [R, G] of one column, measured here or published."""

    name: str
    scores: FLOAT
    ours: bool
    key: Key


def normalized(
    ours: Mapping[str, Mapping[str, Sequence[float]]], published: Sequence[PublishedColumn], keys: Mapping[str, Key]
) -> tuple[list[Normalized], list[str]]:
    """Our and published columns, human-normalised, on the games that all of them have; and these games."""
    shared = set.intersection(*map(set, ours.values())) if ours else set()
    games = sorted(game for game in shared if all(game in column.scores for column in published))
    if not games:
        return [], []

    def matrix(scores: Mapping[str, Sequence[float]]) -> FLOAT:
        return stats.score_matrix(human_normalized({game: scores[game] for game in games}))

    columns = [Normalized(name, matrix(scores), True, keys[name]) for name, scores in ours.items()]
    for at, column in enumerate(published):
        single = {game: [value] for game, value in column.scores.items()}
        key = Key(column.label, MUTED, DASHES[at % len(DASHES)])
        columns.append(Normalized(column.label, matrix(single), False, key))
    return columns, games


def aggregates(columns: Sequence[Normalized], games: Sequence[str], name: str) -> Chart:
    """IQM, median, mean and optimality gap; ours with bootstrap intervals, published ones as points."""
    labels = Rows([column.name for column in columns])
    height = 0.55 + 0.38 * labels.units
    panels = [
        Panel(title, _draw_aggregate(columns, labels, statistic), height) for title, statistic in STATISTICS.items()
    ]
    runs = "; ".join(f"{column.name} {column.scores.shape[0]}" for column in columns if column.ours)
    caption = (
        f"Human-normalised scores on {counted(len(games), 'game')}; runs per game: {runs}. Bars: 95 % "
        f"intervals, stratified bootstrap ({REPS:,} resamples); {TOO_FEW}. Hollow: published, one number per game."
    )
    return Chart(name, "Aggregate scores with intervals", panels, caption, (), (4.3, height), 2)


def profiles(columns: Sequence[Normalized], games: Sequence[str], name: str) -> Chart:
    """Share of runs above each human-normalised score."""
    top = max(2.0, float(np.nanquantile(np.concatenate([c.scores.ravel() for c in columns]), 0.9)))
    low = min(0.0, float(min(np.nanmin(column.scores) for column in columns if column.ours)))
    levels = np.linspace(low, top, 121)

    def profile(scores: FLOAT) -> FLOAT:
        return stats.performance_profile(scores, levels)

    def draw(axis: Any) -> None:
        for column in columns:
            key = column.key
            if column.ours:
                draw_band(axis, levels, *stats.bootstrap(column.scores, profile, reps=500), key)
            else:
                axis.plot(levels, profile(column.scores), color=key.color, linestyle=key.dash, linewidth=1)
        axis.axvline(1.0, color=INK, linewidth=0.7)
        axis.set(ylim=(0, 1.02), xlim=(low, top), xlabel="human-normalised score (1: human)")
        axis.set_ylabel("share of runs above it")

    caption = (
        f"Performance profiles on {counted(len(games), 'game')}: higher is better everywhere. Bands: 95 % "
        f"intervals of the stratified bootstrap, pointwise; {TOO_FEW}. Thin: published, one number per game."
    )
    keys = [column.key for column in columns]
    return Chart(name, "Performance profiles", [Panel("", draw)], caption, keys, (4.6, 3.0), 1)


def improvement(columns: Sequence[Normalized], games: Sequence[str], name: str) -> Chart | None:
    """P(a run of one method beats a run of another on the same game), for each pair of our columns."""
    ours = [column for column in columns if column.ours]
    pairs = [(a, b) for at, b in enumerate(ours) for a in ours[at + 1 :]]
    if not pairs:
        return None

    rows = Rows([f"{first.name}  >  {second.name}" for first, second in pairs])

    def draw(axis: Any) -> None:
        for row, (first, second) in zip(rows.at, pairs, strict=True):
            estimate = stats.bootstrap_improvement(first.scores, second.scores, reps=REPS)
            draw_estimate(axis, row, first.key.color, *map(float, estimate))
        axis.axvline(0.5, color=INK, linewidth=0.7)
        axis.set(xlim=(0, 1), xlabel="probability of improvement")
        rows.draw(axis)

    caption = (
        f"Mean over {counted(len(games), 'game')}, ties count half. Right of ½ the first is better; "
        f"bars: 95 % intervals of the bootstrap ({REPS:,} resamples) of both sides; {TOO_FEW}."
    )
    height = 0.7 + 0.4 * rows.units
    return Chart(name, "Probability of improvement", [Panel("", draw)], caption, (), (4.6, height), 1)


def efficiency(
    columns: Mapping[str, Sequence[Run]], keys: Mapping[str, Key], games: Sequence[str], name: str
) -> Chart | None:
    """IQM of human-normalised training returns over steps."""
    found: dict[str, tuple[FLOAT, stats.Estimate]] = {}
    for label, runs in columns.items():
        chosen = [run for run in runs if run.env in games and RETURN in run.curves]
        steps, values = aligned([run.curves[RETURN] for run in chosen]) if chosen else (np.empty(0), np.empty(0))
        rows = {game: [at for at, run in enumerate(chosen) if run.env == game] for game in games}
        if not len(steps) or not all(rows.values()):
            continue
        curves = np.full((len(steps), max(map(len, rows.values())), len(games)), np.nan)
        for column, game in enumerate(games):
            for place, row in enumerate(rows[game]):
                curves[:, place, column] = human_normalized({game: values[row]})[game]
        found[label] = steps, stats.sample_efficiency(curves, reps=500)
    if not found:
        return None

    def draw(axis: Any) -> None:
        scale = step_axis(axis, max(steps[-1] for steps, _ in found.values()))
        for label, (steps, estimate) in found.items():
            draw_band(axis, steps * scale, *estimate, keys[label])
        axis.set_ylabel("IQM of human-normalised return")

    caption = (
        f"IQM over all runs of {counted(len(games), 'game')}, mean of the last 100 training episodes at each "
        f"step. Bands: 95 % intervals of the stratified bootstrap; {TOO_FEW}."
    )
    return Chart(name, "Sample efficiency", [Panel("", draw)], caption, [keys[label] for label in found], (4.6, 2.9), 1)


def counts(
    ours: Mapping[str, Mapping[str, float]],
    printed: dict[str, Mapping[str, float]],
    games: Sequence[str],
    *,
    name: str,
    title: str,
) -> Chart:
    """Games in which each column has the highest score: as printed, and together with our columns."""
    paper = highest_counts(printed, games)
    panels = [Panel(f"As printed, {len(games)} games", _draw_bars(paper, ()), 0.6 + 0.27 * len(paper))]
    shared = [game for game in games if all(game in column for column in ours.values())]
    if ours and shared:
        named = {f"ours: {label}": column for label, column in ours.items()}  # the paper has a PPO, too
        together = highest_counts(printed | named, shared)
        more = f"With our runs, {counted(len(shared), 'game')}"
        panels.append(Panel(more, _draw_bars(together, tuple(named)), 0.6 + 0.27 * len(together)))
    caption = (
        "A tie counts for every column that shares it. As printed: the OPR paper's own columns, with the doubts listed "
        "below its table. "
        + ("With our runs: games on which all our columns have a finished run. " if len(panels) > 1 else "")
        + "Columns differ in budget, statistic and number of runs; a count says nothing about size or certainty."
    )
    return Chart(name, title, panels, caption, (), (4.3, 2.4), 2)


def _draw_bars(numbers: Mapping[str, int], ours: Sequence[str]) -> Any:
    def draw(axis: Any) -> None:
        names = sorted(numbers, key=lambda name: -numbers[name])
        most = max(*numbers.values(), 1)
        colors = [PALETTE[0] if name in ours else MUTED for name in names]
        axis.barh(range(len(names)), [numbers[name] for name in names], color=colors, height=0.62)
        for row, name in enumerate(names):
            axis.text(numbers[name] + 0.01 * most, row, str(numbers[name]), va="center", fontsize=8.5)
        axis.set_yticks(range(len(names)), ["\n".join(textwrap.wrap(name, 22)) for name in names])
        axis.set_ylim(len(names) - 0.4, -0.6)
        axis.set_xlim(0, most * 1.12)
        axis.xaxis.get_major_locator().set_params(integer=True)
        axis.grid(visible=False, axis="y")
        axis.set_xlabel("games with the highest score")

    return draw


def _draw_aggregate(columns: Sequence[Normalized], rows: Rows, statistic: Callable[[Any], FLOAT]) -> Any:
    def draw(axis: Any) -> None:
        for row, column in zip(rows.at, columns, strict=True):
            color = column.key.color
            if column.ours:
                draw_estimate(axis, row, color, *map(float, stats.bootstrap(column.scores, statistic, reps=REPS)))
            else:
                axis.plot(statistic(column.scores), row, "D", color=color, markersize=4.5, markerfacecolor="none")
        axis.set_xlabel("human-normalised")
        rows.draw(axis)

    return draw
