"""Station 3. Who leaves a full memory: the oldest episode, or the lowest in rank."""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from optimist.core.config import OPRConfig
from optimist.core.episode import Episode


@dataclass(eq=False)
class Stored:
    """An episode's place in M."""

    total_reward: float
    group: int
    born: int  # update at which it was admitted
    clipped: bool
    rows: Tensor  # [L] its steps in the step pool
    frames: Tensor  # [L + stack − 1] its frames in the frame pool


class Retention(Protocol):
    """The order in which stored episodes make room."""

    def add(self, stored: Stored) -> None:
        """An episode has entered M."""

    def remove(self, stored: Stored) -> None:
        """An episode has left M."""

    def leaving(self) -> Iterator[Stored]:
        """The stored episodes, first to leave first."""

    def yields(self, stored: Stored, newcomer: Episode) -> bool:
        """Whether `stored` makes room for `newcomer`."""


class FirstInFirstOut:
    """The oldest episode leaves, as in the paper."""

    def __init__(self) -> None:
        self.episodes: list[Stored] = []

    def add(self, stored: Stored) -> None:
        """The youngest."""
        self.episodes.append(stored)

    def remove(self, stored: Stored) -> None:
        """It has left."""
        self.episodes.remove(stored)

    def leaving(self) -> Iterator[Stored]:
        """Oldest first."""
        return iter(self.episodes)

    def yields(self, stored: Stored, newcomer: Episode) -> bool:
        """Always."""
        return True


class RankedByReturn:
    """The episode with the lowest return leaves, the oldest of equals first, and never for a worse one.

    Groups (opponents, levels) whose returns are of different size share M: the largest group gives up its lowest.
    """

    def __init__(self) -> None:
        self.groups: dict[int, list[Stored]] = {}  # each from the lowest return to the highest, equals by age

    def add(self, stored: Stored) -> None:
        """Take its place in the ranking of its group."""
        insort(self.groups.setdefault(stored.group, []), stored, key=lambda e: e.total_reward)

    def remove(self, stored: Stored) -> None:
        """It has left."""
        self.groups[stored.group].remove(stored)

    def leaving(self) -> Iterator[Stored]:
        """Lowest of the largest group (of equal ones the first by number), then of the one that is largest then."""
        places = dict.fromkeys(sorted(self.groups), 0)
        while True:
            largest = max(places, key=lambda group: len(self.groups[group]) - places[group])
            if places[largest] == len(self.groups[largest]):
                return
            yield self.groups[largest][places[largest]]
            places[largest] += 1

    def yields(self, stored: Stored, newcomer: Episode) -> bool:
        """Within a group only to an episode at least as good; between groups always."""
        return stored.group != newcomer.group or newcomer.total_reward >= stored.total_reward


def make_retention(config: OPRConfig) -> Retention:
    """The retention that the config names."""
    return FirstInFirstOut() if config.retention == "fifo" else RankedByReturn()
