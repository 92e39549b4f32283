"""ConsoleEmulators: consoles of the package a2600, stepped by its own threads; and which emulator runs a game."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from optimist.cores import at_idle_priority
from optimist.envs.atari.buffers import SharedBuffers
from optimist.envs.atari.games import Slots, find_rom
from optimist.errors import CheckpointError, ConfigError, MissingExtra, OptimistError, install_command, unknown_name

EMULATORS = ("auto", "ale", "a2600")
POLL_SECONDS = 5e-5
"""Time between two questions to `stop_when`."""
SCREEN = (210, 160)
"""Height and width of the console's screen."""


def choose_emulator(name: str, game: str) -> str:
    """`ale` or `a2600`; `auto` is a2600 where it is installed and equals ale-py in this game."""
    if name not in EMULATORS:
        raise unknown_name("emulator", str(name), EMULATORS)
    obstacle = None if name == "ale" else _obstacle(game)
    if name == "a2600" and obstacle is not None:
        raise obstacle
    return "ale" if name == "ale" or obstacle is not None else "a2600"


def _obstacle(game: str) -> OptimistError | None:
    """Why a2600 cannot run a game; None if it can."""
    rom = find_rom(game)
    try:
        from a2600.core import load_core
        from a2600.games import all_games

        load_core()
    except ImportError:
        return MissingExtra(
            f"the emulator a2600 is not installed: {install_command('console')}, with a C++ compiler, or use "
            "the emulator 'ale', which plays the same games"
        )
    known = all_games().get(rom)
    if known is not None and not known.inexact:
        return None
    problem = f"does not have {game}" if known is None else f"is not exact in {game} ({known.inexact})"
    return ConfigError(f"a2600 {problem}: use the emulator 'ale' or 'auto'")


class ConsoleEmulators:
    """N consoles on T threads. Any thread steps any console, so slots are done in any order."""

    def __init__(
        self,
        game: str,
        num_envs: int,
        *,
        sticky: float,
        no_ops: int,
        max_frames: int,
        stack: int,
        threads: int,
        idle: bool,
        in_color: bool = False,
    ) -> None:
        """`threads`: 0 for one per core; `idle`: at idle priority; `in_color`: run the games a second time in colour,
        for `screens`."""
        import a2600
        from a2600.env import AtariVectorEnv
        from a2600.errors import A2600Error

        make = partial(
            AtariVectorEnv,
            find_rom(game),
            num_envs,
            num_threads=threads,
            max_num_frames_per_episode=max_frames,
            repeat_action_probability=sticky,
            autoreset_mode=AutoresetMode.SAME_STEP,
            noop_max=no_ops + 1,  # it draws from 0 … noop_max − 1
            reward_clipping=False,
        )
        self.game, self.buffers = game, SharedBuffers.allocate(num_envs, stack)
        try:
            grey = partial(make, stack_num=stack)
            self.consoles = at_idle_priority(grey) if idle else grey()
            height, width = SCREEN
            color = partial(make, stack_num=1, grayscale=False, img_height=height, img_width=width)
            self.painter = color() if in_color else None
        except A2600Error as error:
            raise ConfigError(f"a2600 cannot run {game}: {error}") from error
        self.version = f"a2600=={a2600.__version__}"
        self.consoles.bind(self.buffers.obs, self.buffers.final_obs, self.consoles.results)

    def reset(self, slots: Slots, seeds: NDArray[np.int64] | None) -> None:
        """Start new episodes in these slots, after reseeding them if seeds are given; wait for the result."""
        self.drain()
        mask = np.isin(np.arange(len(self.buffers.obs)), slots)
        for consoles in self._all():
            consoles.reset(seed=seeds, options={"reset_mask": mask})
        self._copy_results(slots)

    def send(self, slots: Slots, actions: NDArray[np.int64]) -> None:
        """Start a step in these slots; `recv` has to follow."""
        self.consoles.send_slots(slots, actions)
        if self.painter is not None:
            self.painter.send_slots(slots, actions)
            self.painter.recv_slots(len(slots))

    def recv(self, stop_when: Callable[[], bool] | None = None) -> Slots:
        """Wait for slots whose step is done: at least one, or none as soon as `stop_when` returns true."""
        while True:
            done = self.consoles.recv_slots(1, seconds=-1.0 if stop_when is None else POLL_SECONDS)
            if len(done) or stop_when is None or stop_when():
                break
        slots: Slots = np.sort(done).astype(np.intp)
        self._copy_results(slots)
        return slots

    def drain(self) -> None:
        """Wait for all steps in progress and discard their results."""
        while len(self.consoles.recv_slots(len(self.buffers.obs))):
            pass

    def pre_reset(self) -> None:
        """Do nothing: a reset takes less than a step of ale-py."""

    def save(self) -> list[bytes]:
        """The state of all consoles."""
        return [zlib.compress(consoles.save_state(), 1) for consoles in self._all()]

    def load(self, saved: list[bytes]) -> None:
        """Continue from what `save` returned."""
        from a2600.errors import StateError

        self.drain()
        try:
            for consoles, state in zip(self._all(), saved, strict=True):
                consoles.load_state(zlib.decompress(state))
        except (StateError, ValueError, zlib.error) as error:
            raise CheckpointError(f"the saved state of {self.game} cannot be loaded: {error}") from error
        self._copy_results(np.arange(len(self.buffers.obs)))

    def screens(self) -> NDArray[np.uint8]:
        """What each observation shows, in colour, [N, height, width, 3]."""
        assert self.painter is not None
        screens: NDArray[np.uint8] = self.painter.obs[:, 0].copy()
        return screens

    def close(self) -> None:
        """Release the consoles with their threads."""
        for consoles in self._all():
            consoles.close()

    def _all(self) -> list[Any]:
        return [self.consoles] if self.painter is None else [self.consoles, self.painter]

    def _copy_results(self, slots: Slots) -> None:
        for name in ("reward", "lives", "terminated", "truncated"):
            self.buffers.results[name][slots] = self.consoles.results[name][slots]
