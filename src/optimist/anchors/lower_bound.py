"""The lower-bound losses of self-imitation: only what went better than expected counts (Oh et al., 2018, eqs. 2, 3)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from optimist.anchors.config import SILConfig
from optimist.core.shapes import require_same_shape


@dataclass(frozen=True)
class SelfImitationTerms:
    """The terms of one self-imitation loss; coefficients are not in them yet."""

    policy: Tensor  # Σ w min(−log π, cap) (R − V)₊ / n
    value: Tensor  # gradient of ½ Σ w ((R − V)₊)² / n, errors clipped
    entropy: Tensor  # Σ w H over the steps with R > V, / n
    advantage: Tensor  # Σ (R − V)₊ / n, to log
    valid: Tensor  # share of steps with R > V, to log

    def total(self, config: SILConfig) -> Tensor:
        """L_policy + β_value L_value − c_ent H, times the weight of self-imitation."""
        return config.coef * (self.policy + config.value_coef * self.value - config.entropy_coef * self.entropy)


def self_imitation(
    logp: Tensor, entropy: Tensor, values: Tensor, returns: Tensor, weights: Tensor, config: SILConfig
) -> SelfImitationTerms:
    """L_policy = −log π (R − V)₊ and L_value = ½ ((R − V)₊)² as the authors' code has them, on B drawn steps.

    The advantage is clipped and no gradient passes through it. Every sum is divided by n, the number of steps with
    R > V or `min_normalizer` if that is larger: a batch with few of them makes a small step. The value term's number is
    ½ V · clip(V − R, −clip, 0), whose gradient is that of the squared error with its error clipped.
    """
    require_same_shape(logp=logp, entropy=entropy, values=values, returns=returns, weights=weights)
    clip = config.advantage_clip
    shortfall = returns - values.detach()
    better = (shortfall > 0).to(logp.dtype)
    count = better.sum().clamp_min(config.min_normalizer)
    advantages = shortfall.clamp(0.0, clip)
    return SelfImitationTerms(
        policy=(weights * advantages * capped_negative_logp(logp, config.max_negative_logp)).sum() / count,
        value=0.5 * (weights * values * -advantages).sum() / count,
        entropy=(weights * better * entropy).sum() / count,
        advantage=advantages.sum() / count,
        valid=better.mean(),
    )


def capped_negative_logp(logp: Tensor, cap: float) -> Tensor:
    """min(−log π, cap) in value, with the gradient of −log π everywhere (straight-through)."""
    negative = -logp
    with torch.no_grad():
        excess = negative.clamp_max(cap) - negative
    return negative + excess
