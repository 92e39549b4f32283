"""LocalEmulators: emulators in the calling thread, for films, small jobs, and systems without worker processes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optimist.envs.atari.buffers import SharedBuffers
from optimist.envs.atari.emulator import Emulator
from optimist.envs.atari.games import Slots, ale_version


class LocalEmulators:
    """Emulators that the calling thread steps one after the other: ale-py holds Python's lock during a frame."""

    def __init__(self, game: str, num_envs: int, *, stack: int, in_color: bool = False, **settings: Any) -> None:
        """`in_color`: `screens` shows what the observations show; `settings`: as in Emulator."""
        self.buffers = SharedBuffers.allocate(num_envs, stack)
        self.emulators = [
            Emulator(game, self.buffers.rows(slice(slot, slot + 1)), in_color=in_color, **settings)
            for slot in range(num_envs)
        ]
        self.version = ale_version()
        self.sent: deque[Slots] = deque()

    def reset(self, slots: Slots, seeds: NDArray[np.int64] | None) -> None:
        """Start new episodes in these slots, after reseeding them if seeds are given."""
        self.drain()
        for index, slot in enumerate(slots.tolist()):
            self.emulators[slot].reset(-1 if seeds is None else int(seeds[index]))

    def send(self, slots: Slots, actions: NDArray[np.int64]) -> None:
        """Request a step in these slots; `recv` has to follow."""
        self.buffers.actions[slots] = actions
        self.sent.append(slots)

    def recv(self, stop_when: Callable[[], bool] | None = None) -> Slots:
        """Step the slots that were sent first and return them; none if `stop_when` returns true."""
        if not self.sent or (stop_when is not None and stop_when()):
            return np.empty(0, np.intp)
        slots = self.sent.popleft()
        for slot in slots.tolist():
            self.emulators[slot].step()
        return slots

    def drain(self) -> None:
        """Discard the steps that were sent and not received."""
        self.sent.clear()

    def pre_reset(self) -> None:
        """Do nothing: no other thread would do it meanwhile."""

    def save(self) -> list[bytes]:
        """The state of each slot."""
        return [emulator.save() for emulator in self.emulators]

    def load(self, saved: list[bytes]) -> None:
        """Continue from what `save` returned."""
        self.drain()
        for emulator, state in zip(self.emulators, saved, strict=True):
            emulator.load(state)

    def screens(self) -> NDArray[np.uint8]:
        """What each observation shows, in colour, [N, height, width, 3]."""
        return np.stack([emulator.colors[0] for emulator in self.emulators if emulator.colors is not None])

    def close(self) -> None:
        """Release the emulators."""
        self.emulators = []
