"""NormalizedVector: vector observations less their running mean, over their running spread, inside the network."""

from __future__ import annotations

import torch
from torch import Tensor, nn

BOUND = 10.0
"""Normalised entries are clipped to ± this (as CleanRL does)."""


class NormalizedVector(nn.Module):
    """A vector as float32, standardised by the mean and variance of all observations of the run so far.

    The statistics are buffers: part of checkpoints and of the final policy. They stand still while steps are collected
    and learned from, and move in between, so that a policy is the same before and after an update begins. As it is the
    network that normalises, rollouts and memories hold raw observations, which do not age.
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(size, dtype=torch.float64))
        self.register_buffer("variance", torch.ones(size, dtype=torch.float64))
        self.register_buffer("count", torch.zeros((), dtype=torch.float64))
        self.mean: Tensor
        self.variance: Tensor
        self.count: Tensor

    def forward(self, obs: Tensor) -> Tensor:
        """[B, D], clipped to ± 10; unchanged but for that until something has been observed."""
        return ((obs.float() - self.mean.float()) * self.scale).clamp(-BOUND, BOUND)

    @property
    def scale(self) -> Tensor:
        """1/σ, [D]."""
        return (self.variance + 1e-8).rsqrt().float()

    @torch.no_grad()
    def observe(self, obs: Tensor) -> None:
        """Add observations [B, D] to mean and variance (Chan et al., 1979)."""
        rows = obs.double()
        mean, variance = rows.mean(0), rows.var(0, correction=0)
        total = self.count + len(rows)
        shift = mean - self.mean
        self.variance.copy_(
            (self.variance * self.count + variance * len(rows)) / total
            + shift.square() * self.count * len(rows) / total.square()
        )
        self.mean.add_(shift * len(rows) / total)
        self.count.copy_(total)
