"""What the method asks of a policy, and the little more a learner asks."""

from __future__ import annotations

from typing import Protocol

from torch import Tensor


class Policy(Protocol):
    """The little an anchor asks of a policy; cloned and snapshot references also copy it, as a `torch.nn.Module`."""

    def log_prob(self, obs: Tensor, actions: Tensor) -> Tensor:
        """log π_θ(a|s), [B]."""

    def value(self, obs: Tensor) -> Tensor:
        """V(s), [B]."""


class Evaluator(Policy, Protocol):
    """A policy that says everything about given rows at once."""

    def evaluate(self, obs: Tensor, actions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """log π_θ(a|s), the entropy of π_θ(·|s) and V(s), each [B]."""
