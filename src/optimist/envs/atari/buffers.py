"""Buffers that an environment shares with its emulators."""

from __future__ import annotations

import mmap
import os
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optimist.envs.atari.games import Slots
from optimist.errors import OptimistError

OBS_SIZE = 84
"""Height and width of an observation."""
RESULT = np.dtype(
    [("reward", np.float64), ("lives", np.int32), ("terminated", np.bool_), ("truncated", np.bool_)], align=True
)
"""The result of a step without its observation."""
STATE_BYTES = 2**18
"""Room for the saved state of an emulator, about 25 kB; memory that is not used costs nothing."""
STEP, RESET, PRE_RESET, SAVE, LOAD = range(5)
"""Commands to an emulator."""
COMMAND_BITS = 7
"""The bits of `requested` that hold the command. The others hold the counter, so that both change atomically."""


@dataclass(frozen=True)
class SharedBuffers:
    """One row for each of N slots. A command is done when `completed` is equal to `requested`."""

    obs: NDArray[np.uint8]  # [N, stack, 84, 84]
    final_obs: NDArray[np.uint8]  # of episodes that ended with the last step; other rows are undefined
    results: NDArray[np.void]  # RESULT
    actions: NDArray[np.int64]
    seeds: NDArray[np.int64]  # below 0: do not reseed
    states: NDArray[np.uint8]  # [N, STATE_BYTES]
    state_sizes: NDArray[np.int64]
    requested: NDArray[np.int64]  # a counter of commands, with the last command in its low bits
    completed: NDArray[np.int64]

    @classmethod
    def allocate(cls, num_envs: int, stack: int, file_descriptor: int | None = None) -> SharedBuffers:
        """Map the buffers. `file_descriptor`: of a memory file shared between processes; None for private memory."""
        frames = (np.uint8, (num_envs, stack, OBS_SIZE, OBS_SIZE))
        columns: dict[str, tuple[Any, tuple[int, ...]]] = {"obs": frames, "final_obs": frames}
        columns |= {"results": (RESULT, (num_envs,)), "states": (np.uint8, (num_envs, STATE_BYTES))}
        layout = np.dtype([(f.name, *columns.get(f.name, (np.int64, (num_envs,)))) for f in fields(cls)], align=True)
        if file_descriptor is not None and os.fstat(file_descriptor).st_size < layout.itemsize:
            os.ftruncate(file_descriptor, layout.itemsize)
        memory = mmap.mmap(-1 if file_descriptor is None else file_descriptor, layout.itemsize)
        shared: NDArray[np.void] = np.ndarray((), layout, memory)
        return cls(**{f.name: shared[f.name] for f in fields(cls)})

    def rows(self, slots: slice) -> SharedBuffers:
        """A view of some rows."""
        return SharedBuffers(**{f.name: getattr(self, f.name)[slots] for f in fields(SharedBuffers)})

    def request(self, slots: Slots, command: int) -> None:
        """Send a command to some slots; their actions or seeds have to be written before."""
        self.requested[slots] = (self.requested[slots] | COMMAND_BITS) + 1 + command

    def write_states(self, saved: list[bytes]) -> None:
        """Store a saved state for each slot."""
        for slot, state in enumerate(saved):
            if len(state) > STATE_BYTES:
                raise OptimistError(f"a saved state has {len(state)} bytes, expected at most {STATE_BYTES}")
            self.states[slot, : len(state)] = np.frombuffer(state, np.uint8)
            self.state_sizes[slot] = len(state)

    def read_states(self) -> list[bytes]:
        """The saved state of each slot."""
        return [row[:size].tobytes() for row, size in zip(self.states, self.state_sizes, strict=True)]


def episode_ends(results: NDArray[np.void]) -> NDArray[np.bool_]:
    """Which of these steps ended an episode."""
    ended: NDArray[np.bool_] = results["terminated"] | results["truncated"]
    return ended


def lives_lost(before: NDArray[np.int32], lives: NDArray[np.int32], ended: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Where a life was lost in an episode that continues. With 0 lives it is about to end: Qbert takes some frames."""
    lost: NDArray[np.bool_] = (lives < before) & (lives > 0) & ~ended
    return lost
