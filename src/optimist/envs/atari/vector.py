"""AtariVectorEnv: N environments of one game; a lost life is reported apart from the end of an episode."""

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
from optimist.envs.atari.buffers import OBS_SIZE, episode_ends, lives_lost
from optimist.envs.atari.collector import AtariCollector
from optimist.envs.atari.console_emulators import ConsoleEmulators, choose_emulator
from optimist.envs.atari.emulator import FRAME_SKIP
from optimist.envs.atari.games import FireButton, Slots, action_names
from optimist.envs.atari.local_emulators import LocalEmulators
from optimist.envs.atari.subprocess_emulators import SUPPORTED, SubprocessEmulators
from optimist.envs.checks import checked_actions, reset_mask
from optimist.errors import CheckpointError, ConfigError, unknown_name

Frames = NDArray[np.uint8]
StepResult = tuple[Frames, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]
SPIN_SECONDS = 2e-3
"""How long worker processes and their host busy-wait where cores are free: waking up takes a good part of a step."""


class AtariVectorEnv(VectorEnv[Frames, NDArray[np.int64], NDArray[Any]]):
    """N environments of one Atari game on ale-py or a2600, reset within the step that ends an episode.

    Observations are uint8 [N, stack, 84, 84], oldest frame first; rewards are raw. `infos["life_lost"]` [N] marks lives
    lost in episodes that continue, `infos["lives"]` [N] counts those left. `infos["executed"]` [N] is present when FIRE
    replaced an action.

    It is an AsyncVectorEnv: with `send` and `recv` some slots are stepped while the actions of others are selected.
    `state_dict` and `load_state_dict` save and restore all games exactly.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 (declared so by Gymnasium)
        "render_modes": ["rgb_array"],
        "render_fps": 60 // FRAME_SKIP,
        "autoreset_mode": AutoresetMode.SAME_STEP,
    }
    collector_class = AtariCollector

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
        emulator: str = "auto",
        num_workers: int = 0,
        worker_type: str = "auto",
        threads: int = 0,
        priority: str = "normal",
        render_mode: str | None = None,
    ) -> None:
        """`game` and `sticky`, the probability that the console repeats the previous action, have no default.

        `life_loss_ends`: report lost lives as ends for the learner. `fire_after_life_loss`: press FIRE where a game
        waits for it. `no_ops`: most no-op frames at the start. `max_frames`: time limit of an episode.
        `emulator`: "ale", "a2600", or "auto", which is a2600 where it is installed and plays this game as ale-py does.
        `num_workers`: groups of environments, for ale-py each with a worker process; at most one for each environment,
        0 to choose by the number of cores. `worker_type` of ale-py: "processes", "none" to step all emulators in the
        calling thread, or "auto", which is processes where they are supported. `threads` of a2600: 0 for one per core.
        `priority` of these processes or threads: "normal", or "idle" to run only on cores that are otherwise unused.
        """
        counts = {"no_ops": no_ops, "max_frames": max_frames, "stack": stack, "num_workers": num_workers}
        _check(num_envs, sticky=sticky, threads=threads, **counts)
        if render_mode not in (None, "rgb_array"):
            raise ConfigError(f"render_mode must be 'rgb_array' or None, got '{render_mode}'")
        self.num_envs, self.game, self.render_mode = num_envs, game, render_mode
        self.emulator = choose_emulator(emulator, game)
        self.notes: list[str] = []
        idle = _is_idle(priority, self.notes)
        in_processes = _uses_processes(worker_type, renders=render_mode is not None, notes=self.notes)
        num_workers = min(num_envs, num_workers or _default_num_workers(idle=idle))
        self.group_bounds = [num_envs * worker // num_workers for worker in range(num_workers + 1)]
        settings: dict[str, Any] = {"sticky": float(sticky), "no_ops": no_ops, "max_frames": max_frames, "stack": stack}
        self.emulators: ConsoleEmulators | LocalEmulators | SubprocessEmulators
        if self.emulator == "a2600":
            renders = render_mode is not None
            self.emulators = ConsoleEmulators(game, num_envs, **settings, threads=threads, idle=idle, in_color=renders)
        elif in_processes:
            has_free_cores = num_workers < available_cores() and not is_nice()
            settings |= {"idle": idle, "spin_seconds": SPIN_SECONDS if has_free_cores else 0.0}
            self.emulators = SubprocessEmulators(game, num_envs, self.group_bounds, **settings)
        else:
            self.emulators = LocalEmulators(game, num_envs, **settings, in_color=render_mode is not None)
        self.notes.insert(0, f"emulator: {self.emulators.version}")
        self.buffers, self.life_loss_ends = self.emulators.buffers, life_loss_ends
        self.action_meanings = list(action_names(game))
        has_fire = fire_after_life_loss and "FIRE" in self.action_meanings
        self.fire = FireButton(game, num_envs, self.action_meanings.index("FIRE") if has_fire else None, sticky)
        self.lives: NDArray[np.int32] = np.zeros(num_envs, np.int32)
        self.single_observation_space = Box(0, 255, (stack, OBS_SIZE, OBS_SIZE), np.uint8)
        self.single_action_space = Discrete(len(self.action_meanings))
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._started = False

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Frames, dict[str, Any]]:
        """Observations after starting new episodes in all environments, or in those of `options["reset_mask"]`."""
        self._require_open()
        super().reset(seed=seed)
        mask = reset_mask(options, self.num_envs)
        if not self._started and not mask.all():
            raise ResetNeeded(f"{self.game} has not started: the first reset has to be of all environments")
        if seed is None and not self._started:
            seed = int(self.np_random.integers(2**31))
        seeds = None if seed is None else emulator_seeds(seed, self.num_envs)[mask]
        slots = np.flatnonzero(mask)
        self.emulators.reset(slots, seeds)
        self._started = True
        self.lives[slots] = self.buffers.results["lives"][slots]
        ended = np.ones(len(slots), np.bool_)
        self.fire.update(slots, ~ended, ended=ended)
        return self.buffers.obs.copy(), {"lives": self.lives.copy()}

    def step(self, actions: NDArray[np.int64]) -> StepResult:
        """Observations, raw rewards, terminated, truncated and infos."""
        self._require_open()
        if not self._started:
            raise ResetNeeded(f"{self.game} has not started: call reset() first")
        actions = checked_actions(actions, self.num_envs, len(self.action_meanings))  # ALE hangs if one does not exist
        before, left = self.lives.copy(), self.num_envs
        executed = self.send(np.arange(self.num_envs), actions)
        while left:
            left -= len(self.recv())
        results = self.buffers.results
        ended, infos = episode_ends(results), dict[str, Any](lives=self.lives.copy())
        if self.life_loss_ends:
            infos["life_lost"] = lives_lost(before, self.lives, ended)
        if executed is not None:
            infos["executed"], infos["_executed"] = executed
        if ended.any():
            infos["final_obs"], infos["_final_obs"] = self.buffers.final_obs.copy(), ended
        rewards, terminated, truncated = (results[name].copy() for name in ("reward", "terminated", "truncated"))
        return self.buffers.obs.copy(), rewards, terminated, truncated, infos

    def send(self, slots: Slots, actions: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]] | None:
        """Start a step in these slots. Returns the executed actions and where FIRE replaced one; None if nowhere."""
        actions, pressed = self.fire.press(slots, actions)
        self.emulators.send(slots, actions)
        return None if pressed is None else (actions, pressed)

    def recv(self, stop_when: Callable[[], bool] | None = None) -> Slots:
        """Wait for slots whose step is done: at least one, or none as soon as `stop_when` returns true.

        Their results are in `buffers`.
        """
        slots = self.emulators.recv(stop_when)
        if len(slots):
            before, results = self.lives[slots], self.buffers.results[slots]
            lives = self.lives[slots] = results["lives"]
            if self.fire.delay is not None:
                ended = episode_ends(results)
                self.fire.update(slots, lives_lost(before, lives, ended), ended)
        return slots

    def drain(self) -> None:
        """Wait for all steps in progress and discard their results."""
        self.emulators.drain()

    def pre_reset(self) -> None:
        """Prepare the next episodes in the background while no step is requested."""
        self.emulators.pre_reset()

    def render(self) -> tuple[Frames, ...]:
        """The screens of the current observations in colour, uint8 [210, 160, 3] each."""
        if self.render_mode is None or not self._started:
            raise ResetNeeded("nothing to render: make the environment with render_mode='rgb_array' and reset it")
        assert not isinstance(self.emulators, SubprocessEmulators)
        return tuple(self.emulators.screens())

    def state_dict(self) -> dict[str, Any]:
        """Everything of the games, between two steps."""
        return {
            "emulator": self.emulators.version,
            "games": [np.frombuffer(state, np.uint8) for state in self.emulators.save()],
            "lives": self.lives.copy(),
            "fire": self.fire.steps_left.copy(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from what `state_dict` returned."""
        if state["emulator"] != self.emulators.version:
            raise CheckpointError(
                f"the games were saved by {state['emulator']}, expected {self.emulators.version}; install "
                f"{state['emulator']} and choose it with env.kwargs.emulator"
            )
        self.emulators.load([games.tobytes() for games in state["games"]])
        self.lives[:], self.fire.steps_left[:] = state["lives"], state["fire"]
        self._started = True

    def close_extras(self, **kwargs: Any) -> None:
        """Release the emulators with their threads and processes."""
        self.emulators.close()
        self._started = False

    def _require_open(self) -> None:
        if self.closed:
            raise ClosedEnvironmentError(f"{self.game} was closed: make a new environment")


