"""Statistics over runs and tasks: IQM, median, mean, optimality gap, profiles, improvement, bootstrap intervals.

Scores are arrays [..., R, G]: R runs of each of G tasks (games). Where a task has fewer runs than others the rest is
nan. With equally many runs everywhere the numbers are those of rliable (Agarwal et al., 2021, arXiv 2108.13264).
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
CHUNK = 20_000_000
"""Numbers in one batch of resampled scores: 160 MB."""


class Estimate(NamedTuple):
    """A statistic with the bounds of its bootstrap interval; arrays for curves and profiles.

    The bounds are nan where no task has two runs: resampling a single run says nothing about other runs.
    """

    value: FLOAT
    low: FLOAT
    high: FLOAT


def score_matrix(scores: Mapping[str, Sequence[float]]) -> FLOAT:
    """[R, G] from the runs of each task, nan where a task has fewer; every task needs at least one run."""
    missing = [name for name, runs in scores.items() if not runs]
    if missing or not scores:
        raise ConfigError(f"no scores for {', '.join(missing) or 'any game'}; leave out games without a finished run")
    matrix = np.full((max(map(len, scores.values())), len(scores)), np.nan)
    for column, runs in enumerate(scores.values()):
        matrix[: len(runs), column] = runs
    return matrix


def mean(scores: ArrayLike) -> FLOAT:
    """Mean over tasks of each task's mean over runs."""
    return np.asarray(np.nanmean(_checked(scores), axis=-2).mean(-1))


def median(scores: ArrayLike) -> FLOAT:
    """Median over tasks of each task's mean over runs."""
    return np.asarray(np.median(np.nanmean(_checked(scores), axis=-2), axis=-1))


def iqm(scores: ArrayLike) -> FLOAT:
    """Interquartile mean: the mean over all runs of all tasks without the lowest and the highest quarter."""
    from scipy.stats import trim_mean

    flat = _flat(_checked(scores))
    return np.asarray(trim_mean(np.sort(flat, axis=-1)[..., : _count(flat)], 0.25, axis=-1))  # sort puts nan last


def optimality_gap(scores: ArrayLike, target: float = 1.0) -> FLOAT:
    """Mean amount by which runs stay below `target`; runs above it count as reaching it. Lower is better."""
    return np.asarray(target - np.nanmean(np.minimum(_flat(_checked(scores)), target), axis=-1))


def performance_profile(scores: ArrayLike, thresholds: ArrayLike) -> FLOAT:
    """Share of all runs with a score above each threshold, [..., K]."""
    flat = _flat(_checked(scores))
    above = np.stack([(flat > level).sum(-1) for level in np.asarray(thresholds, float)], axis=-1)  # nan > x is False
    return np.asarray(above / _count(flat))


def probability_of_improvement(scores: ArrayLike, others: ArrayLike) -> FLOAT:
    """P(a run of the first beats a run of the second on the same task), ties count half; mean over tasks."""
    first, second = _checked(scores), _checked(others)
    if first.shape[-1] != second.shape[-1]:
        raise ShapeMismatch(f"scores of {first.shape[-1]} and of {second.shape[-1]} games; both need the same games")
    difference = first[..., :, None, :] - second[..., None, :, :]  # [..., R, R', G]
    wins = np.where(np.isnan(difference), np.nan, (np.sign(difference) + 1) / 2)
    return np.asarray(np.nanmean(wins, axis=(-3, -2)).mean(-1))


def bootstrap(scores: ArrayLike, statistic: Statistic, *, reps: int = 2000, seed: int = 0) -> Estimate:
    """The statistic with the 95 % interval of the stratified bootstrap: runs are resampled within each task."""
    matrix = _checked(scores)
    drawn = [statistic(batch) for batch in _resampled(matrix, reps, seed, matrix.size)]
    return _percentiles(statistic(matrix), drawn, known=_has_spread(matrix))


def bootstrap_improvement(scores: ArrayLike, others: ArrayLike, *, reps: int = 2000, seed: int = 0) -> Estimate:
    """`probability_of_improvement` with its interval; both sides are resampled independently."""
    first, second = _checked(scores), _checked(others)
    point = probability_of_improvement(first, second)
    size = 64 * max(first.size, second.size)  # limits the memory of both sides' batches
    pairs = zip(_resampled(first, reps, seed, size), _resampled(second, reps, seed + 1, size), strict=True)
    drawn = [probability_of_improvement(*pair) for pair in pairs]
    return _percentiles(point, drawn, known=_has_spread(first) and _has_spread(second))


