"""PrioritizedReplay: transitions drawn in proportion to their last loss."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from optimist.core.steps import Rollout
from optimist.replay.transitions import DEAD, Replay, Transitions

SMALLEST = 1e-6
"""Added to a loss before it becomes a priority, so that every step can be drawn again."""


class PrioritizedReplay(Replay):
    """P(i) ∝ pᵢ^ω (Schaul et al., 2016, proportional); new steps get the largest priority so far."""

    tree: SumTree
    largest: Tensor  # priority so far

    def __init__(self, capacity: int, *, priority_exponent: float, **settings: Any) -> None:
        super().__init__(capacity, **settings)
        self.priority_exponent = priority_exponent

    def add(self, rollout: Rollout, rewards: Tensor) -> None:
        """Append T rows; newly drawable rows get the largest priority, overwritten rows get 0."""
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
        """Draw one transition from each of `size` equal shares of the priorities; weights (M P(i))^−β / max."""
        draws = torch.rand(size, generator=generator, device=generator.device, dtype=torch.float64).to(self.device)
        shares = (torch.arange(size, device=self.device) + draws) / size
        positions = self.tree.find(shares)
        probabilities = self.tree.weights[positions] / self.tree.total
        ready = self.num_ready if self.device.type == "cpu" else self.ready  # a captured graph reads the tensor
        weights = (probabilities * ready) ** -importance_exponent
        return replace(self.transitions(positions), weights=(weights / weights.max()).float())

    def set_priorities(self, positions: Tensor, losses: Tensor) -> None:
        """Set the priorities of drawn transitions from their losses [B]."""
        # A diverged network gives nan or inf; its loss raises the error, so drawing must not fail before.
        usable = losses.detach().double().nan_to_num(0.0).clamp(0.0, 1e12)
        priorities = (usable + SMALLEST) ** self.priority_exponent
        self.tree.set(positions, priorities)
        torch.maximum(self.largest, priorities.max(), out=self.largest)

    @property
    def written(self) -> list[Tensor]:
        """The tensors that a gradient step changes: the priorities."""
        return [*self.tree.levels, self.largest]

    @property
    def num_bytes(self) -> int:
        """Bytes allocated."""
        return super().num_bytes + (sum(level.nbytes for level in self.tree.levels) if self.size else 0)

    def state_dict(self) -> dict[str, Any]:
        """Return the stored rows and the priorities."""
        state = super().state_dict()
        if self.size:
            state |= {"priorities": self.tree.weights[: self.num_transitions].clone(), "largest": self.largest.clone()}
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore `state_dict`."""
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
        """Return the positions of rows `begin` to `end`."""
        return torch.arange(begin * self.num_envs, end * self.num_envs, device=self.device) % self.size


WIDTH, WIDTH_ON_GPU = 64, 1024
"""Children of a node. Wide nodes make a shallow tree: four levels hold more than a million leaves; on a GPU, where sums
are cheap and a level takes about twenty kernel launches, two do."""


class SumTree:
    """Weights [size], with the sums over blocks of w, w², … of them, w = 64 (1024 on a GPU).

    A sum is recomputed when a weight below it changes, never corrected by a difference. So rounding errors do not
    accumulate, a leaf may be set twice in one call, and equal weights make equal trees.
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
        """Set leaves [B] to weights [B], at least 0."""
        self.levels[0][leaves] = weights.to(torch.float64)
        nodes = leaves
        for below, above in zip(self.levels, self.levels[1:], strict=False):
            nodes = nodes // self.width
            above[nodes] = below.view(-1, self.width)[nodes].sum(-1)

    def find(self, shares: Tensor) -> Tensor:
        """Return for each share in [0, 1) of the total the leaf where the running sum of weights exceeds it.

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
