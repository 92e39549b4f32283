"""Station 6. How far a stored episode lies beyond what luck explains: the part of it that is worth cloning."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, pstdev

from optimist.core.retention import Stored
from optimist.core.threshold import Thresholds


def beyond_luck(episodes: Sequence[Stored], recent: Thresholds, luck: float) -> list[float]:
    """clip((R − m)/s − `luck`, 0, 1) of each episode, with m and s of the recent returns of its group.

    Of returns that spread by s some lie well above their mean by chance, and following those leads nowhere. One that
    lies many s above them is something the policy no longer does, or does too seldom to learn it by itself: where one
    episode in a hundred reaches a goal it is 10 s, where every fourth does less than 2.
    """
    spreads = {group: (fmean(window.returns), pstdev(window.returns)) for group, window in recent.windows.items()}
    return [_excess(e.total_reward, *spreads[0 if recent.shared else e.group], luck) for e in episodes]


def _excess(total_reward: float, mean: float, deviation: float, luck: float) -> float:
    above = total_reward - mean - luck * deviation
    return min(above / deviation, 1.0) if above > 0.0 < deviation else float(above > 0.0)
