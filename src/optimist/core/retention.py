"""Station 3. Who leaves a full memory: the oldest episode, or the lowest in rank."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Protocol, TypeVar

from optimist.core.config import OPRConfig


class Ranked(Protocol):
    """What retention looks at."""

    total_reward: float
    group: int


class Newcomer(Protocol):
    """An episode that asks for room."""

    @property
    def total_reward(self) -> float:
        """R(E)."""

    @property
    def group(self) -> int:
        """Its opponent or level."""


Item = TypeVar("Item", bound=Ranked)


class Retention(Protocol):
    """The order in which stored episodes make room."""

    def first_to_leave(self, episodes: Sequence[Item]) -> Item:
        """The one of these (oldest first) that leaves next."""

    def yields(self, stored: Ranked, newcomer: Newcomer) -> bool:
        """Whether `stored` makes room for `newcomer`."""


class FirstInFirstOut:
    """The oldest episode leaves, as in the paper."""

    def first_to_leave(self, episodes: Sequence[Item]) -> Item:
        """The oldest."""
        return episodes[0]

    def yields(self, stored: Ranked, newcomer: Newcomer) -> bool:
        """Always."""
        return True


class RankedByReturn:
    """The episode with the lowest return leaves, the oldest of equals first, and never for a worse one.

    Groups (opponents, levels) whose returns are of different size share M: the largest group gives up its lowest.
    """

    def first_to_leave(self, episodes: Sequence[Item]) -> Item:
        """The lowest of the largest group."""
        sizes = Counter(episode.group for episode in episodes)
        largest = max(sizes, key=lambda group: sizes[group])
        return min((e for e in episodes if e.group == largest), key=lambda e: e.total_reward)

    def yields(self, stored: Ranked, newcomer: Newcomer) -> bool:
        """Within a group only to an episode at least as good; between groups always."""
        return stored.group != newcomer.group or newcomer.total_reward >= stored.total_reward


def make_retention(config: OPRConfig) -> Retention:
    """The retention that the config names."""
    return FirstInFirstOut() if config.retention == "fifo" else RankedByReturn()
