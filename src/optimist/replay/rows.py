"""PrioritizedRows: a ring buffer of rows, drawn in proportion to p^α, with the weights that correct for it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


class PrioritizedRows:
    """`size` rows in named columns; new rows overwrite the oldest. A row of priority 0 is never drawn.

    A draw (Schaul et al., 2016) costs one running sum over the rows. For 100,000 rows this is less than a gradient step
    and needs no tree.
    """

    def __init__(
        self, size: int, exponent: float, importance_exponent: float, device: torch.device | str = "cpu"
    ) -> None:
        self.size, self.exponent, self.importance_exponent = size, exponent, importance_exponent
        self.columns: dict[str, Tensor] = {}  # name → [size, ...]
        self.powers = torch.zeros(size, dtype=torch.float64, device=device)  # p^α of each row
        self.largest = 1.0  # p of new rows: the largest so far
        self.head = 0  # the next row to write
        self.filled = 0  # rows in use

    def advance(self, count: int) -> Tensor:
        """The next `count` rows to write; of a full buffer the oldest ones."""
        rows = torch.arange(self.head, self.head + count, device=self.powers.device) % self.size
        self.filled = min(max(self.filled, self.head + count), self.size)
        self.head = (self.head + count) % self.size
        return rows

    def write(self, name: str, rows: Tensor, values: Tensor) -> None:
        """Write values [B, ...] to rows [B] of a column, which the first call allocates."""
        if name not in self.columns:
            self.columns[name] = values.new_zeros((self.size, *values.shape[1:]))
        self.columns[name][rows] = values

    def prioritize(self, rows: Tensor) -> None:
        """Give new rows the largest priority so far, so that each is soon drawn."""
        self.powers[rows] = self.largest**self.exponent

    def remove(self, rows: Tensor) -> None:
        """Exclude rows from drawing."""
        self.powers[rows] = 0.0

    def set_priorities(self, rows: Tensor, priorities: Tensor) -> None:
        """Set the priorities of drawn rows."""
        # A diverged network gives nan or inf; its loss raises the error, so drawing must not fail before.
        usable = priorities.detach().double().nan_to_num(1e-6).clamp(1e-6, 1e12)
        self.powers[rows] = usable**self.exponent
        self.largest = max(self.largest, float(usable.max()))

    def draw_rows(self, count: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Draw `count` rows with replacement [B], with their importance weights (N P(i))^−β, at most 1, [B]."""
        running = self.powers.cumsum(0)
        total = running[-1:]
        where = torch.rand(count, generator=generator, dtype=torch.float64, device=generator.device).to(running.device)
        last = torch.searchsorted(running, total)  # the last row with a priority; rounding may exceed it
        rows = torch.searchsorted(running, where * total, right=True).minimum(last)
        smallest = torch.where(self.powers > 0, self.powers, torch.inf).min()
        return rows, (self.powers[rows] / smallest) ** -self.importance_exponent

    @property
    def num_bytes(self) -> int:
        """Bytes allocated for the columns."""
        return sum(column.nbytes for column in self.columns.values())

    def state_dict(self) -> dict[str, Any]:
        """Return all rows written so far, and the priorities."""
        columns = {name: column[: self.filled].clone() for name, column in self.columns.items()}
        return {"head": self.head, "columns": columns, "powers": self.powers.clone(), "largest": self.largest}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore `state_dict`."""
        if len(state["powers"]) != self.size:
            raise ValueError(f"the saved replay has {len(state['powers'])} rows, this one {self.size}")
        self.powers.copy_(state["powers"])
        self.head, self.largest, self.filled, self.columns = state["head"], float(state["largest"]), 0, {}
        for name, values in state["columns"].items():
            self.filled = len(values)
            self.write(name, torch.arange(self.filled), values.to(self.powers.device))
