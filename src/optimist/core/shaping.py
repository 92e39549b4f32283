"""Station 4. Rewards, log π_good and log π_θ → Δ, Δ̃ and r^OPR: three pure functions."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from optimist.core.shapes import require_same_shape
from optimist.errors import unknown_name

ShapingMode = Literal["multiplicative", "sign_aware", "additive"]


def log_ratio(logp_good: Tensor, logp: Tensor) -> Tensor:
    """Δₜ = log π_good(aₜ|sₜ) − log π_θ(aₜ|sₜ) (paper, eq. 3)."""
    require_same_shape(logp_good=logp_good, logp=logp)
    return logp_good - logp


def bound_log_ratio(log_ratio: Tensor, bound: float) -> Tensor:
    """Δ̃ₜ = clip(2 tanh(Δₜ / 2), −δ, δ), with δ = `bound` (paper, eq. 4)."""
    return (2.0 * torch.tanh(log_ratio / 2.0)).clamp(-bound, bound)


def shape_rewards(
    rewards: Tensor, bounded_log_ratio: Tensor, scale: float, mode: ShapingMode = "multiplicative"
) -> Tensor:
    """rₜ^OPR = rₜ (1 + α Δ̃ₜ), with α = `scale` (paper, eq. 5), or one of its two repairs.

    `multiplicative` is the paper's: a zero reward stays zero, and for a negative reward a positive Δ̃ makes the
    penalty larger. `sign_aware` is r + α |r| Δ̃: agreeing with good episodes never costs. `additive` is r + α Δ̃:
    it also acts where the reward is zero.
    """
    require_same_shape(rewards=rewards, bounded_log_ratio=bounded_log_ratio)
    signal = scale * bounded_log_ratio.detach()
    if mode == "multiplicative":
        return rewards * (1.0 + signal)
    if mode == "sign_aware":
        return rewards + rewards.abs() * signal
    if mode == "additive":
        return rewards + signal
    raise unknown_name("shaping", mode, ["multiplicative", "sign_aware", "additive"])
