"""Station 3. Eviction policies: FIFO, and lowest return first."""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Protocol

import torch
from torch import Tensor

NONE = torch.zeros(0, dtype=torch.int64)


class Candidate(Protocol):
    """What decides about an episode: one that has finished, or one that is stored."""

    @property
    def total_reward(self) -> float:
        """R(E)."""

    @property
    def group(self) -> int:
        """The opponent or level."""


@dataclass(eq=False, slots=True)
class StoredEpisode:
    """An episode of M and the rows it owns."""

    total_reward: float
    group: int
    admitted_at: int  # update
    clipped: bool
    length: int  # steps stored
    rows: Tensor = field(default=NONE, repr=False)  # [L] of its steps in the step pool
    frames: Tensor = field(default=NONE, repr=False)  # [L + stack − 1] of its frames in the frame pool
    threshold: float = math.nan  # τ at its admission; nan in checkpoints of earlier versions
    step: int = -1  # environment steps of the run at its admission; −1 in checkpoints of earlier versions
    start_state: Tensor | None = None  # what restores its start, where the environment offers it


class FirstInFirstOut:
    """Evict the oldest episode, as in the paper."""

    def __init__(self) -> None:
        self.episodes: list[StoredEpisode] = []

    def add(self, stored: StoredEpisode) -> None:
        """Note the newest episode."""
        self.episodes.append(stored)

    def remove(self, stored: StoredEpisode) -> None:
        """Note an evicted episode."""
        self.episodes.remove(stored)

    def candidates(self) -> Iterator[StoredEpisode]:
        """Yield the oldest first."""
        return iter(self.episodes)

    def may_evict(self, stored: StoredEpisode, candidate: Candidate) -> bool:
        """Always."""
        return True


class LowestReturnFirst:
    """Evict the episode with the lowest return, the oldest of equals first, and never for a worse one.

    Groups (opponents, levels) share M though their returns differ in size: the largest group gives up its lowest.
    """

    def __init__(self) -> None:
        self.groups: dict[int, list[StoredEpisode]] = {}  # each sorted by return, equals by age

    def add(self, stored: StoredEpisode) -> None:
        """Insert an episode into the ranking of its group."""
        insort(self.groups.setdefault(stored.group, []), stored, key=attrgetter("total_reward"))

    def remove(self, stored: StoredEpisode) -> None:
        """Note an evicted episode."""
        self.groups[stored.group].remove(stored)

    def candidates(self) -> Iterator[StoredEpisode]:
        """Yield the lowest of the largest group (of equal groups the first by number), again and again."""
        positions = dict.fromkeys(sorted(self.groups), 0)
        while True:
            largest = max(positions, key=lambda group: len(self.groups[group]) - positions[group])
            if positions[largest] == len(self.groups[largest]):
                return
            yield self.groups[largest][positions[largest]]
            positions[largest] += 1

    def may_evict(self, stored: StoredEpisode, candidate: Candidate) -> bool:
        """Within a group only for an episode at least as good; between groups always."""
        return stored.group != candidate.group or candidate.total_reward >= stored.total_reward


EvictionPolicy = FirstInFirstOut | LowestReturnFirst
