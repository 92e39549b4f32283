"""What the collector, evaluations and anchors ask of a policy network, whatever it learns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor, nn


class PolicyNetwork(nn.Module, ABC):
    """A network that acts, and that says how probable an action is and what a state is worth."""

    @abstractmethod
    def act(self, obs: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """A sampled action per row."""

    def chances(self, rows: int, generator: torch.Generator) -> tuple[Tensor, ...]:
        """The random numbers that so many decisions take, a row each: drawn before it is known who decides when."""
        raise NotImplementedError(f"{type(self).__name__} draws when it acts")

    def act_on(self, obs: Tensor, chances: Sequence[Tensor]) -> Tensor:
        """As `act`, by numbers that are drawn already."""
        raise NotImplementedError(f"{type(self).__name__} draws when it acts")

    @abstractmethod
    def act_greedily(self, obs: Tensor) -> Tensor:
        """The best action per row."""

    def observe(self, obs: Tensor) -> None:
        """Look at fresh observations [B, ...], between updates; those that keep statistics of them do so here."""

    def follow(self, other: PolicyNetwork) -> None:
        """Act as `other`, of the same kind, acts now."""
        self.load_state_dict(other.state_dict())

    @abstractmethod
    def evaluate(self, obs: Tensor, actions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """log π_θ(a|s), the entropy of π_θ(·|s) and V(s), each [B]."""

    @abstractmethod
    def log_prob(self, obs: Tensor, actions: Tensor) -> Tensor:
        """log π_θ(a|s), [B]."""

    @abstractmethod
    def action_params(self, obs: Tensor) -> Tensor:
        """The parameters of π_θ(·|s), logits for a choice among actions, [B, num_params]."""

    @abstractmethod
    def value(self, obs: Tensor) -> Tensor:
        """V(s), [B]."""
