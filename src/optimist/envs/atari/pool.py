"""The door to EnvPool: its games, brought to the manners of ALE's vector environment as this package uses it."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete
from numpy.typing import NDArray

from optimist.cores import at_idle_priority
from optimist.envs.atari.emulator import FRAME_SKIP, SCREEN, action_names, find_rom, import_ale
from optimist.errors import OptimistError, missing_extra

DIFFERENCES = (
    "EnvPool: games start with at least one frame without action and FIRE after them, and the first picture fills the "
    "whole stack; scores beside those of ale-py are another column"
)
"""Said at the start of a run: what the lane cannot bring in line with ale-py."""


def import_envpool() -> ModuleType:
    """EnvPool, if it is installed."""
    try:
        import envpool
        import envpool.atari.registration
    except ImportError as error:
        raise missing_extra("Atari's back-end 'envpool'", "envpool", "EnvPool") from error
    module: ModuleType = envpool
    return module


def is_installed() -> bool:
    """Whether EnvPool can be imported."""
    try:
        import_envpool()
    except ImportError:
        return False
    return True


class PooledEmulators:
    """N games of EnvPool that begin anew within the step.

    EnvPool resets with the next step, which then plays nothing: here the games that ended, and only they, are restarted
    before a step is handed over. Its seeds are fixed when it is made, so new seeds make it anew.
    """

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
        idle: bool = False,
        in_color: bool = False,
    ) -> None:
        """Grey, 84 × 84, stacked; or in colour. `idle`: its threads play where nothing else wants the core."""
        self.idle = idle
        self.envpool, self.rom, self.num_envs, self.in_color = import_envpool(), find_rom(game), num_envs, in_color
        self._check_rom(game)
        height, width = SCREEN if in_color else (84, 84)
        self.limit = -(-max_frames // FRAME_SKIP)  # EnvPool counts steps; ALE stops within the last one, too
        self.settings: dict[str, Any] = {
            "num_envs": num_envs,
            "num_threads": min(threads, num_envs),
            "max_episode_steps": self.limit,
            "repeat_action_probability": sticky,
            "img_height": height,
            "img_width": width,
            "gray_scale": not in_color,
            "stack_num": 1 if in_color else stack,
            "frame_skip": FRAME_SKIP,
            "noop_max": max(1, no_ops),  # EnvPool draws from 1 … noop_max, FIRE included; 0 ends the process
            "episodic_life": False,  # would press no-ops and FIRE into a game that goes on, in 46 of 49 for nothing
            "reward_clip": False,
            "use_fire_reset": True,
        }
        self.action_meanings = list(action_names(game))
        shape = (1, *SCREEN, 3) if in_color else (stack, 84, 84)
        self.single_observation_space = Box(0, 255, shape, np.uint8)
        self.single_action_space = Discrete(len(self.action_meanings))
        self.pool: Any = None
        self.obs: NDArray[np.uint8] = np.empty(0, np.uint8)
        self.lives: NDArray[np.int32] = np.empty(0, np.int32)

    @property
    def task(self) -> str:
        """EnvPool's name of the game. It says v5, but sticky actions are as they are set."""
        return "".join(word.capitalize() for word in self.rom.split("_")) + "-v5"

    def reset(
        self, *, seed: NDArray[np.int64] | None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.uint8], dict[str, Any]]:
        """Observations after starting the games in `options["reset_mask"]`, or all, anew; seeds are for all."""
        mask = np.ones(self.num_envs, np.bool_) if options is None else options["reset_mask"]
        if seed is not None and mask.all():
            self.pool = None  # ends its threads before others begin
            seeds = [int(number) for number in seed]
            make = partial(self.envpool.make, self.task, env_type="gymnasium", seed=seeds, **self.settings)
            self.pool = at_idle_priority(make) if self.idle else make()
            self.obs, told = self.pool.reset()
            self.lives = told["lives"]
        else:
            self._restart(np.flatnonzero(mask))
        return self._seen(self.obs), {"lives": self.lives}

    def send(self, actions: NDArray[np.int64]) -> None:
        """Begin a step."""
        self.pool.send(actions)

    def recv(self) -> tuple[Any, Any, NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """What the step gave; `final_obs` holds the last pictures of the games that ended with it."""
        self.obs, rewards, _, _, told = self.pool.recv()
        self.lives = told["lives"]
        # EnvPool's own flags call a game that ends with the last step of its time cut off.
        terminated = told["terminated"].astype(np.bool_)
        truncated = (told["elapsed_step"] >= self.limit) & ~terminated
        infos: dict[str, Any] = {}
        ended = terminated | truncated
        if ended.any():
            infos["final_obs"] = self._seen(self.obs)
            self._restart(np.flatnonzero(ended))
        infos["lives"] = self.lives
        return self._seen(self.obs), rewards, terminated, truncated, infos

    def step(self, actions: NDArray[np.int64]) -> tuple[Any, ...]:
        """One step of all games."""
        self.send(actions)
        return self.recv()

    def _restart(self, numbers: NDArray[np.int64]) -> None:
        """Begin these games anew; the arrays handed out before stay as they are."""
        if not len(numbers):
            return
        obs, told = self.pool.reset(numbers.astype(np.int32))
        self.obs, self.lives = self.obs.copy(), self.lives.copy()
        self.obs[told["env_id"]], self.lives[told["env_id"]] = obs, told["lives"]

    def _seen(self, obs: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Pictures as ALE's emulators give them: in colour [N, 1, 210, 160, 3]."""
        return obs.transpose(0, 2, 3, 1)[:, None] if self.in_color else obs

    def _check_rom(self, game: str) -> None:
        """EnvPool ends the process over a ROM it cannot load; its ROMs are the same files as ale-py's."""
        own = Path(self.envpool.atari.registration.atari_rom_path) / f"{self.rom}.bin"
        try:
            undamaged = own.read_bytes() == Path(import_ale().roms.get_rom_path(self.rom)).read_bytes()
        except OSError as error:
            raise OptimistError(f"cannot load EnvPool's ROM of {game}: {error}; reinstall envpool-assets") from error
        if not undamaged:
            raise OptimistError(f"EnvPool's ROM of {game} is not the one ale-py has: {own}; reinstall envpool-assets")
