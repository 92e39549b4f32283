"""PrioritizedReplay: transitions drawn by how wrong the network was about them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from optimist.replay.buffer import DEAD, Replay, Transitions
from optimist.replay.sum_tree import SumTree
from optimist.rollout.batch import Rollout

SMALLEST = 1e-6
"""Added to a loss before it becomes a priority, so that every step can come again."""


class PrioritizedReplay(Replay):
    """P(i) ∝ pᵢ^ω (Schaul et al., 2016, proportional); new steps get the largest priority so far."""

    tree: SumTree
    largest: Tensor  # priority so far

    def __init__(self, capacity: int, *, priority_exponent: float, **settings: Any) -> None:
        super().__init__(capacity, **settings)
        self.priority_exponent = priority_exponent

    def add(self, rollout: Rollout, rewards: Tensor) -> None:
        """Append T rows; those that have become drawable get the largest priority, those overwritten none."""
        ready_before = max(0, self.time - self.n_step)
        super().add(rollout, rewards)
        oldest = self._first - (self.frame_stack - 1)
        lost = self._positions(self.time - len(rewards), self.time)
        if self.time > self.num_rows and self.frame_stack > 1:
            lost = torch.cat([lost, self._positions(oldest, self._first)])
        self.tree.set(lost, torch.zeros(len(lost), device=self.device))
        ready = self._positions(max(ready_before, self._first), max(0, self.time - self.n_step))
        if len(ready):
            self.tree.set(ready, torch.where(self.ends[ready] == DEAD, 0.0, self.largest))

    def sample_by_priority(
        self, size: int, importance_exponent: float | Tensor, generator: torch.Generator
    ) -> Transitions:
        """`size` transitions, one from each of as many equal shares of the priorities; weights (M P(i))^−β / max."""
        draws = torch.rand(size, generator=generator, device=generator.device, dtype=torch.float64).to(self.device)
        shares = (torch.arange(size, device=self.device) + draws) / size
        positions = self.tree.find(shares)
        probabilities = self.tree.weights[positions] / self.tree.total
        ready = self.num_ready if self.device.type == "cpu" else self.ready  # a recorded draw reads it where it lies
        weights = (probabilities * ready) ** -importance_exponent
        return replace(self.transitions(positions), weights=(weights / weights.max()).float())

    def set_priorities(self, positions: Tensor, losses: Tensor) -> None:
        """Remember how large the losses [B] of drawn transitions were."""
        # A network that has diverged gives no usable number; its loss says so, and drawing must not fail before.
        usable = losses.detach().double().nan_to_num(0.0).clamp(0.0, 1e12)
        priorities = (usable + SMALLEST) ** self.priority_exponent
        self.tree.set(positions, priorities)
        torch.maximum(self.largest, priorities.max(), out=self.largest)

    @property
    def written(self) -> list[Tensor]:
        """What learning from a draw changes here: the priorities."""
        return [*self.tree.levels, self.largest]

    @property
    def num_bytes(self) -> int:
        """Bytes allocated."""
        return super().num_bytes + (sum(level.nbytes for level in self.tree.levels) if self.size else 0)

    def state_dict(self) -> dict[str, Any]:
        """All that was written, and the priorities."""
        state = super().state_dict()
        if self.size:
            state |= {"priorities": self.tree.weights[: self.num_transitions].clone(), "largest": self.largest.clone()}
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over the state of `state_dict`."""
        super().load_state_dict(state)
        if self.size:
            priorities = state["priorities"].to(self.device)
            self.tree.set(torch.arange(len(priorities), device=self.device), priorities)
            self.largest.copy_(state["largest"])

    def _allocate(self, num_envs: int, obs: Tensor, action: Tensor) -> None:
        super()._allocate(num_envs, obs, action)
        self.tree = SumTree(self.size, self.device)
        self.largest = torch.ones((), dtype=torch.float64, device=self.device)

    def _positions(self, begin: int, end: int) -> Tensor:
        """Where rows `begin` to `end` lie."""
        return torch.arange(begin * self.num_envs, end * self.num_envs, device=self.device) % self.size