def paired_ratio(scores: ArrayLike, others: ArrayLike, *, reps: int = 20_000, seed: int = 0) -> Estimate:
    """Geometric mean of score / other over pairs [R, G] of runs with the same seed, with `bootstrap`'s interval."""
    first, second = np.asarray(scores, float), np.asarray(others, float)
    if first.shape != second.shape:
        raise ShapeMismatch(f"scores are {list(first.shape)} and others {list(second.shape)}; expected pairs [R, G]")
    if not ((first > 0) & (second > 0)).all():
        raise ConfigError("a ratio needs scores above 0; compare differences instead")
    return Estimate(*(np.exp(bound) for bound in bootstrap(np.log(first / second), mean, reps=reps, seed=seed)))


def sample_efficiency(curves: ArrayLike, statistic: Statistic = iqm, *, reps: int = 1000, seed: int = 0) -> Estimate:
    """The statistic at each of S points of training, from curves [S, R, G]; whole curves are resampled."""
    stack = np.asarray(curves, float)
    if stack.ndim != 3:
        raise ShapeMismatch(f"curves are {list(stack.shape)}; expected [S, R, G]: points of training, runs, games")
    present = ~np.isnan(stack)
    if (present.any(0) != present.all(0)).any():
        raise ConfigError("a run has scores at some points only; cut the curves to the points that all runs reached")
    rows = _row_batches(present[0], reps, seed, stack.size)
    drawn = [statistic(np.take_along_axis(stack[None], batch[:, None], axis=2)) for batch in rows]  # [B, S, R, G]
    return _percentiles(statistic(stack), drawn, known=_has_spread(stack[0]))


def _has_spread(matrix: FLOAT) -> bool:
    return bool(((~np.isnan(matrix)).sum(0) > 1).any())  # some task has two runs


def _resampled(matrix: FLOAT, reps: int, seed: int, size: int) -> list[FLOAT]:
    """Batches [B, R, G] of the scores with runs resampled within each task."""
    rows = _row_batches(~np.isnan(matrix), reps, seed, size)
    return [np.take_along_axis(matrix[None], batch, axis=1) for batch in rows]


def _row_batches(present: NDArray[np.bool_], reps: int, seed: int, size: int) -> list[NDArray[np.intp]]:
    """Indices of the drawn runs, batches [B, R, G]; missing runs stay missing. `size`: numbers in one repetition."""
    if reps < 1:
        raise ConfigError(f"a bootstrap needs at least 1 repetition, got {reps}")
    generator = np.random.default_rng(seed)
    runs, tasks = present.shape
    order = np.argsort(~present, axis=0, kind="stable")  # runs first, missing runs last
    counts = present.sum(0)
    place = np.arange(runs)[:, None]
    batch = max(1, CHUNK // size)
    found = []
    for start in range(0, reps, batch):
        drawn = (generator.random((min(batch, reps - start), runs, tasks)) * counts).astype(np.intp)
        drawn = np.where(place < counts, drawn, place)
        found.append(np.take_along_axis(order[None], drawn, axis=1))
    return found


def _percentiles(value: FLOAT, drawn: Sequence[FLOAT], *, known: bool) -> Estimate:
    low, high = np.quantile(np.concatenate(drawn), [0.025, 0.975], axis=0)
    if not known:
        low, high = np.full_like(low, np.nan), np.full_like(high, np.nan)
    return Estimate(np.asarray(value), low, high)


def _checked(scores: ArrayLike) -> FLOAT:
    array = np.asarray(scores, float)
    if array.ndim < 2 or 0 in array.shape:
        raise ShapeMismatch(f"scores are {list(array.shape)}; expected [R, G]: runs, games, at least one of each")
    if np.isinf(array).any() or np.isnan(array).all(axis=-2).any():
        raise ConfigError("a game has no finite score; leave it out, or check its runs")
    return array


def _flat(array: FLOAT) -> FLOAT:
    return array.reshape(*array.shape[:-2], -1)


def _count(flat: FLOAT) -> int:
    """Scores that are not nan; the same number in every resample."""
    return int((~np.isnan(flat.reshape(-1, flat.shape[-1])[0])).sum())
