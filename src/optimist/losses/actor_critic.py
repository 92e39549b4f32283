"""Actor-critic terms: policy gradients and value errors."""

from __future__ import annotations

from torch import Tensor

from optimist.core.steps import require_same_shape


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
    """Mean over rows of w · value; without weights, the plain mean.

    The mean is over all rows, unlike in a value loss, because w is an importance weight. Where w is truncated or near
    0, the estimate is too small, and fresh rows count for less by the share of replayed ones.
    """
    return values.mean() if weights is None else (weights * values).mean()


def squared_error(values: Tensor, returns: Tensor, weights: Tensor | None = None) -> Tensor:
    """E[(V − R)²], rows weighted by w: a row of weight 0 does not count."""
    require_same_shape(values=values, returns=returns)
    return _average((values - returns).square(), weights)


def clipped_squared_error(
    values: Tensor, values_old: Tensor, returns: Tensor, clip: float, weights: Tensor | None = None
) -> Tensor:
    """E[max((V − R)², (V_clip − R)²)] with V_clip = V_old + clip(V − V_old, ± `clip`) (PPO2's value clipping)."""
    require_same_shape(values=values, values_old=values_old, returns=returns)
    clipped = values_old + (values - values_old).clamp(-clip, clip)
    return _average((values - returns).square().maximum((clipped - returns).square()), weights)


def _average(errors: Tensor, weights: Tensor | None) -> Tensor:
    return errors.mean() if weights is None else (weights * errors).sum() / weights.sum()
