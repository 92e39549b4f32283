"""Station 6. L_BC, and the weight of each cloned step."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, pstdev

from torch import Tensor

from optimist.core.admission import GroupWindows
from optimist.core.eviction import StoredEpisode
from optimist.core.steps import require_same_shape


def bc_loss(logp: Tensor, weights: Tensor | None = None) -> Tensor:
    """L_BC = −E_{(s,a)~M} [w(s,a) log π_θ(a|s)], w = 1 in the paper (eq. 6)."""
    if weights is None:
        return -logp.mean()
    require_same_shape(logp=logp, weights=weights)
    return -(weights.detach() * logp).mean()


def advantage_weights(returns: Tensor, values: Tensor) -> Tensor:
    """w = min((R − V)₊, 1): a step that did no better than expected weighs nothing.

    A cheap failure beats its value by little and is hardly cloned; a first success beats it by a lot; and once the
    value has caught up cloning ends by itself.
    """
    require_same_shape(returns=returns, values=values)
    return (returns - values.detach()).clamp(0.0, 1.0)


def luck_weights(episodes: Sequence[StoredEpisode], recent: GroupWindows, luck: float) -> list[float]:
    """clip((R − m)/s − `luck`, 0, 1) of each episode, with m and s of the recent returns of its group.

    Where returns spread by s, some are well above their mean by chance; cloning those teaches nothing. A return many
    s above the mean is something the policy no longer does, or too rarely to learn from: where one episode in a hundred
    reaches a goal it is 10 s, where every fourth does less than 2.
    """
    spreads = {group: (fmean(window.returns), pstdev(window.returns)) for group, window in recent.windows.items()}
    return [_excess(episode.total_reward, *spreads[episode.group], luck) for episode in episodes]


def _excess(total_reward: float, mean: float, deviation: float, luck: float) -> float:
    above = total_reward - mean - luck * deviation
    return min(above / deviation, 1.0) if above > 0.0 < deviation else float(above > 0.0)
