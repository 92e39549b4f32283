"""Station 4. Rewards, log π_good and log π_θ → Δ, Δ̃ and r^OPR: three pure functions."""

from __future__ import annotations

import torch
from torch import Tensor

from optimist.core.steps import require_same_shape


def log_ratio(logp_good: Tensor, logp: Tensor) -> Tensor:
    """Δₜ = log π_good(aₜ|sₜ) − log π_θ(aₜ|sₜ) (paper, eq. 3)."""
    require_same_shape(logp_good=logp_good, logp=logp)
    return logp_good - logp


def bound_log_ratio(log_ratio: Tensor, bound: float) -> Tensor:
    """Δ̃ₜ = clip(2 tanh(Δₜ / 2), −δ, δ), with δ = `bound` (paper, eq. 4)."""
    return (2.0 * torch.tanh(log_ratio / 2.0)).clamp(-bound, bound)


def shape_rewards(rewards: Tensor, bounded_log_ratio: Tensor, scale: float) -> Tensor:
    """rₜ^OPR = rₜ (1 + α Δ̃ₜ), with α = `scale` (paper, eq. 5).

    Multiplicative, as in the paper: a zero reward stays zero, and for a negative reward a positive Δ̃ makes the penalty
    larger.
    """
    require_same_shape(rewards=rewards, bounded_log_ratio=bounded_log_ratio)
    return rewards * (1.0 + scale * bounded_log_ratio.detach())
