"""Counts out of n: Wilson intervals and Fisher's exact test, in closed form."""

from __future__ import annotations

from math import comb, sqrt


def wilson_interval(successes: int, trials: int, z: float = 1.959964) -> tuple[float, float]:
    """95 % interval of a proportion (Wilson, 1927); (0, 1) where there were no trials."""
    if trials == 0:
        return 0.0, 1.0
    share = successes / trials
    center = share + z * z / (2 * trials)
    spread = z * sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
    scale = 1 + z * z / trials
    return max(0.0, (center - spread) / scale), min(1.0, (center + spread) / scale)


def fisher_lower(successes: int, trials: int, other_successes: int, other_trials: int) -> float:
    """One-sided p-value (Fisher's exact test) of the first proportion being below the second."""
    total, both = successes + other_successes, trials + other_trials
    ways = comb(both, total)
    fewest = max(0, total - other_trials)
    return sum(comb(trials, k) * comb(other_trials, total - k) for k in range(fewest, successes + 1)) / ways
