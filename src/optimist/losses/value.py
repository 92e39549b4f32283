"""Value terms: the squared error, and its clipped variant."""

from __future__ import annotations

from torch import Tensor

from optimist.core.shapes import require_same_shape
from optimist.losses.policy import weighted_mean


def squared_error(values: Tensor, returns: Tensor, weights: Tensor | None = None) -> Tensor:
    """E[w (V − R)²]."""
    require_same_shape(values=values, returns=returns)
    return weighted_mean((values - returns).square(), weights)


def clipped_squared_error(
    values: Tensor, values_old: Tensor, returns: Tensor, clip: float, weights: Tensor | None = None
) -> Tensor:
    """E[w max((V − R)², (V_clip − R)²)], V_clip = V_old + clip(V − V_old, ± `clip`) (PPO2's value clipping)."""
    require_same_shape(values=values, values_old=values_old, returns=returns)
    clipped = values_old + (values - values_old).clamp(-clip, clip)
    return weighted_mean((values - returns).square().maximum((clipped - returns).square()), weights)
