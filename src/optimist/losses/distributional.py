"""Terms of C51: a distribution of returns moved by the Bellman operator and put back on its atoms."""

from __future__ import annotations

import torch
from torch import Tensor


def project(probabilities: Tensor, returns: Tensor, discounts: Tensor, atoms: Tensor) -> Tensor:
    """Φ T Z: the distribution of R + γᵐ Z on the evenly spaced `atoms` z, [B, atoms] (Bellemare et al., 2017, eq. 7).

    Each moved atom, clipped to the support, gives its probability [B, atoms] to the two atoms beside it, the nearer
    one more.
    """
    places = (returns.unsqueeze(-1) + discounts.unsqueeze(-1) * atoms).clamp(atoms[0], atoms[-1])  # [B, atoms]
    places = (places - atoms[0]) * ((len(atoms) - 1) / (atoms[-1] - atoms[0]))  # in units of the spacing, from 0
    return scattered(probabilities, places) if places.device.type == "cpu" else spread(probabilities, places)


def scattered(probabilities: Tensor, places: Tensor) -> Tensor:
    """Probabilities at real places in [0, atoms − 1] shared by the whole places beside them, added one by one."""
    last = probabilities.shape[-1] - 1
    lower = places.floor().clamp(0, last)
    above = places - lower
    index = lower.long()
    result = torch.zeros_like(probabilities).scatter_add_(-1, index, probabilities * (1.0 - above))
    return result.scatter_add_(-1, (index + 1).clamp_max(last), probabilities * above)


def spread(probabilities: Tensor, places: Tensor) -> Tensor:
    """The same as one product of [atoms, atoms] a row: no scatter, so in the same order whatever the device."""
    whole = torch.arange(probabilities.shape[-1], device=places.device, dtype=places.dtype)
    shares = (1.0 - (places.unsqueeze(-2) - whole.unsqueeze(-1)).abs()).clamp_min(0.0)  # [B, to, from]
    return (shares @ probabilities.unsqueeze(-1)).squeeze(-1)


def cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """−Σ p_target log p, each row's own, [B]: the KL divergence to the target but for a constant."""
    return -(targets * logits.log_softmax(-1)).sum(-1)
