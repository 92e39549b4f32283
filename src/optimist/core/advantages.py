"""Station 5. GAE and discounted returns: pure functions over [T, N], used by hosts and for the episodes in M."""

from __future__ import annotations

import torch
from torch import Tensor

from optimist.core.steps import require_same_shape


def gae(
    rewards: Tensor, values: Tensor, next_values: Tensor, ends: Tensor, gamma: float, gae_lambda: float
) -> tuple[Tensor, Tensor]:
    """Generalised advantage estimates and the value targets A + V, each [T, ...] (Schulman et al., 2016).

    `next_values[t]` is V of the state that follows step t: 0 after a real end, the bootstrap value after a time
    limit, else `values[t + 1]`. `ends[t]` is true where the next row does not continue this one.
    """
    require_same_shape(rewards=rewards, values=values, next_values=next_values, ends=ends)
    deltas = rewards + gamma * next_values - values
    advantages = accumulate_backwards(deltas, (gamma * gae_lambda) * (~ends).to(deltas.dtype))
    return advantages, advantages + values


def discounted_returns(rewards: Tensor, ends: Tensor, bootstraps: Tensor, gamma: float) -> Tensor:
    """Rₜ = rₜ + γ Rₜ₊₁ along one episode [L]; at an end, and at its last row, Rₜ = rₜ + γ `bootstraps[t]`."""
    require_same_shape(rewards=rewards, ends=ends, bootstraps=bootstraps)
    last = torch.zeros_like(ends)
    last[-1:] = True
    ends = ends | last
    return accumulate_backwards(rewards + gamma * ends * bootstraps, gamma * (~ends).to(rewards.dtype))


def accumulate_backwards(terms: Tensor, carry: Tensor) -> Tensor:
    """xₜ = termsₜ + carryₜ xₜ₊₁ with x = 0 behind the last row, [T, ...].

    Found by doubling: after k rounds every row holds its sum over the next 2ᵏ rows. log₂ T operations on whole
    tensors instead of T on rows.
    """
    length, reach = len(terms), 1
    sums = terms.clone()
    while reach < length:
        sums[:-reach] += carry[: length - reach] * sums[reach:]
        carry = carry[:-reach] * carry[reach:]  # over twice as many rows
        reach *= 2
    return sums
