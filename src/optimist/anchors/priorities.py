"""Priorities: which of many rows to draw, in proportion to p^α, and the importance weights that make up for it."""

from __future__ import annotations

import torch
from torch import Tensor


class Priorities:
    """p^α of each row of a buffer; a row of priority 0 is never drawn (Schaul et al., 2016).

    A draw costs one running sum over the rows: for the 100,000 of these buffers less than a gradient step, with no
    tree to keep.
    """

    def __init__(
        self, size: int, exponent: float, importance_exponent: float, device: torch.device | str = "cpu"
    ) -> None:
        self.exponent, self.importance_exponent = exponent, importance_exponent
        self.powers = torch.zeros(size, dtype=torch.float64, device=device)
        self.largest = 1.0  # p of new rows: the largest so far

    def add(self, rows: Tensor) -> None:
        """New rows get the largest priority seen so far, so that each is soon drawn."""
        self.powers[rows] = self.largest**self.exponent

    def remove(self, rows: Tensor) -> None:
        """These are never drawn."""
        self.powers[rows] = 0.0

    def set(self, rows: Tensor, priorities: Tensor) -> None:
        """p of drawn rows, anew."""
        # A network that has diverged gives no usable number; its loss says so, and drawing must not fail before.
        usable = priorities.detach().double().nan_to_num(1e-6).clamp(1e-6, 1e12)
        self.powers[rows] = usable**self.exponent
        self.largest = max(self.largest, float(usable.max()))

    def draw(self, size: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """`size` rows with replacement, [B], and their importance weights (N P(i))^−β, at most 1, [B]."""
        running = self.powers.cumsum(0)
        total = running[-1:]
        where = torch.rand(size, generator=generator, dtype=torch.float64, device=generator.device).to(running.device)
        last = torch.searchsorted(running, total)  # the last row with a priority; rounding may reach behind it
        rows = torch.searchsorted(running, where * total, right=True).minimum(last)
        smallest = torch.where(self.powers > 0, self.powers, torch.inf).min()
        return rows, (self.powers[rows] / smallest) ** -self.importance_exponent

    def state_dict(self) -> dict[str, Tensor | float]:
        """All of it."""
        return {"powers": self.powers.clone(), "largest": self.largest}

    def load_state_dict(self, state: dict[str, Tensor | float]) -> None:
        """Take over `state_dict`."""
        powers, largest = state["powers"], state["largest"]
        assert isinstance(powers, Tensor)
        self.powers.copy_(powers)
        self.largest = float(largest)
