"""Means over a few seeds: Student's 95 % intervals, and Welch's for a difference."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple

T_95 = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)
"""Two-sided 95 % quantiles of Student's t for 1 to 30 degrees of freedom."""


class Interval(NamedTuple):
    """A mean and the half width of its 95 % interval; nan where one value says nothing about the spread."""

    mean: float
    half_width: float

    def __str__(self) -> str:
        return f"{self.mean:.2f} ± {self.half_width:.2f}" if math.isfinite(self.half_width) else f"{self.mean:.2f}"


def quantile_95(degrees: float) -> float:
    """Of Student's t, two-sided; between whole degrees linear in 1/degrees, beyond 30 by an expansion around 1.96."""
    if degrees > len(T_95):
        return 1.959964 + 2.372 / degrees + 2.82 / degrees**2
    degrees = max(degrees, 1.0)
    low, high = math.floor(degrees), min(math.floor(degrees) + 1, len(T_95))
    share = 0.0 if low == high else (1 / degrees - 1 / low) / (1 / high - 1 / low)
    return T_95[low - 1] + share * (T_95[high - 1] - T_95[low - 1])


def mean_interval(values: Sequence[float]) -> Interval:
    """The mean with Student's interval."""
    if len(values) < 2:
        return Interval(statistics.fmean(values), math.nan)
    error = statistics.stdev(values) / math.sqrt(len(values))
    return Interval(statistics.fmean(values), quantile_95(len(values) - 1) * error)


def difference_interval(values: Sequence[float], others: Sequence[float]) -> Interval:
    """mean(values) − mean(others) with Welch's interval."""
    difference = statistics.fmean(values) - statistics.fmean(others)
    if len(values) < 2 or len(others) < 2:
        return Interval(difference, math.nan)
    parts = [statistics.variance(v) / len(v) for v in (values, others)]
    if sum(parts) == 0:
        return Interval(difference, 0.0)
    degrees = sum(parts) ** 2 / sum(p**2 / (len(v) - 1) for p, v in zip(parts, (values, others), strict=True))
    return Interval(difference, quantile_95(degrees) * math.sqrt(sum(parts)))