def emulator_seeds(seed: int, num_envs: int) -> NDArray[np.int64]:
    """A seed in [0, 2³¹) for each environment; unlike ALE's seed, seed + 1, … those of nearby seeds do not overlap."""
    return (np.random.SeedSequence(seed).generate_state(num_envs) >> 1).astype(np.int64)


def _is_idle(priority: str, notes: list[str]) -> bool:
    """Whether the emulators run at idle priority."""
    if priority not in ("normal", "idle"):
        raise unknown_name("priority", str(priority), ("normal", "idle"))
    if priority == "idle" and not HAS_IDLE_PRIORITY:
        notes.append("idle priority needs Linux: the emulators run at normal priority")
    return priority == "idle" and HAS_IDLE_PRIORITY


def _uses_processes(worker_type: str, *, renders: bool, notes: list[str]) -> bool:
    """Whether the workers are processes."""
    if worker_type not in ("none", "processes", "auto"):
        raise unknown_name("worker_type", str(worker_type), ("none", "processes", "auto"))
    if SUPPORTED and not renders:
        return worker_type != "none"
    if worker_type == "processes":
        limit = "cannot render" if renders else "need Linux on x86-64"
        notes.append(f"worker processes {limit}: this process steps the emulators")
    return False


def _default_num_workers(*, idle: bool) -> int:
    """One for each core, or two at idle priority, but at least four: some step while others wait for actions."""
    return max(4, (1 + idle) * available_cores())


def _check(num_envs: int, *, sticky: float, **counts: int) -> None:
    if isinstance(sticky, bool) or not isinstance(sticky, int | float) or not 0.0 <= sticky < 1.0:
        raise ConfigError(f"sticky is a probability in [0, 1), got {sticky!r}")
    least = {"num_envs": 1, "no_ops": 0, "max_frames": 1, "stack": 1, "threads": 0, "num_workers": 0}
    for name, value in {"num_envs": num_envs, **counts}.items():
        if type(value) is not int or value < least[name]:
            raise ConfigError(f"{name} must be a whole number of at least {least[name]}, got {value!r}")
