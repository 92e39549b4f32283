"""Terms of Q-learning: the (double) TD target, its error, and the large margin of demonstrations."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from optimist.core.steps import require_same_shape


def td_target(returns: Tensor, discounts: Tensor, next_q: Tensor, next_actions: Tensor | None = None) -> Tensor:
    """y = R + γᵐ Q_target(s′, a*), [B]; a* maximises `next_q` itself, or is given (double DQN).

    `next_q` [B, A] is the target network's; `discounts` is 0 after a real end.
    """
    require_same_shape(returns=returns, discounts=discounts)
    if next_actions is None:
        return returns + discounts * next_q.amax(-1)
    return returns + discounts * next_q.gather(-1, next_actions.unsqueeze(-1)).squeeze(-1)


def td_losses(values: Tensor, targets: Tensor, kind: Literal["huber", "squared"]) -> Tensor:
    """Huber's loss ½δ² (|δ| − ½ beyond 1) or δ², δ = y − Q(s, a), for each row, [B]."""
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


def project(probabilities: Tensor, returns: Tensor, discounts: Tensor, atoms: Tensor) -> Tensor:
    """Φ T Z: the distribution of R + γᵐ Z on the evenly spaced `atoms` z, [B, atoms] (Bellemare et al., 2017, eq. 7).

    Each moved atom is clipped to the support, and its probability is shared by the two nearest atoms, by distance.
    """
    places = (returns.unsqueeze(-1) + discounts.unsqueeze(-1) * atoms).clamp(atoms[0], atoms[-1])  # [B, atoms]
    places = (places - atoms[0]) * ((len(atoms) - 1) / (atoms[-1] - atoms[0]))  # in units of the spacing, from 0
    return scattered(probabilities, places) if places.device.type == "cpu" else spread(probabilities, places)


def scattered(probabilities: Tensor, places: Tensor) -> Tensor:
    """Share probabilities at real places in [0, atoms − 1] between the two nearest whole places, by scatter-add."""
    last = probabilities.shape[-1] - 1
    lower = places.floor().clamp(0, last)
    above = places - lower
    index = lower.long()
    result = torch.zeros_like(probabilities).scatter_add_(-1, index, probabilities * (1.0 - above))
    return result.scatter_add_(-1, (index + 1).clamp_max(last), probabilities * above)


def spread(probabilities: Tensor, places: Tensor) -> Tensor:
    """The same as one product of [atoms, atoms] per row: without scatter, so in the same order on every device."""
    whole = torch.arange(probabilities.shape[-1], device=places.device, dtype=places.dtype)
    shares = (1.0 - (places.unsqueeze(-2) - whole.unsqueeze(-1)).abs()).clamp_min(0.0)  # [B, to, from]
    return (shares @ probabilities.unsqueeze(-1)).squeeze(-1)


def cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """−Σ p_target log p for each row, [B]: the KL divergence to the target up to a constant."""
    return -(targets * logits.log_softmax(-1)).sum(-1)
