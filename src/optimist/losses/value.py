"""Value terms: the squared error, and its clipped variant."""

from __future__ import annotations

from torch import Tensor

from optimist.core.shapes import require_same_shape


def squared_error(values: Tensor, returns: Tensor, weights: Tensor | None = None) -> Tensor:
    """E[(V − R)²], rows counting by their weight w: a row of weight 0 is as good as absent."""
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
