"""Policy-gradient terms: the clipped surrogate, the plain policy gradient, and what goes with them."""

from __future__ import annotations

from torch import Tensor

from optimist.core.shapes import require_same_shape


def clipped_surrogate(
    logp: Tensor, logp_old: Tensor, advantages: Tensor, clip_eps: float, weights: Tensor | None = None
) -> Tensor:
    """−L_CLIP = −E[w min(ρ A, clip(ρ, 1 − ε, 1 + ε) A)] with ρ = π_θ/π_old (PPO; paper, section 3)."""
    require_same_shape(logp=logp, logp_old=logp_old, advantages=advantages)
    ratio = (logp - logp_old).exp()
    surrogate = -(ratio * advantages).minimum(ratio.clamp(1.0 - clip_eps, 1.0 + clip_eps) * advantages)
    return weighted_mean(surrogate, weights)


def policy_gradient(logp: Tensor, advantages: Tensor, weights: Tensor | None = None) -> Tensor:
    """−E[w A log π_θ(a|s)] (A2C)."""
    require_same_shape(logp=logp, advantages=advantages)
    return weighted_mean(-advantages * logp, weights)


def standardize(values: Tensor, statistics_of: Tensor) -> Tensor:
    """`values` less the mean of `statistics_of`, divided by its standard deviation."""
    if statistics_of.numel() < 2:
        return values - statistics_of.mean()
    return (values - statistics_of.mean()) / (statistics_of.std() + 1e-8)


def approximate_kl(logp: Tensor, logp_old: Tensor) -> Tensor:
    """E[(ρ − 1) − log ρ], a low-variance estimate of KL(π_old ‖ π_θ) (Schulman, 2020)."""
    log_ratio = logp.detach() - logp_old
    return (log_ratio.exp() - 1.0 - log_ratio).mean()


def weighted_mean(values: Tensor, weights: Tensor | None) -> Tensor:
    """Mean over rows of w · value; all weights 1 where there are none.

    Over all rows, unlike a value loss: w is an importance weight, so replayed rows estimate what fresh ones do. Where
    w is cut off or next to 0 that estimate is too small, and fresh rows count for less by the share of replayed ones.
    """
    return values.mean() if weights is None else (weights * values).mean()
