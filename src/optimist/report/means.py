"""Means over a few seeds: Student's 95 % intervals, and Welch's for a difference."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

MOST_DEGREES = 1e6
"""From here on t is normal to six digits."""


class Interval(NamedTuple):
    """A mean and the half width of its 95 % interval; nan where one value says nothing about the spread."""

    mean: float
    half_width: float

    def __str__(self) -> str:
        largest = max((abs(number) for number in self if math.isfinite(number)), default=0.0)
        form = ".2g" if 0 < largest < 0.005 else "z.2f"  # two decimals would show only zeros; z: no zero is negative
        half = f" ± {self.half_width:{form}}" if math.isfinite(self.half_width) else ""
        return f"{self.mean:{form}}{half}"


@cache
def quantile_95(degrees: float) -> float:
    """Of Student's t, two-sided: t with P(|T| < t) = 0.95, for any number of degrees of freedom from 1 on.

    With t = √ν tan θ the density is C cosᵛ⁻¹ θ, C = 2 Γ((ν + 1)/2) / (√π Γ(ν/2)), smooth enough for 32 nodes.
    """
    degrees = min(max(degrees, 1.0), MOST_DEGREES)
    nodes, weights = np.polynomial.legendre.leggauss(32)
    log_c = math.log(2.0) + math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2) - math.log(math.pi) / 2
    low, high = 0.0, 13.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        top = math.atan(middle / math.sqrt(degrees))
        inside = top / 2 * float(weights @ np.cos(top * (nodes + 1) / 2) ** (degrees - 1))
        low, high = (middle, high) if math.exp(log_c) * inside < 0.95 else (low, middle)
    return (low + high) / 2


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
