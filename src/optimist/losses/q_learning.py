"""Terms of Q-learning: the (double) TD target, its error, and the large margin of demonstrations."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from optimist.core.shapes import require_same_shape


def td_target(returns: Tensor, discounts: Tensor, next_q: Tensor, next_actions: Tensor | None = None) -> Tensor:
    """y = R + γᵐ Q_target(s′, a*), [B]; a* maximises `next_q` itself, or is given (double DQN).

    `next_q` [B, A] is the target network's; `discounts` is 0 behind a real end.
    """
    require_same_shape(returns=returns, discounts=discounts)
    if next_actions is None:
        return returns + discounts * next_q.amax(-1)
    return returns + discounts * next_q.gather(-1, next_actions.unsqueeze(-1)).squeeze(-1)


def td_losses(values: Tensor, targets: Tensor, kind: Literal["huber", "squared"]) -> Tensor:
    """Huber's loss ½δ² (|δ| − ½ beyond 1) or δ², δ = y − Q(s, a), each row's own, [B]."""
    require_same_shape(values=values, targets=targets)
    if kind == "huber":
        return torch.nn.functional.smooth_l1_loss(values, targets, reduction="none")
    return (values - targets).square()


def td_gradients(values: Tensor, targets: Tensor, kind: Literal["huber", "squared"]) -> Tensor:
    """∂/∂Q(s, a) of `td_losses`, [B]: the error, clipped to ± 1 by Huber's loss, or twice the error."""
    errors = values - targets
    return errors.clamp_(-1.0, 1.0) if kind == "huber" else errors.mul_(2.0)


def large_margin(q: Tensor, actions: Tensor, margin: float) -> Tensor:
    """max_b [Q(s, b) + m · (b ≠ a)] − Q(s, a) ≥ 0, [B] (Hester et al., 2018, eq. 1), with m = `margin`.

    Zero once the action is better than all others by the margin.
    """
    index = actions.long().unsqueeze(-1)
    raised = (q + margin).scatter(-1, index, q.gather(-1, index))
    return raised.amax(-1) - q.gather(-1, index).squeeze(-1)
