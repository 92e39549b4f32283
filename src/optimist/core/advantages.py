"""Station 5. GAE and discounted returns: pure functions over [T, N], used by hosts and for the episodes in M."""

from __future__ import annotations

import torch
from torch import Tensor

from optimist.core.shapes import require_same_shape


def gae(
    rewards: Tensor, values: Tensor, next_values: Tensor, ends: Tensor, gamma: float, gae_lambda: float
) -> tuple[Tensor, Tensor]:
    """Generalised advantage estimates and the value targets A + V, each [T, N] (Schulman et al., 2016).

    `next_values[t]` is V of the state that follows step t: 0 after a real end, the bootstrap value after a time
    limit, else `values[t + 1]`. `ends[t]` is true where the next row does not continue this one, whatever the reason.
    """
    require_same_shape(rewards=rewards, values=values, next_values=next_values, ends=ends)
    deltas = rewards + gamma * next_values - values
    carry = (gamma * gae_lambda) * (~ends).to(deltas.dtype)
    advantages = torch.empty_like(deltas)
    running = torch.zeros_like(deltas[0])
    for t in range(len(deltas) - 1, -1, -1):
        running = deltas[t] + carry[t] * running
        advantages[t] = running
    return advantages, advantages + values


def discounted_returns(rewards: Tensor, ends: Tensor, bootstraps: Tensor, gamma: float) -> Tensor:
    """Rₜ = rₜ + γ Rₜ₊₁ along one episode [L]; at an end, and at its last row, Rₜ = rₜ + γ `bootstraps[t]`."""
    require_same_shape(rewards=rewards, ends=ends, bootstraps=bootstraps)
    rows = list(zip(rewards.tolist(), ends.tolist(), bootstraps.tolist(), strict=True))
    following = rows[-1][2]
    returns = []
    for reward, end, bootstrap in reversed(rows):
        following = reward + gamma * (bootstrap if end else following)
        returns.append(following)
    return torch.tensor(returns[::-1], dtype=rewards.dtype, device=rewards.device)
