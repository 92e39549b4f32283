"""Charts over many games: highest-score counts, aggregates with intervals, profiles, improvement, efficiency."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optimist.report import aggregate
from optimist.report.charts import INK, MUTED, PALETTE, Chart, Key, Panel, step_axis
from optimist.report.published import PublishedColumn, highest_counts
from optimist.report.runs import RETURN, Run
from optimist.report.score_charts import row_label, rows_from_top
from optimist.report.scores import Statistic, counted
from optimist.report.study import aligned

FLOAT = NDArray[np.float64]
STATISTICS: dict[str, Callable[[Any], FLOAT]] = {
    "IQM": aggregate.iqm,
    "median": aggregate.median,
    "mean": aggregate.mean,
    "optimality gap (lower is better)": aggregate.optimality_gap,
}
REPS = 2000
TOO_FEW = "none for a single run a game, and too narrow for fewer than five"


class Normalized(NamedTuple):
    """Human-normalised scores of one column on the games all columns share: [R, G], and whether they are ours."""

    name: str
    scores: FLOAT
    ours: bool
    key: Key


def normalized(
    ours: Mapping[str, Sequence[Run]],
    published: Sequence[PublishedColumn],
    keys: Mapping[str, Key],
    statistic: Statistic,
) -> tuple[list[Normalized], list[str]]:
    """Our and published columns, human-normalised, on the games that all of ours and all of theirs have."""
    found_in = {name: by_game(runs, statistic) for name, runs in ours.items()}
    games = [game for game in sorted(set.intersection(*(set(found) for found in found_in.values())) if found_in else ())
             if all(game in column.scores for column in published)]  # fmt: skip
    if not games:
        return [], []
    found = []
    for name, scores in found_in.items():
        matrix = aggregate.score_matrix(aggregate.human_normalized({game: scores[game] for game in games}))
        found.append(Normalized(name, matrix, True, keys[name]))
    for column in published:
        single = aggregate.human_normalized({game: [column.scores[game].value] for game in games})
        found.append(Normalized(column.label, aggregate.score_matrix(single), False, Key(column.label, MUTED)))
    return found, games


def aggregates(columns: Sequence[Normalized], games: Sequence[str], name: str) -> Chart:
    """IQM, median, mean and optimality gap; ours with bootstrap intervals, published ones as points."""
    height = 0.55 + 0.36 * len(columns)
    panels = [Panel(title, _draw_aggregate(columns, statistic), height) for title, statistic in STATISTICS.items()]
    runs = "; ".join(f"{column.name} {column.scores.shape[0]}" for column in columns if column.ours)
    caption = (
        f"Human-normalised scores on {counted(len(games), 'game')}; runs a game: {runs}. Bars: 95 % "
        f"intervals, stratified bootstrap ({REPS:,} resamples); {TOO_FEW}. Hollow: published, one number a game."
    )
    return Chart(name, "Aggregate scores with intervals", panels, caption, (), (4.3, height), 2)


def profiles(columns: Sequence[Normalized], games: Sequence[str], name: str) -> Chart:
    """Share of runs above each human-normalised score."""
    top = max(2.0, float(np.nanquantile(np.concatenate([c.scores.ravel() for c in columns]), 0.9)))
    low = min(0.0, float(min(np.nanmin(column.scores) for column in columns if column.ours)))
    levels = np.linspace(low, top, 121)

    def draw(axis: Any) -> None:
        for column in columns:
            if column.ours:
                profile = aggregate.bootstrap(
                    column.scores, lambda x: aggregate.performance_profile(x, levels), reps=500
                )
                axis.plot(levels, profile.value, color=column.key.color, linestyle=column.key.dash)
                axis.fill_between(levels, profile.low, profile.high, color=column.key.color, alpha=0.16, linewidth=0)
            else:
                dash = _published_dash(columns, column)
                axis.plot(
                    levels,
                    aggregate.performance_profile(column.scores, levels),
                    color=MUTED,
                    linestyle=dash,
                    linewidth=1,
                )
        axis.axvline(1.0, color=INK, linewidth=0.7)
        axis.set(ylim=(0, 1.02), xlim=(low, top), xlabel="human-normalised score (1: a human's)",
                 ylabel="share of runs above it")  # fmt: skip

    keys = [c.key if c.ours else Key(c.name, MUTED, _published_dash(columns, c)) for c in columns]
    caption = (
        f"Performance profiles on {counted(len(games), 'game')}: higher is better everywhere. Bands: 95 % "
        f"intervals of the stratified bootstrap, pointwise; {TOO_FEW}. Thin: published, one number a game."
    )
    return Chart(name, "Performance profiles", [Panel("", draw)], caption, keys, (4.6, 3.0), 1)


def improvement(columns: Sequence[Normalized], games: Sequence[str], name: str) -> Chart | None:
    """P(a run of one method beats a run of another on the same game), for each pair of our columns."""
    ours = [column for column in columns if column.ours]
    pairs = [(a, b) for at, b in enumerate(ours) for a in ours[at + 1 :]]
    if not pairs:
        return None

    def draw(axis: Any) -> None:
        for row, (first, second) in enumerate(pairs):
            estimate = aggregate.bootstrap_improvement(first.scores, second.scores, reps=REPS)
            axis.plot([estimate.low, estimate.high], [row, row], color=first.key.color, linewidth=5, alpha=0.35)
            axis.plot(estimate.value, row, "o", color=first.key.color, markersize=5)
            row_label(axis, f"{first.name}  >  {second.name}", row)
        axis.axvline(0.5, color=INK, linewidth=0.7)
        axis.set(xlim=(0, 1), xlabel="probability of improvement")
        rows_from_top(axis, len(pairs))

    caption = (
        f"Averaged over {counted(len(games), 'game')}, ties count half. Right of ½ the first is better; "
        f"bars: 95 % intervals of the bootstrap ({REPS:,} resamples) of both sides; {TOO_FEW}."
    )
    height = 0.7 + 0.4 * len(pairs)
    return Chart(name, "Probability of improvement", [Panel("", draw)], caption, (), (4.6, height), 1)


def efficiency(
    columns: Mapping[str, Sequence[Run]], keys: Mapping[str, Key], games: Sequence[str], name: str
) -> Chart | None:
    """IQM of human-normalised training returns over steps."""
    from optimist.envs.atari.games import get_game

    found: dict[str, tuple[FLOAT, aggregate.Estimate]] = {}
    for label, runs in columns.items():
        chosen = [run for run in runs if run.env in games and RETURN in run.curves]
        steps, values = aligned([run.curves[RETURN] for run in chosen]) if chosen else (np.empty(0), np.empty(0))
        per_game = [[at for at, run in enumerate(chosen) if run.env == game] for game in games]
        if not len(steps) or not all(per_game):
            continue
        curves = np.full((len(steps), max(map(len, per_game)), len(games)), np.nan)
        for column, (game, rows) in enumerate(zip(games, per_game, strict=True)):
            for place, row in enumerate(rows):
                known = get_game(game)
                curves[:, place, column] = (values[row] - known.random_score) / (known.human_score - known.random_score)
        found[label] = steps, aggregate.sample_efficiency(curves, reps=500)
    if not found:
        return None

    def draw(axis: Any) -> None:
        scale = step_axis(axis, max(steps[-1] for steps, _ in found.values()))
        for label, (steps, estimate) in found.items():
            key = keys[label]
            axis.plot(steps * scale, estimate.value, color=key.color, linestyle=key.dash)
            axis.fill_between(steps * scale, estimate.low, estimate.high, color=key.color, alpha=0.16, linewidth=0)
        axis.set_ylabel("IQM of human-normalised return")

    caption = (
        f"IQM over all runs of {counted(len(games), 'game')}, mean of the last 100 training games at each "
        f"moment. Bands: 95 % intervals of the stratified bootstrap; {TOO_FEW}."
    )
    return Chart(name, "Sample efficiency", [Panel("", draw)], caption, [keys[label] for label in found], (4.6, 2.9), 1)


def counts(ours: Mapping[str, Mapping[str, float]], published: Sequence[PublishedColumn], games: Sequence[str], *,
           name: str, title: str) -> Chart:  # fmt: skip
    """In how many games each column has the highest score: as printed, and with our columns among them."""
    printed = [(column.method, _values(column)) for column in published]
    paper = highest_counts(printed, games)
    panels = [Panel(f"As printed, {len(games)} games", _draw_bars(paper, {}), 0.6 + 0.27 * len(paper))]
    shared = [game for game in games if all(game in column for column in ours.values())]
    if ours and shared:
        named = {f"ours: {label}": dict(column) for label, column in ours.items()}  # the paper has a PPO, too
        together = highest_counts([*printed, *named.items()], shared)
        title_2 = f"With our runs, {counted(len(shared), 'game')}"
        panels.append(Panel(title_2, _draw_bars(together, named), 0.6 + 0.27 * len(together)))
    caption = (
        "A tie counts for each of those that share it. As printed: the OPR paper's own columns, with the doubts listed "
        "below its table. "
        + ("With our runs: games on which all our columns have a finished run. " if len(panels) > 1 else "")
        + "Columns differ in budget, statistic and number of runs; a count does not say by how much, or how surely."
    )
    return Chart(name, title, panels, caption, (), (4.3, 2.4), 2)


def _draw_bars(numbers: Mapping[str, int], ours: Mapping[str, Any]) -> Any:
    def draw(axis: Any) -> None:
        names = sorted(numbers, key=lambda name: -numbers[name])
        most = max(*numbers.values(), 1)
        colors = [PALETTE[0] if name in ours else MUTED for name in names]
        axis.barh(range(len(names)), [numbers[name] for name in names], color=colors, height=0.62)
        for row, name in enumerate(names):
            axis.text(numbers[name] + 0.01 * most, row, str(numbers[name]), va="center", fontsize=8.5)
        axis.set_yticks(range(len(names)), [_wrapped(name) for name in names])
        axis.set_ylim(len(names) - 0.4, -0.6)
        axis.set_xlim(0, most * 1.12)
        axis.xaxis.get_major_locator().set_params(integer=True)
        axis.grid(visible=False, axis="y")
        axis.set_xlabel("games with the highest score")

    return draw


def _draw_aggregate(columns: Sequence[Normalized], statistic: Callable[[Any], FLOAT]) -> Any:
    def draw(axis: Any) -> None:
        for row, column in enumerate(columns):
            color = column.key.color
            if column.ours:
                estimate = aggregate.bootstrap(column.scores, statistic, reps=REPS)
                axis.plot([estimate.low, estimate.high], [row, row], color=color, linewidth=5, alpha=0.35)
                axis.plot(estimate.value, row, "o", color=color, markersize=5)
            else:
                axis.plot(statistic(column.scores), row, "D", color=color, markersize=4.5, markerfacecolor="none")
            row_label(axis, column.name, row)
        axis.set_xlabel("human-normalised")
        rows_from_top(axis, len(columns))

    return draw


def _published_dash(columns: Sequence[Normalized], column: Normalized) -> str:
    others = [c.name for c in columns if not c.ours]
    return ("--", ":", "-.", "-")[others.index(column.name) % 4]


def by_game(runs: Sequence[Run], statistic: Statistic) -> dict[str, list[float]]:
    """The scores of each game."""
    found: dict[str, list[float]] = {}
    for run in runs:
        found.setdefault(run.env, []).append(run.scores[statistic].value)
    return found


def _values(column: PublishedColumn) -> dict[str, float]:
    return {game: score.value for game, score in column.scores.items()}


def _wrapped(text: str) -> str:
    return "\n".join(textwrap.wrap(text, 22)) or text
