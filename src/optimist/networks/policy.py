"""PolicyNetwork: the interface of actor-critics and Q-networks for collectors, evaluations and anchors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor, nn


class PolicyNetwork(nn.Module, ABC):
    """A network that samples actions and gives their log-probabilities and state values."""

    @abstractmethod
    def act(self, obs: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """A sampled action per row."""

    def sample_noise(self, num_rows: int, generator: torch.Generator) -> tuple[Tensor, ...]:
        """Action noise for `num_rows` decisions, drawn ahead of time."""
        raise NotImplementedError(f"{type(self).__name__} cannot sample action noise ahead of time: use act")

    def act_with_noise(self, obs: Tensor, noise: Sequence[Tensor]) -> Tensor:
        """As `act`, with rows of `sample_noise`."""
        raise NotImplementedError(f"{type(self).__name__} cannot sample action noise ahead of time: use act")

    @abstractmethod
    def act_greedily(self, obs: Tensor) -> Tensor:
        """The best action per row."""

    def observe(self, obs: Tensor) -> None:
        """Update running statistics from fresh observations [B, ...], between updates."""

    def follow(self, other: PolicyNetwork) -> None:
        """Copy the acting behaviour of `other`, a network of the same kind."""
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
