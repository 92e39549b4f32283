"""Station 6. L_BC, and the weight of each cloned step."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, median, pstdev

import torch
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


def trust_weights(logp: Tensor, logp_start: Tensor, trust: float) -> Tensor:
    """1 where π/π_start ≤ 1 + `trust`, else 0: beyond that PPO's clipped objective would not follow either."""
    require_same_shape(logp=logp, logp_start=logp_start)
    return (logp.detach() - logp_start <= math.log1p(trust)).to(logp.dtype)


def chosen_weights(forced: Tensor) -> Tensor:
    """0 for steps whose action the environment forced; the others weigh so that a mean over all is one over them."""
    chosen = (~forced).float()
    return chosen * (len(chosen) / chosen.sum().clamp_min(1.0))


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


TAIL_MARGIN = 1.0
"""Natural logarithm of how much rarer than the best of so many episodes a return must be before it is cloned."""


def tail_weights(episodes: Sequence[StoredEpisode], recent: GroupWindows, finished: int) -> list[float]:
    """clip((R − m)/s − log(n/2k) − 1, 0, 1) of each episode: how far it exceeds what luck explains of its rank.

    m is the median of the recent returns of its group and s their mean excess above m. If returns above m are
    exponential with mean s, the k-th best of n = `finished` episodes is at m + s log(n/2k). k counts the stored
    episodes of the group with at least this return. Standard deviations do not have this property: where returns are
    exponential, those of the best of many episodes are many deviations above the mean by luck alone.
    """
    weights = [0.0] * len(episodes)
    for group, window in recent.windows.items():
        own = [i for i, episode in enumerate(episodes) if episode.group == group]
        returns = torch.tensor([episodes[i].total_reward for i in own], dtype=torch.float64)
        middle, scale = _median_and_excess(window.returns)
        ranks = len(own) - torch.searchsorted(returns.sort().values, returns)  # k
        by_luck = (finished / (2.0 * ranks)).log().clamp_min(0.0)
        above = returns - middle
        found = (above / scale - by_luck - TAIL_MARGIN).clamp(0.0, 1.0) if scale > 0.0 else (above > 0.0).double()
        for i, weight in zip(own, found.tolist(), strict=True):
            weights[i] = weight
    return weights


def _median_and_excess(returns: Sequence[float]) -> tuple[float, float]:
    """The median, and the mean excess over it of the returns above it; 0 if none is above."""
    middle = median(returns)
    above = [value - middle for value in returns if value > middle]
    return middle, fmean(above) if above else 0.0
