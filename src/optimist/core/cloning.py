"""Station 6. L_BC, and the weight of each cloned step."""

from __future__ import annotations

from torch import Tensor

from optimist.core.shapes import require_same_shape


def bc_loss(logp: Tensor, weights: Tensor | None = None) -> Tensor:
    """L_BC = −E_{(s,a)~M} [w(s,a) log π_θ(a|s)], w = 1 in the paper (eq. 6)."""
    if weights is None:
        return -logp.mean()
    require_same_shape(logp=logp, weights=weights)
    return -(weights.detach() * logp).mean()


def advantage_weights(returns: Tensor, values: Tensor, scale: Tensor | float) -> Tensor:
    """w = min((R − V)₊ / scale, 1): a step that did no better than expected weighs nothing.

    A cheap failure beats its value by little and is hardly cloned; a first success beats it by a lot; and once the
    value has caught up the pull ends by itself.
    """
    require_same_shape(returns=returns, values=values)
    return ((returns - values.detach()) / scale).clamp(0.0, 1.0)
