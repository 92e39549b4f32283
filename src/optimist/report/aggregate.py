"""Statistics over runs and tasks: IQM, median, mean, optimality gap, profiles, improvement, bootstrap intervals.

Scores are arrays [..., R, G]: R runs of each of G games. Where a game has fewer runs than others the rest is nan.
With as many runs everywhere the numbers are those of rliable (Agarwal et al., 2021, arXiv 2108.13264).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optimist.errors import ConfigError, ShapeMismatch

FLOAT = NDArray[np.float64]
Statistic = Callable[[FLOAT], FLOAT]
"""[..., R, G] → [...], or → [..., K] for curves and profiles."""
CHUNK = 20_000_000  # numbers of one batch of resampled scores: 160 MB


class Estimate(NamedTuple):
    """A statistic with the bounds of its bootstrap interval; arrays for curves and profiles.

    Bounds are nan where no game has two runs: redrawing the only one says nothing about others.
    """

    value: FLOAT
    low: FLOAT
    high: FLOAT


def score_matrix(scores: Mapping[str, Sequence[float]], games: Sequence[str] | None = None) -> FLOAT:
    """[R, G] from the runs of each game, nan where a game has fewer; all games given must have a run."""
    names = list(scores) if games is None else list(games)
    missing = [name for name in names if not scores.get(name)]
    if missing or not names:
        raise ConfigError(f"no scores for {', '.join(missing) or 'any game'}; leave out what has no finished run")
    matrix = np.full((max(len(scores[name]) for name in names), len(names)), np.nan)
    for column, name in enumerate(names):
        matrix[: len(scores[name]), column] = scores[name]
    return matrix


def human_normalized(scores: Mapping[str, Sequence[float]]) -> dict[str, list[float]]:
    """(score − random) / (human − random) of every run of each Atari game."""
    from optimist.envs.atari.games import get_game

    return {name: [get_game(name).human_normalized(score) for score in runs] for name, runs in scores.items()}


def mean(scores: ArrayLike) -> FLOAT:
    """The mean over games of each game's mean over runs."""
    return np.asarray(_game_means(_checked(scores)).mean(-1))


def median(scores: ArrayLike) -> FLOAT:
    """The median over games of each game's mean over runs."""
    return np.asarray(np.median(_game_means(_checked(scores)), axis=-1))


def iqm(scores: ArrayLike) -> FLOAT:
    """Interquartile mean: of all runs of all games, the mean without the lowest and the highest quarter."""
    flat = _flat(_checked(scores))
    count = _count(flat)
    cut = int(0.25 * count)
    return np.asarray(np.sort(flat, axis=-1)[..., cut : count - cut].mean(-1))  # nan is sorted behind


def optimality_gap(scores: ArrayLike, target: float = 1.0) -> FLOAT:
    """How far runs stay below `target` on average; those above it count as reaching it. Lower is better."""
    flat = _flat(_checked(scores))
    return np.asarray(target - np.nanmean(np.minimum(flat, target), axis=-1))


def performance_profile(scores: ArrayLike, thresholds: ArrayLike) -> FLOAT:
    """Share of all runs whose score is above each threshold, [..., K]."""
    flat, levels = _flat(_checked(scores)), np.asarray(thresholds, float)
    above = np.stack([(flat > level).sum(-1) for level in levels], axis=-1)  # nan is above nothing
    return np.asarray(above / _count(flat))


def probability_of_improvement(scores: ArrayLike, others: ArrayLike) -> FLOAT:
    """P(a run of the first beats a run of the second on the same game), ties half, averaged over games."""
    first, second = _checked(scores), _checked(others)
    if first.shape[-1] != second.shape[-1]:
        raise ShapeMismatch(f"scores of {first.shape[-1]} and of {second.shape[-1]} games; both need the same games")
    difference = first[..., :, None, :] - second[..., None, :, :]  # [..., R, R', G]
    wins = np.where(np.isnan(difference), np.nan, (np.sign(difference) + 1) / 2)
    return np.asarray(np.nanmean(wins, axis=(-3, -2)).mean(-1))


def bootstrap(
    scores: ArrayLike, statistic: Statistic, *, reps: int = 2000, confidence: float = 0.95, seed: int = 0
) -> Estimate:
    """The statistic with a percentile interval of the stratified bootstrap: runs are redrawn within each game."""
    matrix = _checked(scores)
    drawn = [statistic(batch) for batch in _resampled(matrix, reps, seed, matrix.size)]
    return _percentiles(statistic(matrix), drawn, confidence, known=_has_spread(matrix))


