"""What a gradient step of a value-based learner gives."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class QTerms:
    """The terms of one loss, coefficients included, so that they add up."""

    td: Tensor
    anchor: Tensor
    mean_q: Tensor  # not part of the sum
    row_losses: Tensor  # [B] not part of the sum

    @property
    def total(self) -> Tensor:
        """L_total."""
        return self.td + self.anchor
