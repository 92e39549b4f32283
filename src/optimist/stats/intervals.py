"""95 % intervals of means (Student), of differences (Welch) and of proportions (Wilson), and Fisher's exact test."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple


class Interval(NamedTuple):
    """A mean with the half width of its 95 % interval; the half width is nan for a single value."""

    mean: float
    half_width: float

    def __str__(self) -> str:
        largest = max((abs(number) for number in self if math.isfinite(number)), default=0.0)
        form = ".2g" if 0 < largest < 0.005 else "z.2f"  # two decimals would show only zeros; z: no negative zero
        half = f" ± {self.half_width:{form}}" if math.isfinite(self.half_width) else ""
        return f"{self.mean:{form}}{half}"


def mean_interval(values: Sequence[float]) -> Interval:
    """Mean with Student's interval."""
    mean = statistics.fmean(values)
    if len(values) < 2:
        return Interval(mean, math.nan)
    return Interval(mean, _t(len(values) - 1) * statistics.stdev(values) / math.sqrt(len(values)))


def difference_interval(values: Sequence[float], others: Sequence[float]) -> Interval:
    """mean(values) − mean(others) with Welch's interval."""
    difference = statistics.fmean(values) - statistics.fmean(others)
    if len(values) < 2 or len(others) < 2:
        return Interval(difference, math.nan)
    parts = [statistics.variance(v) / len(v) for v in (values, others)]
    if sum(parts) == 0:
        return Interval(difference, 0.0)
    degrees = sum(parts) ** 2 / sum(p**2 / (len(v) - 1) for p, v in zip(parts, (values, others), strict=True))
    return Interval(difference, _t(degrees) * math.sqrt(sum(parts)))


def wilson_interval(successes: int, trials: int, confidence: float = 0.95) -> tuple[float, float]:
    """Interval of a proportion (Wilson, 1927); (0, 1) for no trials."""
    if trials == 0:
        return 0.0, 1.0
    from scipy.stats import binomtest

    interval = binomtest(successes, trials).proportion_ci(confidence, method="wilson")
    return float(interval.low), float(interval.high)


def fisher_lower(successes: int, trials: int, other_successes: int, other_trials: int) -> float:
    """One-sided p-value of Fisher's exact test: is the first proportion below the second?"""
    from scipy.stats import fisher_exact

    table = [[successes, trials - successes], [other_successes, other_trials - other_successes]]
    return float(fisher_exact(table, alternative="less").pvalue)


def _t(degrees: float) -> float:
    """97.5 % quantile of Student's t."""
    from scipy.special import stdtrit  # what scipy.stats.t.ppf calls; scipy.stats takes three times as long to import

    return float(stdtrit(degrees, 0.975))