def bootstrap_improvement(
    scores: ArrayLike, others: ArrayLike, *, reps: int = 2000, confidence: float = 0.95, seed: int = 0
) -> Estimate:
    """`probability_of_improvement` with its interval; both sides are redrawn, each by itself."""
    first, second = _checked(scores), _checked(others)
    point = probability_of_improvement(first, second)
    size = 64 * max(first.size, second.size)  # of both sides' batches, so that they fit
    pairs = zip(_resampled(first, reps, seed, size), _resampled(second, reps, seed + 1, size), strict=True)
    drawn = [probability_of_improvement(*pair) for pair in pairs]
    return _percentiles(point, drawn, confidence, known=_has_spread(first) and _has_spread(second))


def sample_efficiency(
    curves: ArrayLike, statistic: Statistic = iqm, *, reps: int = 1000, confidence: float = 0.95, seed: int = 0
) -> Estimate:
    """The statistic at each of S moments of training, from curves [S, R, G]; a run is redrawn with all its moments."""
    stack = np.asarray(curves, float)
    if stack.ndim != 3:
        raise ShapeMismatch(f"curves are {list(stack.shape)}; expected [S, R, G]: moments, runs, games")
    present = ~np.isnan(stack)
    if (present.any(0) != present.all(0)).any():
        raise ConfigError("a run has scores at some moments only; cut the curves to the moments all runs reached")
    drawn = []
    for rows in _row_batches(present[0], reps, seed, stack.size):
        picked = np.take_along_axis(stack[None], rows[:, None], axis=2)  # [B, S, R, G]
        drawn.append(statistic(picked))
    return _percentiles(statistic(stack), drawn, confidence, known=_has_spread(stack[0]))


def _has_spread(matrix: FLOAT) -> bool:
    """Whether some game has two runs."""
    return bool(((~np.isnan(matrix)).sum(0) > 1).any())


def _resampled(matrix: FLOAT, reps: int, seed: int, size: int) -> list[FLOAT]:
    """Batches [B, R, G] of the scores with runs redrawn within each game; as many nan as before."""
    return [
        np.take_along_axis(matrix[None], rows, axis=1) for rows in _row_batches(~np.isnan(matrix), reps, seed, size)
    ]


def _row_batches(present: NDArray[np.bool_], reps: int, seed: int, size: int) -> list[NDArray[np.intp]]:
    """Which runs are drawn, batches [B, R, G]; a game's missing runs stay missing. `size`: numbers in a repetition."""
    if reps < 1:
        raise ConfigError(f"a bootstrap needs at least 1 repetition, got {reps}")
    generator = np.random.default_rng(seed)
    runs, games = present.shape
    order = np.argsort(~present, axis=0, kind="stable")  # a game's runs first, what is missing behind them
    counts = present.sum(0)
    place = np.arange(runs)[:, None]
    batch = max(1, CHUNK // size)
    found = []
    for begin in range(0, reps, batch):
        drawn = (generator.random((min(batch, reps - begin), runs, games)) * counts).astype(np.intp)
        drawn = np.where(place < counts, drawn, place)
        found.append(np.take_along_axis(order[None], drawn, axis=1))
    return found


def _percentiles(value: FLOAT, drawn: Sequence[FLOAT], confidence: float, *, known: bool) -> Estimate:
    if not 0.0 < confidence < 1.0:
        raise ConfigError(f"confidence must lie between 0 and 1, got {confidence}")
    tail = (1.0 - confidence) / 2
    low, high = np.quantile(np.concatenate(drawn), [tail, 1.0 - tail], axis=0)
    if not known:
        low, high = np.full_like(low, np.nan), np.full_like(high, np.nan)
    return Estimate(np.asarray(value), low, high)


def _checked(scores: ArrayLike) -> FLOAT:
    array = np.asarray(scores, float)
    if array.ndim < 2 or 0 in array.shape:
        raise ShapeMismatch(f"scores are {list(array.shape)}; expected [R, G]: runs, games, at least one of each")
    if np.isinf(array).any() or np.isnan(array).all(axis=-2).any():
        raise ConfigError("a game has no finite score; leave it out, or look at its runs")
    return array


def _game_means(array: FLOAT) -> FLOAT:
    return np.asarray(np.nanmean(array, axis=-2))


def _flat(array: FLOAT) -> FLOAT:
    return array.reshape(*array.shape[:-2], -1)


def _count(flat: FLOAT) -> int:
    """Scores that are there; the same number in every resample."""
    return int((~np.isnan(flat.reshape(-1, flat.shape[-1])[0])).sum())
