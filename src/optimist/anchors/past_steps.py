"""PastSteps: the last steps of stored episodes, with the return that followed each; a ring of single frames."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from optimist.anchors.priorities import Priorities
from optimist.core.episode import Episode


@dataclass(frozen=True)
class PastRows:
    """B past steps."""

    obs: Tensor  # [B, ...]
    actions: Tensor  # [B, ...]
    returns: Tensor  # [B] discounted return that followed
    weights: Tensor  # [B] importance weights of the draw
    rows: Tensor  # [B] where they lie


class PastSteps:
    """The `capacity` most recent steps of stored episodes, on the learner's device, drawn by priority.

    Of image stacks each frame is stored once: an episode's rows are preceded by stack − 1 rows that hold the older
    frames of its first observation and are never drawn. A row whose older frames have been overwritten is not drawn
    any more either.
    """

    def __init__(self, capacity: int, *, exponent: float, importance_exponent: float, frame_stack: int = 1) -> None:
        self.capacity, self.frame_stack = capacity, frame_stack
        self.exponents = exponent, importance_exponent
        self.columns: dict[str, Tensor] = {}  # name → [capacity, ...]
        self.priorities: Priorities | None = None
        self.head = 0  # where the next row goes
        self.written = 0  # rows that hold something
        self._drawable: int | None = 0

    def add(self, episode: Episode, returns: Tensor) -> None:
        """Store an episode's steps over the oldest rows; of one longer than the ring, its end."""
        opening = self.frame_stack - 1
        length = min(len(episode), self.capacity - opening)
        self._allocate(episode, returns)
        assert self.priorities is not None
        rows = self._rows(self.head, length + opening)
        self.columns["frames"][rows] = episode.frames[-(length + opening) :]
        steps = rows[opening:]
        self.columns["actions"][steps] = episode.actions[-length:]
        self.columns["returns"][steps] = returns[-length:]
        self.written = min(max(self.written, self.head + length + opening), self.capacity)
        self.head = (self.head + length + opening) % self.capacity
        self.priorities.add(steps)
        self.priorities.remove(rows[:opening])
        if opening:  # the oldest rows that are left have lost their older frames
            left = max(0, min(opening, self.capacity - length - opening))
            self.priorities.remove(self._rows(self.head, left))
        self._drawable = None

    def draw(self, size: int, generator: torch.Generator) -> PastRows:
        """`size` steps with replacement, by priority."""
        assert self.priorities is not None
        rows, weights = self.priorities.draw(size, generator)
        returns = self.columns["returns"][rows]
        return PastRows(self._observations(rows), self.columns["actions"][rows], returns, weights.to(returns), rows)

    def set_priorities(self, rows: Tensor, priorities: Tensor) -> None:
        """p of drawn steps, anew."""
        assert self.priorities is not None
        self.priorities.set(rows, priorities)

    @property
    def num_transitions(self) -> int:
        """Steps that can be drawn."""
        if self._drawable is None:
            assert self.priorities is not None
            self._drawable = int((self.priorities.powers > 0).sum())
        return self._drawable

    @property
    def num_bytes(self) -> int:
        """Bytes allocated."""
        return sum(column.nbytes for column in self.columns.values())

    def state_dict(self) -> dict[str, Any]:
        """All rows written so far, exactly."""
        if self.priorities is None:
            return {"head": 0}
        columns = {name: column[: self.written].clone() for name, column in self.columns.items()}
        return {"head": self.head, "columns": columns, "priorities": self.priorities.state_dict()}

    def load_state_dict(self, state: dict[str, Any], device: torch.device | str = "cpu") -> None:
        """Take over `state_dict`."""
        self.head, self.written, self.columns, self.priorities, self._drawable = state["head"], 0, {}, None, 0
        if "columns" not in state:
            return
        for name, rows in state["columns"].items():
            self.columns[name] = torch.zeros((self.capacity, *rows.shape[1:]), dtype=rows.dtype, device=device)
            self.columns[name][: len(rows)] = rows.to(device)
            self.written = len(rows)
        self.priorities = Priorities(self.capacity, *self.exponents, device)
        self.priorities.load_state_dict(state["priorities"])
        self._drawable = None

    def _allocate(self, episode: Episode, returns: Tensor) -> None:
        if self.priorities is not None:
            return
        for name, like in (("frames", episode.frames), ("actions", episode.actions), ("returns", returns)):
            self.columns[name] = like.new_zeros((self.capacity, *like.shape[1:]))
        self.priorities = Priorities(self.capacity, *self.exponents, returns.device)

    def _rows(self, begin: int, count: int) -> Tensor:
        return torch.arange(begin, begin + count, device=self.columns["frames"].device) % self.capacity

    def _observations(self, rows: Tensor) -> Tensor:
        if self.frame_stack == 1:
            return self.columns["frames"][rows]
        older = torch.arange(1 - self.frame_stack, 1, device=rows.device)
        return self.columns["frames"][(rows[:, None] + older) % self.capacity]
