"""SegmentReplay: the last rollouts, cut into one segment of T steps an environment, drawn by priority."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from optimist.anchors.priorities import Priorities
from optimist.rollout.batch import Rollout

COLUMNS = ("obs", "actions", "rewards", "logp", "dones", "bootstraps", "valid")


@dataclass(frozen=True)
class Segments:
    """B segments of T steps each, as they were executed."""

    obs: Tensor  # [T, B, ...]
    actions: Tensor  # [T, B, ...]
    rewards: Tensor  # [T, B]
    logp: Tensor  # [T, B] recorded at execution
    dones: Tensor  # [T, B]
    bootstraps: Tensor  # [T, B] value behind a time limit, recorded
    valid: Tensor  # [T, B]
    weights: Tensor  # [B] importance weights of the draw
    places: Tensor  # [B] where they lie


class SegmentReplay:
    """Up to `capacity` steps of whole rollouts, at least one rollout, in memory allocated once on their device."""

    def __init__(self, capacity: int, exponent: float, importance_exponent: float) -> None:
        self.capacity, self.exponents = capacity, (exponent, importance_exponent)
        self.columns: dict[str, Tensor] = {}  # name → [S, T, N, ...]
        self.priorities: Priorities | None = None
        self.head = 0  # slot that the next rollout goes to
        self.filled = 0  # slots that hold one

    def add(self, rollout: Rollout, rewards: Tensor) -> None:
        """Store a rollout, with the rewards that its steps are learned from, over the oldest one."""
        num_steps, num_envs = rewards.shape
        zeros, ones = torch.zeros_like(rewards), torch.ones_like(rollout.dones)
        rows = {name: getattr(rollout, name) for name in COLUMNS} | {"rewards": rewards}
        rows["bootstraps"] = zeros if rollout.bootstraps is None else rollout.bootstraps
        rows["valid"] = ones if rollout.valid is None else rollout.valid
        if self.priorities is None:
            slots = self._slots(num_steps, num_envs)
            self.priorities = self._allocate({name: row.new_zeros((slots, *row.shape)) for name, row in rows.items()})
        for name, row in rows.items():
            self.columns[name][self.head] = row
        self.priorities.add(torch.arange(num_envs, device=rewards.device) + self.head * num_envs)
        slots = len(self.columns["rewards"])
        self.head, self.filled = (self.head + 1) % slots, min(self.filled + 1, slots)

    def draw(self, count: int, generator: torch.Generator) -> Segments:
        """`count` segments with replacement, by priority."""
        assert self.priorities is not None
        places, weights = self.priorities.draw(count, generator)
        num_envs = self.columns["rewards"].shape[2]
        slots, envs = places // num_envs, places % num_envs
        columns = {name: column[slots, :, envs].transpose(0, 1) for name, column in self.columns.items()}
        return Segments(**columns, weights=weights.to(columns["rewards"]), places=places)

    def set_priorities(self, places: Tensor, priorities: Tensor) -> None:
        """p of drawn segments, anew."""
        assert self.priorities is not None
        self.priorities.set(places, priorities)

    @property
    def num_steps(self) -> int:
        """Steps stored."""
        return self.filled * self.columns["rewards"][0].numel() if self.filled else 0

    def state_dict(self) -> dict[str, Any]:
        """The stored rollouts, exactly, without the empty slots."""
        if self.priorities is None:
            return {"head": 0, "slots": 0}
        return {
            "head": self.head,
            "slots": len(self.columns["rewards"]),
            "columns": {name: column[: self.filled].clone() for name, column in self.columns.items()},
            "priorities": self.priorities.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any], device: torch.device | str = "cpu") -> None:
        """Take over `state_dict`."""
        self.head, self.filled, self.columns, self.priorities = state["head"], 0, {}, None
        if "columns" not in state:
            return
        stored = {name: rows.to(device) for name, rows in state["columns"].items()}
        self.filled = len(stored["rewards"])
        slots = self._slots(*stored["rewards"].shape[1:])
        if state["slots"] != slots:
            raise ValueError(f"the saved replay has room for {state['slots']} rollouts, this one for {slots}")
        empty = {name: rows.new_zeros((slots, *rows.shape[1:])) for name, rows in stored.items()}
        self.priorities = self._allocate(empty)
        for name, rows in stored.items():
            self.columns[name][: self.filled] = rows
        self.priorities.load_state_dict(state["priorities"])

    def _slots(self, num_steps: int, num_envs: int) -> int:
        return max(1, self.capacity // (num_steps * num_envs))

    def _allocate(self, columns: dict[str, Tensor]) -> Priorities:
        self.columns = columns
        slots, _, num_envs = columns["rewards"].shape
        return Priorities(slots * num_envs, *self.exponents, columns["rewards"].device)
