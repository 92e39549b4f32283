"""ACER's objective (Wang et al., 2017, arXiv 1611.01224): Retrace, truncation with bias correction, trust region."""

from __future__ import annotations

import torch
from torch import Tensor

from optimist.core.advantages import accumulate_backwards
from optimist.core.steps import require_same_shape

SMALL = 1e-6
"""Smallest probability that counts: an action that the environment forced may have had probability 0."""


def retrace(
    rewards: Tensor, taken: Tensor, next_values: Tensor, ends: Tensor, ratios: Tensor, gamma: float, trace_lambda: float
) -> Tensor:
    """Q_ret(xₜ, aₜ) = rₜ + γ V(xₜ₊₁) + γ λ min(1, ρₜ₊₁) [Q_ret − Q](xₜ₊₁, aₜ₊₁), [T, N] (Munos et al., 2016).

    `taken` is Q(xₜ, aₜ). `next_values` and `ends` are as in `core.advantages.gae`: after an end, and after the last
    row, Q_ret is rₜ + γ `next_values`.
    """
    require_same_shape(rewards=rewards, taken=taken, next_values=next_values, ends=ends, ratios=ratios)
    following = torch.cat([ratios[1:].clamp_max(1.0), torch.zeros_like(ratios[:1])])
    carry = gamma * trace_lambda * following * (~ends).to(taken.dtype)
    return taken + accumulate_backwards(rewards + gamma * next_values - taken, carry)


def policy_objective(
    probabilities: Tensor, behavior: Tensor, actions: Tensor, q: Tensor, q_ret: Tensor, cap: float
) -> Tensor:
    """min(c, ρ) [Q_ret − V] log π(a|s) + Σ_b [1 − c/ρ(b)]₊ π(b|s) [Q(s, b) − V] log π(b|s), each row [B].

    The first term is the policy gradient with truncated importance weights, the second corrects the truncation's bias.
    The gradient passes through the logarithms alone. `behavior` [B, A] are the probabilities of the policy that acted.
    """
    fixed = probabilities.detach()
    log_probabilities = probabilities.clamp_min(SMALL).log()
    ratios = fixed / behavior.clamp_min(SMALL)
    index = actions.long().unsqueeze(-1)
    values = (fixed * q).sum(-1)
    truncated = ratios.gather(-1, index).squeeze(-1).clamp_max(cap) * (q_ret - values)
    correction = (1.0 - cap / ratios.clamp_min(SMALL)).clamp_min(0.0) * fixed * (q - values.unsqueeze(-1))
    return truncated * log_probabilities.gather(-1, index).squeeze(-1) + (correction * log_probabilities).sum(-1)


def within_trust_region(gradient: Tensor, probabilities: Tensor, average: Tensor, bound: float) -> Tensor:
    """g − max(0, (kᵀg − δ) / ‖k‖²) k with k = ∇ KL(π_avg ‖ π) = −π_avg/π, each row of [B, A].

    The closest gradient to g along which the divergence from the average policy grows by at most δ = `bound`.
    """
    k = -average / probabilities.clamp_min(SMALL)
    excess = (k * gradient).sum(-1, keepdim=True) - bound
    return gradient - (excess / k.square().sum(-1, keepdim=True).clamp_min(SMALL)).clamp_min(0.0) * k
