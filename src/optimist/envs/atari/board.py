"""Board: the moves of all games and what they gave, where those who play and whoever decides both see it."""

from __future__ import annotations

import mmap
import os
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

TOLD = np.dtype(
    [("reward", np.float64), ("lives", np.int32), ("terminated", np.bool_), ("truncated", np.bool_)], align=True
)
"""What a step gave, but for its picture."""
SIZE = 84
"""Rows and columns of a picture."""
STEP, RESET, PREPARE = 0, 1, 2
"""What can be asked for."""
WHAT = 3
"""The bits of `asked` that say so. The others count: both are seen at the same moment."""


@dataclass(frozen=True)
class Board:
    """A row for each of N games. `asked` says how often something was asked for, and what; it is done when `answered`
    is the same number."""

    obs: NDArray[np.uint8]
    final_obs: NDArray[np.uint8]  # of games that have just ended; other rows mean nothing
    told: NDArray[np.void]  # TOLD
    actions: NDArray[np.int64]
    seeds: NDArray[np.int64]  # below 0: the game's own generator goes on
    asked: NDArray[np.int64]
    answered: NDArray[np.int64]

    @classmethod
    def make(cls, num_envs: int, stack: int, descriptor: int | None = None) -> Board:
        """`descriptor`: of a file that processes share; without one nobody else sees the board."""
        pictures = (np.uint8, (num_envs, stack, SIZE, SIZE))
        columns: dict[str, tuple[Any, tuple[int, ...]]] = {"obs": pictures, "final_obs": pictures}
        columns["told"] = (TOLD, (num_envs,))
        layout = np.dtype([(f.name, *columns.get(f.name, (np.int64, (num_envs,)))) for f in fields(cls)], align=True)
        if descriptor is not None and os.fstat(descriptor).st_size < layout.itemsize:
            os.ftruncate(descriptor, layout.itemsize)
        memory = mmap.mmap(-1 if descriptor is None else descriptor, layout.itemsize)
        shared: NDArray[np.void] = np.ndarray((), layout, memory)
        return cls(**{f.name: shared[f.name] for f in fields(cls)})

    def part(self, columns: slice) -> Board:
        """The rows of fewer games, in the same memory."""
        return Board(**{f.name: getattr(self, f.name)[columns] for f in fields(Board)})

    def ask(self, games: NDArray[np.intp], request: int) -> None:
        """Ask for something of some games; with what moves or seeds stands on the board already."""
        self.asked[games] = (self.asked[games] | WHAT) + 1 + request

    def write(self, step: tuple[Any, ...]) -> None:
        """Put down what a step gave, in the words of ALE's vector environment."""
        obs, rewards, terminated, truncated, infos = step
        self.obs[:] = obs
        self.told["reward"], self.told["lives"] = rewards, infos["lives"]
        self.told["terminated"], self.told["truncated"] = terminated, truncated
        if (ended := terminated | truncated).any():
            self.final_obs[ended] = infos["final_obs"][ended]


def has_ended(told: NDArray[np.void]) -> NDArray[np.bool_]:
    """Which games have ended with these steps."""
    ended: NDArray[np.bool_] = told["terminated"] | told["truncated"]
    return ended
