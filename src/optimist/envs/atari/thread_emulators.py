"""ThreadEmulators: groups of slots, each stepped by the thread pool of an ALE vector environment of its own."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from optimist.cores import at_idle_priority
from optimist.envs.atari.buffers import OBS_SIZE, SharedBuffers
from optimist.envs.atari.emulator import FRAME_SKIP
from optimist.envs.atari.games import Slots, find_rom, import_ale
from optimist.errors import OptimistError

SCREEN = (210, 160)
"""Height and width of the console's screen."""


def make_ale_env(
    game: str,
    num_envs: int,
    *,
    sticky: float,
    no_ops: int,
    max_frames: int,
    stack: int,
    threads: int,
    idle: bool = False,
    in_color: bool = False,
) -> Any:
    """ale-py's vector environment with our settings: grey, 84 × 84, stacked; or single full screens in colour.

    Both variants run the same episodes from the same seeds and actions. Rewards are raw, a lost life ends nothing, and
    an episode is reset within the step that ends it. `idle`: its threads have idle priority.
    """
    rom = find_rom(game)
    height, width = SCREEN if in_color else (OBS_SIZE, OBS_SIZE)
    # ALE writes its autoreset mode into the metadata of Gymnasium's VectorEnv; a subclass needs its own.
    members = {"metadata": {}, "send": _send}
    ale_env = type("ALEVectorEnv", (import_ale().vector_env.AtariVectorEnv,), members)
    make = partial(
        ale_env,
        rom,
        num_envs,
        num_threads=threads,
        max_num_frames_per_episode=max_frames,
        repeat_action_probability=sticky,
        autoreset_mode=AutoresetMode.SAME_STEP,
        img_height=height,
        img_width=width,
        grayscale=not in_color,
        stack_num=1 if in_color else stack,
        frameskip=FRAME_SKIP,
        maxpool=True,
        noop_max=no_ops + 1,  # ALE draws from 0 … noop_max − 1, FIRE included if the game has it
        episodic_life=False,  # would reset the whole episode at every lost life
        life_loss_info=False,  # would report a lost life as `terminated`, like the end of an episode
        reward_clipping=False,  # would lose the raw reward
        use_fire_reset=True,
    )
    return at_idle_priority(make) if idle else make()


def _send(ale_env: Any, actions: NDArray[np.int64]) -> None:
    """ale-py's own `send`, with lists: it reads arrays element by element, four times as slowly."""
    ale_env.ale.send(actions.tolist(), [1.0] * len(actions))


class ThreadEmulators:
    """Emulators in threads of this process. A group is stepped once all of its slots have an action."""

    def __init__(self, game: str, num_envs: int, bounds: list[int], *, stack: int, **settings: Any) -> None:
        """`bounds`: the slots of each group; `settings`: as in `make_ale_env`."""
        self.buffers = SharedBuffers.allocate(num_envs, stack)
        self.groups = [slice(start, end) for start, end in pairwise(bounds)]
        self.group_of_slot = np.repeat(np.arange(len(self.groups)), np.diff(bounds))
        self.ale_envs = [make_ale_env(game, group.stop - group.start, stack=stack, **settings) for group in self.groups]
        self.missing = np.diff(bounds)  # actions that each group waits for
        self.stepping: dict[int, None] = {}  # groups whose step is in progress, oldest first

    def reset(self, slots: Slots, seeds: NDArray[np.int64] | None) -> None:
        """Start new episodes in these slots, after reseeding them if seeds are given; wait for the result."""
        self.drain()
        mask, seed_of_slot = np.zeros(len(self.group_of_slot), np.bool_), np.zeros(len(self.group_of_slot), np.int64)
        mask[slots], seed_of_slot[slots] = True, 0 if seeds is None else seeds

        def reset_group(index: int) -> None:
            group = self.groups[index]
            if mask[group].any():
                options = None if mask[group].all() else {"reset_mask": mask[group]}
                group_seeds = None if seeds is None else seed_of_slot[group][mask[group]]
                self.buffers.obs[group], infos = self.ale_envs[index].reset(seed=group_seeds, options=options)
                self.buffers.results["lives"][group] = infos["lives"]

        # ALE reads the ROM again for every seed, which takes 0.1 s each: all groups do this concurrently.
        with ThreadPoolExecutor(len(self.groups)) as pool:
            list(pool.map(reset_group, range(len(self.groups))))

    def send(self, slots: Slots, actions: NDArray[np.int64]) -> None:
        """Start a step in these slots; `recv` has to follow."""
        self.buffers.actions[slots] = actions
        indices, counts = np.unique(self.group_of_slot[slots], return_counts=True)
        self.missing[indices] -= counts
        for index in indices[self.missing[indices] == 0].tolist():
            group = self.groups[index]
            self.missing[index] = group.stop - group.start
            self.ale_envs[index].send(self.buffers.actions[group])
            self.stepping[index] = None

    def recv(self, stop_when: Callable[[], bool] | None = None) -> Slots:
        """The slots of the group whose step started first; ALE cannot be asked whether a step is done."""
        if stop_when is not None:
            while not stop_when():
                pass
            return np.empty(0, np.intp)
        index = next(iter(self.stepping))
        del self.stepping[index]
        group = self.groups[index]
        self.buffers.rows(group).write_step(self.ale_envs[index].recv())
        return np.arange(group.start, group.stop)

    def drain(self) -> None:
        """Wait for all steps in progress and discard their results."""
        while self.stepping:
            with suppress(OptimistError, RuntimeError):
                self.recv()
        self.missing = np.bincount(self.group_of_slot)

    def pre_reset(self) -> None:
        """Do nothing: ALE resets an episode when it ends."""

    def close(self) -> None:
        """Release the emulators; their threads end with them."""
        self.ale_envs = []
