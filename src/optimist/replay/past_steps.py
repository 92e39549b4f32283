"""PastSteps: the newest steps of stored episodes with their returns; a ring buffer of single frames."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from optimist.core.episode import Episode
from optimist.replay.rows import PrioritizedRows


@dataclass(frozen=True)
class PastRows:
    """B past steps."""

    obs: Tensor  # [B, ...]
    actions: Tensor  # [B, ...]
    returns: Tensor  # [B] discounted return after the step
    weights: Tensor  # [B] importance weights of the draw
    rows: Tensor  # [B] their rows in the buffer


class PastSteps(PrioritizedRows):
    """The most recent steps of stored episodes, drawn by priority.

    Of image stacks each frame is stored once: an episode's rows are preceded by stack − 1 rows that hold the older
    frames of its first observation and are never drawn. A row whose older frames are overwritten is not drawn either.
    """

    def __init__(self, capacity: int, *, frame_stack: int = 1, **settings: Any) -> None:
        """`settings`: as in PrioritizedRows."""
        super().__init__(capacity, **settings)
        self.frame_stack = frame_stack
        self._drawable: int | None = 0

    def add(self, episode: Episode, returns: Tensor) -> None:
        """Store an episode's steps over the oldest rows; of an episode longer than the buffer, its end."""
        opening = self.frame_stack - 1
        length = min(len(episode), self.size - opening)
        rows = self.advance(length + opening)
        steps = rows[opening:]
        self.write("frames", rows, episode.frames[-len(rows) :])
        self.write("actions", steps, episode.actions[-length:])
        self.write("returns", steps, returns[-length:])
        self.prioritize(steps)
        if episode.forced is not None:  # the policy did not choose these actions
            self.remove(steps[episode.forced[-length:].to(steps.device)])
        self.remove(rows[:opening])
        if opening:  # the older frames of the oldest rows are overwritten
            left = max(0, min(opening, self.size - len(rows)))
            self.remove(torch.arange(self.head, self.head + left) % self.size)
        self._drawable = None

    def draw(self, count: int, generator: torch.Generator) -> PastRows:
        """Draw `count` steps with replacement, by priority."""
        rows, weights = self.draw_rows(count, generator)
        older = torch.arange(1 - self.frame_stack, 1, device=rows.device)
        frames = rows if self.frame_stack == 1 else (rows[:, None] + older) % self.size
        obs, actions, returns = (
            self.columns[name][at] for name, at in (("frames", frames), ("actions", rows), ("returns", rows))
        )
        return PastRows(obs, actions, returns, weights.to(returns), rows)

    @property
    def num_transitions(self) -> int:
        """Steps that can be drawn."""
        if self._drawable is None:
            self._drawable = int((self.powers > 0).sum())
        return self._drawable

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore `state_dict`."""
        super().load_state_dict(state)
        self._drawable = None
