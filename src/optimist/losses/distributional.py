"""Terms of C51: a distribution of returns moved by the Bellman operator and put back on its atoms."""

from __future__ import annotations

from torch import Tensor


def project(probabilities: Tensor, returns: Tensor, discounts: Tensor, atoms: Tensor) -> Tensor:
    """Φ T Z: the distribution of R + γᵐ Z on the evenly spaced `atoms` z, [B, atoms] (Bellemare et al., 2017, eq. 7).

    Each moved atom, clipped to the support, gives its probability [B, atoms] to the two atoms beside it, the nearer
    one more. One product of [atoms, atoms] a row: no scatter, the same sum in the same order on every device.
    """
    spacing = (atoms[-1] - atoms[0]) / (len(atoms) - 1)
    moved = (returns.unsqueeze(-1) + discounts.unsqueeze(-1) * atoms).clamp(atoms[0], atoms[-1])  # [B, from]
    distances = (moved.unsqueeze(-2) - atoms.unsqueeze(-1)).abs() / spacing  # [B, to, from]
    return ((1.0 - distances).clamp_min(0.0) @ probabilities.unsqueeze(-1)).squeeze(-1)


def cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """−Σ p_target log p, each row's own, [B]: the KL divergence to the target but for a constant."""
    return -(targets * logits.log_softmax(-1)).sum(-1)
