"""Value targets and advantages of steps that another policy took: importance weights, truncated."""

from __future__ import annotations

import torch
from torch import Tensor

from optimist.core.advantages import accumulate_backwards
from optimist.core.shapes import require_same_shape


def truncated_traces(
    rewards: Tensor,
    values: Tensor,
    next_values: Tensor,
    ends: Tensor,
    ratios: Tensor,
    gamma: float,
    trace_lambda: float,
    cap: float,
) -> tuple[Tensor, Tensor]:
    """Value targets v and advantages rₜ + γ vₜ₊₁ − Vₜ, each [T, N].

    vₜ = Vₜ + ρₜ δₜ + γ cₜ (vₜ₊₁ − Vₜ₊₁) with δₜ = rₜ + γ Vₜ₊₁ − Vₜ, ρ = min(ratio, cap) and c = λ ρ: Retrace's
    truncated traces (Munos et al., 2016) for a critic of states, known as V-trace (Espeholt et al., 2018). With every
    ratio 1 it is the λ-return. `next_values` and `ends` are as in `core.advantages.gae`; behind an end, and behind the
    last row, vₜ₊₁ is `next_values`.
    """
    require_same_shape(rewards=rewards, values=values, next_values=next_values, ends=ends, ratios=ratios)
    truncated = ratios.clamp_max(cap)
    deltas = truncated * (rewards + gamma * next_values - values)
    carry = gamma * trace_lambda * truncated * (~ends).to(values.dtype)
    excess = accumulate_backwards(deltas, carry)  # v − V
    following = next_values.clone()
    following[:-1] += torch.where(ends[:-1], 0.0, excess[1:])
    return values + excess, rewards + gamma * following - values
