"""Observations of a replay buffer: each is stored once, of stacked images each frame once."""

from __future__ import annotations

from collections import deque
from typing import Any

import torch
from torch import Tensor

from optimist.errors import ConfigError


class ObservationRing:
    """A ring buffer of `size` observations, those of N environments in turn: i + N follows i.

    The next observation of a step is the next one of its environment. Only the observation after a time limit, where
    the environment resets, is stored separately (`finals`). Of image stacks the newest frame is stored, and the number
    of older frames in the same episode (`ages`). Stacks are rebuilt when drawn, and padded as the environment pads them
    after a reset: with zeros or the first frame.
    """

    def __init__(self, size: int, num_envs: int, frame_stack: int, like: Tensor, device: torch.device | str) -> None:
        """`like`: one observation of the environments."""
        self.size, self.num_envs, self.frame_stack = size, num_envs, frame_stack
        shape = like.shape[1:] if frame_stack > 1 else like.shape
        self.frames = torch.empty((size, *shape), dtype=like.dtype, device=device)
        self.ages = torch.zeros(size if frame_stack > 1 else 0, dtype=torch.uint8, device=device)
        self.repeats = False  # stacks are padded with the first frame, not with zeros
        self.finals = torch.empty((0, *shape), dtype=like.dtype, device=device)
        self.final_slots = torch.zeros(size, dtype=torch.int32, device=device)
        self.num_finals = 0  # ever written
        self._kept: deque[tuple[int, int]] = deque()  # row in time, finals written with it; the oldest first
        self._age = torch.zeros(num_envs, dtype=torch.uint8, device=device)  # of the next observation of each
        self._backwards = torch.arange(frame_stack - 1, -1, -1, device=device)

    def add(self, spans: list[tuple[slice, slice]], obs: Tensor, starts: Tensor | None, *, fresh: bool) -> None:
        """Write rows [T, N, ...]; `spans` maps positions to slices of the T·N rows.

        `starts` [T, N]: where an episode begins; needed for stacks only. `fresh`: all environments were just reset.
        """
        rows = obs.flatten(0, 1)
        if self.frame_stack > 1:
            assert starts is not None
            if fresh:
                self._learn_padding(obs[0])
            self._write(self.ages, spans, self._ages(starts).flatten())
            rows = rows[:, -1]
        self._write(self.frames, spans, rows)

    def add_finals(self, time: int, oldest: int, positions: Tensor, counts: list[int], obs: Tensor) -> None:
        """Store the observations after the steps at `positions` [M]; `counts[t]` of them are in row `time` + t.

        `oldest`: the first row still stored; the finals of earlier rows are overwritten.
        """
        while self._kept and self._kept[0][0] < oldest:
            self._kept.popleft()
        live = sum(count for _, count in self._kept)
        if live + len(obs) > len(self.finals):
            self._grow(max(2 * len(self.finals), live + len(obs), 64), live)
        slots = torch.arange(self.num_finals, self.num_finals + len(obs), device=self.frames.device) % len(self.finals)
        self.finals[slots] = (obs[:, -1] if self.frame_stack > 1 else obs).to(self.finals.device)
        self.final_slots[positions] = slots.to(torch.int32)
        self._kept.extend((time + t, count) for t, count in enumerate(counts) if count)
        self.num_finals += len(obs)

    def at(self, positions: Tensor) -> Tensor:
        """Return the observations at `positions` [B]."""
        newest = self.frames.index_select(0, positions)
        if self.frame_stack == 1:
            return newest
        return self._stacked(positions, newest, self.ages[positions].long())

    def after(self, positions: Tensor, truncated: Tensor | None) -> Tensor:
        """Return the observations after the steps at `positions` [B]; `truncated` [B] marks those in `finals`."""
        following = (positions + self.num_envs) % self.size
        newest = self.frames.index_select(0, following)
        ages = self.ages[following].long() if self.frame_stack > 1 else None
        if truncated is not None:
            kept = self.finals.index_select(0, torch.where(truncated, self.final_slots[positions], 0))
            newest = torch.where(truncated.view(-1, *[1] * (newest.dim() - 1)), kept, newest)
            if ages is not None:
                ages = torch.where(truncated, (self.ages[positions].long() + 1).clamp_max(self.frame_stack - 1), ages)
        return newest if ages is None else self._stacked(following, newest, ages)

    @property
    def num_bytes(self) -> int:
        """Bytes allocated."""
        return sum(tensor.nbytes for tensor in (self.frames, self.ages, self.finals, self.final_slots))

    def state_dict(self, filled: int) -> dict[str, Any]:
        """Return the first `filled` positions and the finals."""
        return {
            "frames": self.frames[:filled],
            "ages": self.ages[:filled],
            "age": self._age.clone(),
            "repeats": self.repeats,
            "finals": self.finals.clone(),
            "final_slots": self.final_slots[:filled],
            "num_finals": self.num_finals,
            "kept": [list(entry) for entry in self._kept],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore `state_dict`."""
        for column, saved in ((self.frames, "frames"), (self.ages, "ages"), (self.final_slots, "final_slots")):
            column[: len(state[saved])] = state[saved].to(column.device)
        self._age, self.repeats = state["age"].to(self.frames.device), state["repeats"]
        self.finals, self.num_finals = state["finals"].to(self.frames.device), state["num_finals"]
        self._kept = deque((row, count) for row, count in state["kept"])

    def _stacked(self, positions: Tensor, newest: Tensor, ages: Tensor) -> Tensor:
        """[B, stack, ...]: `newest` after the older frames of the same environment and episode."""
        back = self._backwards[:-1].expand(len(positions), -1)  # [B, stack − 1]
        missing = back > ages.unsqueeze(-1)
        if self.repeats:
            back = back.minimum(ages.unsqueeze(-1))
        older_at = (positions.unsqueeze(-1) - back * self.num_envs) % self.size
        older = self.frames.index_select(0, older_at.flatten()).view(*back.shape, *newest.shape[1:])
        pixels = [1] * (newest.dim() - 1)
        if not self.repeats:
            older = older.masked_fill_(missing.view(*back.shape, *pixels), 0)
        return torch.cat([older, newest.unsqueeze(1)], 1)

    def _ages(self, starts: Tensor) -> Tensor:
        """Older frames that belong to each observation, [T, N], at most stack − 1."""
        ages = []
        for start in starts:
            ages.append(self._age.masked_fill(start, 0))
            self._age = (ages[-1] + 1).clamp_max(self.frame_stack - 1)
        return torch.stack(ages)

    def _learn_padding(self, obs: Tensor) -> None:
        """Detect how the environment pads a stack after a reset."""
        older, newest = obs[:, :-1], obs[:, -1:]
        if not bool(older.any()):
            self.repeats = False
        elif bool((older == newest).all()):
            self.repeats = True
        else:
            raise ConfigError(
                "after a reset a stack of images must hold zeros or the first frame repeated to be kept as single "
                "frames; set env.frame_stack = 1 to keep whole stacks"
            )

    def _grow(self, size: int, live: int) -> None:
        """Enlarge `finals`; the last `live` of them are still needed and get new slots."""
        grown = self.finals.new_zeros((size, *self.finals.shape[1:]))
        if live:
            serials = torch.arange(self.num_finals - live, self.num_finals, device=self.finals.device)
            old, new = serials % len(self.finals), serials % size
            grown[new] = self.finals[old]
            moved = torch.zeros(len(self.finals), dtype=torch.int32, device=self.finals.device)
            moved[old] = new.to(torch.int32)
            self.final_slots = moved[self.final_slots.long().clamp_max(len(self.finals) - 1)]
        self.finals = grown

    @staticmethod
    def _write(column: Tensor, spans: list[tuple[slice, slice]], values: Tensor) -> None:
        for positions, rows in spans:
            column[positions] = values[rows]
