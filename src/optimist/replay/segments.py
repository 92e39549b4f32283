"""SegmentReplay: the newest rollouts as segments of T steps of one environment, drawn by priority."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from optimist.replay.rows import PrioritizedRows

COLUMNS = ("obs", "actions", "rewards", "behavior", "dones", "bootstraps", "valid", "chosen")
"""Fields of `Segments` with an entry for each step."""


@dataclass(frozen=True)
class Segments:
    """B segments of T steps each, as they were executed."""

    obs: Tensor  # [T, B, ...]
    actions: Tensor  # [T, B, ...]
    rewards: Tensor  # [T, B]
    behavior: Tensor  # [T, B, A] probabilities of all actions under the policy that acted
    dones: Tensor  # [T, B]
    bootstraps: Tensor  # [T, B] recorded value after a time limit
    valid: Tensor  # [T, B] false on reset steps
    chosen: Tensor  # [T, B] valid, and the action is the policy's
    weights: Tensor  # [B] importance weights of the draw; 1 for fresh segments
    places: Tensor | None = None  # [B] their places in the buffer; None: fresh

    def without_last(self) -> Segments:
        """The segments without their last step."""
        return replace(self, **{name: getattr(self, name)[:-1] for name in COLUMNS})


class SegmentReplay:
    """Up to `capacity` steps of whole rollouts, at least one rollout, in memory allocated once on their device."""

    def __init__(self, capacity: int, exponent: float, importance_exponent: float) -> None:
        self.capacity, self.exponents = capacity, (exponent, importance_exponent)
        self.rows: PrioritizedRows | None = None  # a segment each, created by the first rollout
        self.num_steps = 0  # stored

    def add(self, fresh: Segments) -> None:
        """Store the segments of a rollout over the oldest ones."""
        num_steps, num_envs = fresh.rewards.shape
        if self.rows is None:
            size = max(1, self.capacity // fresh.rewards.numel()) * num_envs
            self.rows = PrioritizedRows(size, *self.exponents, fresh.rewards.device)
        rows = self.rows.advance(num_envs)
        for name in COLUMNS:
            self.rows.write(name, rows, getattr(fresh, name).transpose(0, 1))
        self.rows.prioritize(rows)
        self.num_steps = self.rows.filled * num_steps

    def draw(self, count: int, generator: torch.Generator) -> Segments:
        """`count` segments with replacement, by priority."""
        assert self.rows is not None
        places, weights = self.rows.draw_rows(count, generator)
        columns = {name: column[places].transpose(0, 1) for name, column in self.rows.columns.items()}
        return Segments(**columns, weights=weights.to(columns["rewards"]), places=places)

    def set_priorities(self, places: Tensor, priorities: Tensor) -> None:
        """Set the priorities of drawn segments."""
        assert self.rows is not None
        self.rows.set_priorities(places, priorities)

    def state_dict(self) -> dict[str, Any]:
        """Return the stored rollouts, without empty places."""
        rows = {} if self.rows is None else self.rows.state_dict()
        return {"capacity": self.capacity, "steps": self.num_steps, "rows": rows}

    def load_state_dict(self, state: dict[str, Any], device: torch.device | str = "cpu") -> None:
        """Restore `state_dict`."""
        if state["capacity"] != self.capacity:
            raise ValueError(f"the saved replay has room for {state['capacity']} steps, this one for {self.capacity}")
        self.num_steps, self.rows = state["steps"], None
        if state["rows"]:
            self.rows = PrioritizedRows(len(state["rows"]["powers"]), *self.exponents, device)
            self.rows.load_state_dict(state["rows"])
