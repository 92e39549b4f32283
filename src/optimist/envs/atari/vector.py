"""AtariVectorEnv: N games behind one interface; a lost life is told apart from the end of the game."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from gymnasium.error import ClosedEnvironmentError, ResetNeeded
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from optimist.cores import HAS_IDLE_PRIORITY, available_cores, is_nice
from optimist.envs.atari.apart import CAN_SHARE, PlayersApart
from optimist.envs.atari.board import SIZE, has_ended
from optimist.envs.atari.emulator import FRAME_SKIP, action_names, emulator_seeds
from optimist.envs.atari.fire import FireButton
from optimist.envs.atari.lanes import BACKENDS, Lanes
from optimist.envs.atari.players import Games, Players
from optimist.envs.atari.pool import DIFFERENCES
from optimist.errors import ConfigError, ShapeMismatch, unknown_name

Pixels = NDArray[np.uint8]
Step = tuple[Pixels, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]
PATIENCE = 2e-3
"""Seconds that processes look for each other's news before they fall asleep, where cores are to spare and nobody has
asked them to be nice: to be woken up takes a good part of a step."""


class AtariVectorEnv(VectorEnv[Pixels, NDArray[np.int64], NDArray[Any]]):
    """N games of Atari on ALE's vector environment, or on EnvPool, reset within the step.

    Observations are uint8 [N, stack, 84, 84], oldest frame first; rewards are the game's own. `infos["life_lost"]`
    [N] marks lives lost in games that go on, `infos["lives"]` [N] counts those left. `infos["executed"]` [N] is there
    when FIRE replaced an action that was asked for.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 (declared so by Gymnasium)
        "render_modes": ["rgb_array"],
        "render_fps": 60 // FRAME_SKIP,
        "autoreset_mode": AutoresetMode.SAME_STEP,
    }

    def __init__(
        self,
        num_envs: int = 1,
        *,
        game: str,
        sticky: float,
        life_loss_ends: bool = True,
        fire_after_life_loss: bool = True,
        no_ops: int = 30,
        max_frames: int = 108_000,
        stack: int = 4,
        threads: int = 0,
        lanes: int = 1,
        workers: str = "threads",
        priority: str = "normal",
        backend: str = "ale",
        render_mode: str | None = None,
    ) -> None:
        """Without a default: `game`, and `sticky`, the probability that the console repeats the previous action.

        `life_loss_ends`: report lost lives as ends for the learner. `fire_after_life_loss`: press FIRE where a game
        waits for it. `no_ops`: most frames without action at the start. `max_frames`: time limit of a game.
        `lanes`: groups of games that can be stepped apart, at most one a game; 0 for as many as there is work for.
        `workers`: what plays them, "threads" of this process, a process for each lane ("processes"), or "auto",
        processes where they can be had. `threads`: of a lane; 0 for its share of the cores, twice as many at idle
        priority. `priority`: "normal", or "idle" for emulators that play where nothing else wants the core. `backend`:
        whose they are, "ale" or "envpool".
        """
        _check(num_envs, sticky=sticky, no_ops=no_ops, max_frames=max_frames, stack=stack, threads=threads, lanes=lanes)
        _check_names(render_mode, backend)
        self.num_envs, self.game, self.backend, self.render_mode = num_envs, game, backend, render_mode
        self.notes = [DIFFERENCES] if backend == "envpool" else []
        idle = _is_idle(priority, self.notes)
        apart = _is_apart(workers, backend, shown=render_mode is not None, notes=self.notes)
        lanes = min(num_envs, lanes or _most_lanes(num_envs, apart=apart, idle=idle))
        threads = threads or min(max(1, (1 + idle) * available_cores() // lanes), -(-num_envs // lanes))
        self.bounds = [num_envs * lane // lanes for lane in range(lanes + 1)]
        settings: dict[str, Any] = {"sticky": float(sticky), "no_ops": no_ops, "max_frames": max_frames, "idle": idle}
        self.players: Players
        if apart:
            settings["patience"] = PATIENCE if lanes < available_cores() and not is_nice() else 0.0
            self.players = PlayersApart(game, num_envs, self.bounds, stack=stack, **settings)
        else:
            settings["threads"] = threads
            self.players = Lanes(game, num_envs, self.bounds, stack=stack, backend=backend, **settings)
        self.camera = None
        if render_mode is not None:
            self.camera = BACKENDS[backend](game, num_envs, stack=stack, **settings, in_color=True)
        self.screens: Pixels | None = None
        self.board, self.life_loss_ends = self.players.board, life_loss_ends
        self.longest_episode = -(-max_frames // FRAME_SKIP)
        self.action_meanings = list(action_names(game))
        has_fire = fire_after_life_loss and "FIRE" in self.action_meanings
        self.fire = FireButton(game, num_envs, self.action_meanings.index("FIRE") if has_fire else None, sticky)
        self.lives: NDArray[np.int32] = np.zeros(num_envs, np.int32)
        self.single_observation_space = Box(0, 255, (stack, SIZE, SIZE), np.uint8)
        self.single_action_space = Discrete(len(self.action_meanings))
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._started = False

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Pixels, dict[str, Any]]:
        """Observations after starting all games anew, or those in `options["reset_mask"]`."""
        self._require_open()
        super().reset(seed=seed)
        mask = self._reset_mask(options)
        if seed is not None and self.backend == "envpool" and not mask.all():
            raise ConfigError("EnvPool seeds all its games or none: reset some of them without a seed")
        if seed is None and not self._started:
            seed = int(self.np_random.integers(2**31))
        seeds = None if seed is None else emulator_seeds(seed, self.num_envs)[mask]
        games = np.flatnonzero(mask)
        self.players.reset(games, seeds)
        if self.camera is not None:
            options = None if mask.all() else {"reset_mask": mask}
            self.screens = self.camera.reset(seed=seeds, options=options)[0][:, 0]
        self._started = True
        self.lives[games] = self.board.told["lives"][games]
        everyone = np.ones(len(games), np.bool_)
        self.fire.watch(games, ~everyone, ended=everyone)
        return self.board.obs.copy(), {"lives": self.lives.copy()}

    def step(self, actions: NDArray[np.int64]) -> Step:
        """Observations, raw rewards, terminated, truncated and infos."""
        actions = self._checked(actions)
        before, left = self.lives.copy(), self.num_envs
        executed = self.begin(np.arange(self.num_envs), actions)
        if self.camera is not None:
            self.screens = self.camera.step(actions if executed is None else executed[0])[0][:, 0]
        while left:
            left -= len(self.arrived())
        told = self.board.told
        ended, infos = has_ended(told), dict[str, Any](lives=self.lives.copy())
        if self.life_loss_ends:
            infos["life_lost"] = lives_lost(before, self.lives, ended)
        if executed is not None:
            infos["executed"], infos["_executed"] = executed
        if ended.any():
            infos["final_obs"], infos["_final_obs"] = self.board.final_obs.copy(), ended
        rewards, terminated, truncated = (told[name].copy() for name in ("reward", "terminated", "truncated"))
        return self.board.obs.copy(), rewards, terminated, truncated, infos

    def begin(self, games: Games, actions: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]] | None:
        """Begin a step of some games. What is returned, if anything: the moves that are made and where they are FIRE,
        pressed in the place of another."""
        actions, pressed = self.fire.press(games, actions)
        self.players.begin(games, actions)
        return None if pressed is None else (actions, pressed)

    def arrived(self, unless: Callable[[], bool] | None = None) -> Games:
        """Games whose step is on the board now: at least one, unless something else has happened meanwhile."""
        games = self.players.arrived(unless)
        if len(games):
            before, told = self.lives[games], self.board.told[games]
            lives = self.lives[games] = told["lives"]
            if self.fire.delay is not None:
                ended = has_ended(told)
                self.fire.watch(games, lives_lost(before, lives, ended), ended)
        return games

    def abandon(self) -> None:
        """Wait for games at play, whatever they give: whatever comes next, nobody is in the middle of a step."""
        self.players.abandon()

    def rest(self) -> None:
        """No step is begun for a while: beginnings of next games can be prepared."""
        self.players.rest()

    def render(self) -> tuple[Pixels, ...]:
        """The screens in colour, uint8 [210, 160, 3] each: those the current observations were made of."""
        if self.screens is None:
            raise ResetNeeded("nothing to render: make the environment with render_mode='rgb_array' and reset it")
        return tuple(self.screens)

    def close_extras(self, **kwargs: Any) -> None:
        """Let go of the emulators, their threads and processes."""
        self.players.close()
        self.camera, self._started = None, False

    def _checked(self, actions: NDArray[Any]) -> NDArray[np.int64]:
        """The actions, if there is one for each game and all exist: ALE hangs for ever over one that does not."""
        self._require_open()
        if not self._started:
            raise ResetNeeded(f"{self.game} has not started: call reset() first")
        actions = np.asarray(actions)
        if actions.shape != (self.num_envs,) or actions.dtype.kind not in "iu":
            raise ShapeMismatch(f"actions is {actions.dtype}{list(actions.shape)}, expected int64[{self.num_envs}]")
        checked = actions.astype(np.int64, copy=False)
        # Seen as unsigned, a negative number is a huge one.
        if checked.view(np.uint64).max() >= len(self.action_meanings):
            raise ConfigError(
                f"actions must lie in [0, {len(self.action_meanings)}), got {actions.min()} to {actions.max()}"
            )
        return checked

    def _require_open(self) -> None:
        if self.closed:
            raise ClosedEnvironmentError(f"{self.game} was closed: make a new environment")

    def _reset_mask(self, options: dict[str, Any] | None) -> NDArray[np.bool_]:
        if not options:
            return np.ones(self.num_envs, np.bool_)
        mask = np.asarray(options.get("reset_mask"))
        if set(options) != {"reset_mask"} or mask.shape != (self.num_envs,) or mask.dtype != np.bool_:
            raise ShapeMismatch(f"reset takes one option, reset_mask as bool[{self.num_envs}]; got {options}")
        if not self._started and not mask.all():
            raise ResetNeeded(f"{self.game} has not started: the first reset has to be of all environments")
        return mask


def lives_lost(before: NDArray[np.int32], lives: NDArray[np.int32], ended: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Where a life was lost in a game that goes on. With none left it is about to end: Qbert takes some more frames."""
    lost: NDArray[np.bool_] = (lives < before) & (lives > 0) & ~ended
    return lost


def _is_idle(priority: str, notes: list[str]) -> bool:
    """Whether the emulators' threads step back behind everybody else's."""
    if priority not in ("normal", "idle"):
        raise unknown_name("priority", str(priority), ("normal", "idle"))
    if priority == "idle" and not HAS_IDLE_PRIORITY:
        notes.append("idle priority is Linux's: here the emulators play at normal priority")
    return priority == "idle" and HAS_IDLE_PRIORITY


def _is_apart(workers: str, backend: str, *, shown: bool, notes: list[str]) -> bool:
    """Whether the emulators play in processes of their own."""
    if workers not in ("threads", "processes", "auto"):
        raise unknown_name("kind of workers", str(workers), ("threads", "processes", "auto"))
    if backend != "ale":
        hindrance = "are ale-py's"
    elif not CAN_SHARE:
        hindrance = "are for Linux on x86-64"
    elif shown:  # a camera plays along, and its emulators are those of threads
        hindrance = "show nothing"
    else:
        return workers != "threads"
    if workers == "processes":
        notes.append(f"emulators in processes of their own {hindrance}: here they play in threads")
    return False


def _most_lanes(num_envs: int, *, apart: bool, idle: bool) -> int:
    """A process for each core, or two where they leave it to others; threads of one process are in each other's way.

    At least four: where there are fewer cores, some have to play while others are decided for.
    """
    return max(4, (1 + idle) * available_cores()) if apart else max(1, min(8, num_envs // 2))


def _check_names(render_mode: str | None, backend: str) -> None:
    if render_mode not in (None, "rgb_array"):
        raise ConfigError(f"render_mode must be 'rgb_array' or None, got '{render_mode}'")
    if backend not in BACKENDS:
        raise unknown_name("Atari back-end", str(backend), BACKENDS)


def _check(num_envs: int, *, sticky: float, **counts: int) -> None:
    if isinstance(sticky, bool) or not isinstance(sticky, int | float) or not 0.0 <= sticky < 1.0:
        raise ConfigError(f"sticky is a probability in [0, 1), got {sticky!r}")
    least = {"num_envs": 1, "no_ops": 0, "max_frames": 1, "stack": 1, "threads": 0, "lanes": 0}
    for name, value in {"num_envs": num_envs, **counts}.items():
        if type(value) is not int or value < least[name]:
            raise ConfigError(f"{name} must be a whole number of at least {least[name]}, got {value!r}")
