"""The tree under prioritised replay: draws leaves by their weight, many at once, on any device."""

from __future__ import annotations

import torch
from torch import Tensor

WIDTH, WIDTH_ON_GPU = 64, 1024
"""Children of a node. Wide nodes make a shallow tree: four levels hold a million leaves and more; on a GPU, where
adding up is cheap and every level takes some twenty launches, two do."""


class SumTree:
    """Weights [size], with the sums over blocks of w, w², … of them, w = 64 (1024 on a GPU).

    A sum is added up anew whenever a weight below it changes, never corrected by a difference: rounding does not pile
    up, the same leaf may be set twice in one call, and equal weights make equal trees however they came about.
    """

    def __init__(self, size: int, device: torch.device | str = "cpu", width: int | None = None) -> None:
        self.width = width or (WIDTH if torch.device(device).type == "cpu" else WIDTH_ON_GPU)
        self.levels: list[Tensor] = []  # leaves first, each padded to whole blocks
        length = size
        while not self.levels or length > 1:
            blocks = -(-length // self.width)
            self.levels.append(torch.zeros(blocks * self.width, dtype=torch.float64, device=device))
            length = blocks
        self.size = size

    @property
    def total(self) -> Tensor:
        """The sum of all weights."""
        return self.levels[-1].sum()

    @property
    def weights(self) -> Tensor:
        """The leaves, [size]."""
        return self.levels[0][: self.size]

    def set(self, leaves: Tensor, weights: Tensor) -> None:
        """Give leaves [B] new weights [B], at least 0."""
        self.levels[0][leaves] = weights.to(torch.float64)
        nodes = leaves
        for below, above in zip(self.levels, self.levels[1:], strict=False):
            nodes = nodes // self.width
            above[nodes] = below.view(-1, self.width)[nodes].sum(-1)

    def find(self, shares: Tensor) -> Tensor:
        """For each share in [0, 1) of the total, the leaf where the running sum of weights exceeds it.

        A leaf of weight 0 is never found, as long as some weight is above 0.
        """
        mass = shares.to(torch.float64) * self.total
        nodes = torch.zeros_like(shares, dtype=torch.int64)
        for level in reversed(self.levels):
            sums = level.view(-1, self.width)[nodes].cumsum(-1)  # [B, w]
            end = sums[:, -1]
            mass = mass.minimum(torch.nextafter(end, torch.zeros_like(end)))  # the sum above may round higher
            child = (sums <= mass.unsqueeze(-1)).sum(-1)
            before = torch.where(child > 0, sums.gather(-1, (child - 1).clamp_min(0).unsqueeze(-1)).squeeze(-1), 0.0)
            mass = mass - before
            nodes = nodes * self.width + child
        return nodes
