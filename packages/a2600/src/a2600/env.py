"""Gymnasium vector environment on the console, with the arguments, spaces and infos of ale-py's AtariVectorEnv."""

from __future__ import annotations

import ctypes
import os
from typing import Any

import numpy as np
from gymnasium.error import ClosedEnvironmentError, ResetNeeded
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from a2600.core import HEIGHT, WIDTH, Cartridge
from a2600.errors import A2600Error, StateError
from a2600.games import ACTIONS, find_game
from a2600.palette import grey_table, rgb_table

Array = NDArray[Any]
OPTIONS = [
    *("frame_skip", "stack", "height", "width", "channels", "max_pool", "noop_max", "max_frames", "fire_reset"),
    *("episodic_life", "life_loss_info", "clip", "autoreset", "padding"),
]
RESULT = np.dtype(
    [
        *((name, np.int32) for name in ("reward", "lives", "frame_number", "episode_frame_number")),
        *((name, np.bool_) for name in ("terminated", "truncated", "reset", "padding")),
    ]
)
"""The core's `Result`: a step without its observation."""
COMMAND = np.dtype([("slot", np.int32), ("action", np.int32), ("seed", np.int64)])
"""The core's `Command`; action -1 resets, with a new seed if it is at least 0."""
MODES = {AutoresetMode.NEXT_STEP: 0, AutoresetMode.SAME_STEP: 1, AutoresetMode.DISABLED: 2}
STATE_MAGIC = b"a2600-1\n"


class Options(ctypes.Structure):
    """The core's `Options`."""

    _fields_ = [*((name, ctypes.c_int32) for name in OPTIONS), ("sticky", ctypes.c_double)]


class AtariVectorEnv(VectorEnv[Array, Array, Array]):
    """N environments of one game, stepped by threads of the core.

    Observations are uint8 [N, stack, height, width], oldest frame first, with a last axis of 3 in colour. The same seed
    and actions give the same frames for any number of threads. Arrays that `step` and `reset` return are copies; those
    in `obs`, `final_obs` and `results` are updated in place, for callers of `send_slots` and `recv_slots`.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 15}  # noqa: RUF012 (as Gymnasium does)

    def __init__(
        self,
        game: str,
        num_envs: int = 1,
        *,
        batch_size: int = 0,
        num_threads: int = 0,
        thread_affinity_offset: int = -1,
        max_num_frames_per_episode: int = 108_000,
        repeat_action_probability: float = 0.0,
        full_action_space: bool = False,
        continuous: bool = False,
        continuous_action_threshold: float = 0.5,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        img_height: int = 84,
        img_width: int = 84,
        grayscale: bool = True,
        stack_num: int = 4,
        frameskip: int = 4,
        maxpool: bool = True,
        noop_max: int = 30,
        episodic_life: bool = False,
        life_loss_info: bool = False,
        reward_clipping: bool = True,
        use_fire_reset: bool = True,
        render_mode: str | None = None,
        rom_folder: str | os.PathLike[str] | None = None,
        allow_inexact: bool = False,
    ) -> None:
        """The arguments of ale-py's AtariVectorEnv. Others: `rom_folder` with .bin files, `allow_inexact` games.

        `num_threads`: 0 for one per core, at most one per environment. `batch_size`: environments that `recv` waits
        for; 0 for all.
        """
        if continuous or continuous_action_threshold != 0.5:
            raise A2600Error(
                "continuous actions are not supported; leave continuous and its threshold at their defaults"
            )
        if thread_affinity_offset != -1:
            raise A2600Error("thread_affinity_offset is not supported; use taskset to bind the process to cores")
        if render_mode not in (None, "rgb_array"):
            raise A2600Error(f"render_mode must be 'rgb_array' or None, got {render_mode!r}")
        _whole("num_envs", num_envs, 1, 65536)
        _whole("num_threads", num_threads, 0, 1024)
        _whole("batch_size", batch_size, 0, num_envs)
        _whole("max_num_frames_per_episode", max_num_frames_per_episode, 1, 2**29)
        _whole("img_height", img_height, 1, HEIGHT)
        _whole("img_width", img_width, 1, WIDTH)
        _whole("stack_num", stack_num, 1, 64)
        _whole("frameskip", frameskip, 1, 256)
        _whole("noop_max", noop_max, 0, 10_000)
        if not 0.0 <= repeat_action_probability < 1.0:
            raise A2600Error(f"repeat_action_probability must be in [0, 1), got {repeat_action_probability}")
        self.game = find_game(game, allow_inexact=allow_inexact)
        self.cartridge = Cartridge(self.game, rom_folder)
        self.core = self.cartridge.core
        self.num_envs, self.render_mode, self.batch_size = num_envs, render_mode, batch_size or num_envs
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.metadata = {**self.metadata, "autoreset_mode": self.autoreset_mode}
        self.actions = np.array(range(18) if full_action_space else self.game.actions, np.int32)
        self.action_meanings = [ACTIONS[action] for action in self.actions]
        threads = min(num_threads or _available_cores(), num_envs)
        options = Options(
            frame_skip=frameskip, stack=stack_num, height=img_height, width=img_width, channels=1 if grayscale else 3,
            max_pool=maxpool, noop_max=noop_max, max_frames=max_num_frames_per_episode, fire_reset=use_fire_reset,
            episodic_life=episodic_life, life_loss_info=life_loss_info, clip=reward_clipping,
            autoreset=MODES[self.autoreset_mode], sticky=repeat_action_probability,
        )  # fmt: skip
        self.greys, self.colors = grey_table(), rgb_table()
        self.pool = self.core.a2600_pool_new(
            self.cartridge.handle,
            ctypes.byref(options),
            self.greys.ctypes.data,
            self.colors.ctypes.data,
            self.actions.ctypes.data,
            len(self.actions),
            num_envs,
            threads,
        )
        if not self.pool:
            raise A2600Error(f"{num_envs} environments do not fit into memory or threads cannot start; use fewer")
        shape = (stack_num, img_height, img_width, *([] if grayscale else [3]))
        self.obs, self.final_obs = (np.zeros((num_envs, *shape), np.uint8) for _ in range(2))
        self.results = np.zeros(num_envs, RESULT)
        self._slots, self._busy = np.zeros(num_envs, np.int32), np.zeros(num_envs, np.bool_)
        self._slots_address = self._slots.ctypes.data
        self._everywhere = np.zeros(num_envs, COMMAND)  # a step of all environments
        self._everywhere["slot"] = self._env_ids = np.arange(num_envs, dtype=np.int32)
        self._everywhere_address = self._everywhere.ctypes.data
        self.bind(self.obs, self.final_obs, self.results)
        self.grayscale = grayscale
        self.single_observation_space = Box(0, 255, shape, np.uint8)
        self.single_action_space = Discrete(len(self.actions))
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._started, self._in_flight = False, 0
        self._received: Array | None = None  # environments that `recv` returned last; None: all

    def bind(self, obs: Array, final_obs: Array, results: Array) -> None:
        """Write observations and results to these arrays from now on, e.g. in memory that is pinned or shared."""
        for name, array in {"obs": obs, "final_obs": final_obs, "results": results}.items():
            like = getattr(self, name)
            if array.shape != like.shape or array.dtype != like.dtype or not array.flags.c_contiguous:
                expected, got = (f"{a.dtype}{list(a.shape)}" for a in (like, array))
                raise A2600Error(f"{name} must be contiguous {expected}, got {got}")
        self.obs, self.final_obs, self.results = obs, final_obs, results
        self.core.a2600_pool_bind(self.pool, obs.ctypes.data, final_obs.ctypes.data, results.ctypes.data)

    def reset(
        self, *, seed: int | Array | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """Start new episodes everywhere, or where `options["reset_mask"]` is true.

        `seed`: one number, from which environment i gets seed + i, or an array of one for each.
        """
        self._require_open()
        self._drain()
        mask = np.ones(self.num_envs, np.bool_)
        if options and "reset_mask" in options:
            mask = np.asarray(options["reset_mask"])
            if mask.shape != (self.num_envs,) or mask.dtype != np.bool_ or not mask.any():
                raise A2600Error(
                    f"reset_mask must be bool[{self.num_envs}] with a true entry, got {mask.dtype}{list(mask.shape)}"
                )
        slots = np.flatnonzero(mask).astype(np.int32)
        if seed is None and not self._started:
            seed = int(np.random.SeedSequence().generate_state(1)[0] >> 2)
        if seed is None:
            seeds = np.full(len(slots), -1)
        elif np.ndim(seed) == 0:
            super().reset(seed=int(seed))
            seeds = (int(seed) + slots.astype(np.int64)) % 2**31
        else:
            seeds = np.asarray(seed)
            if seeds.shape != slots.shape or seeds.dtype.kind not in "iu" or (seeds < 0).any():
                raise A2600Error(
                    f"seed must be a number, or {len(slots)} numbers of at least 0; got {list(seeds.shape)}"
                )
        if not self._started and len(slots) < self.num_envs:
            raise ResetNeeded("the first reset has to be of all environments; call reset() without reset_mask")
        self.send_slots(slots, np.full(len(slots), -1, np.int32), seeds)
        self._drain()
        self._started = True
        return self.obs.copy(), self._infos(self.results, self._env_ids)

    def step(self, actions: Array) -> tuple[Array, Array, Array, Array, dict[str, Any]]:
        """Observations, rewards, terminated, truncated and infos."""
        self._require_started()
        self._everywhere["action"] = self._checked(actions, self.num_envs)
        if self._in_flight:
            raise A2600Error(f"{self._in_flight} steps of send() are in progress; call recv() before step()")
        self._received = None
        self.core.a2600_pool_send(self.pool, self._everywhere_address, self.num_envs)
        self.core.a2600_pool_receive(self.pool, self._slots_address, self.num_envs, self.num_envs, -1.0)
        return self._step_result(None)

    def send(self, actions: Array) -> None:
        """Start a step of the environments that `recv` returned last (at first: all); `recv` follows."""
        self._require_started()
        slots = self._env_ids if self._received is None else self._received
        self.send_slots(slots, self._checked(actions, len(slots)))

    def recv(self) -> tuple[Array, Array, Array, Array, dict[str, Any]]:
        """Wait for `batch_size` environments; `infos["env_id"]` names them. Their next actions go to `send`."""
        self._require_open()
        if self._in_flight < self.batch_size:
            raise A2600Error(
                f"{self._in_flight} steps are in progress but recv waits for {self.batch_size}; call send() first"
            )
        slots = self.recv_slots(self.batch_size, self.batch_size)
        if self.batch_size == self.num_envs:
            slots = np.sort(slots)
        self._received = slots
        return self._step_result(slots)

    def send_slots(self, slots: Array, actions: Array, seeds: Array | None = None) -> None:
        """Start a step of these environments, or with action -1 a reset; each may have one command in progress."""
        self._require_open()
        slots = np.asarray(slots)
        if slots.ndim != 1 or (len(slots) and (slots.min() < 0 or slots.max() >= self.num_envs)):
            raise A2600Error(f"slots must be numbers in [0, {self.num_envs}), got {slots.tolist()}")
        actions = self._checked(actions, len(slots), 0 if seeds is None else -1)
        commands = np.empty(len(slots), COMMAND)
        commands["slot"], commands["action"], commands["seed"] = slots, actions, -1 if seeds is None else seeds
        if self._busy[slots].any():
            raise A2600Error(f"a step of one of the slots {slots.tolist()} is in progress; receive it first")
        self._busy[slots] = True
        if np.count_nonzero(self._busy) < self._in_flight + len(slots):
            self._busy[slots] = False
            raise A2600Error(f"slots must differ, got {slots.tolist()}")
        self._in_flight += len(slots)
        self.core.a2600_pool_send(self.pool, commands.ctypes.data, len(slots))

    def recv_slots(self, least: int = 1, most: int | None = None, seconds: float = -1.0) -> Array:
        """Wait for at least `least` environments, or for `seconds`; their rows in `obs` and `results` are then new."""
        self._require_open()
        least = min(least, self._in_flight)
        count = self.core.a2600_pool_receive(
            self.pool, self._slots_address, least, self.num_envs if most is None else most, seconds
        )
        self._in_flight -= count
        slots = self._slots[:count].copy()
        self._busy[slots] = False
        return slots

    def save_state(self) -> bytes:
        """Everything of all environments: consoles, pictures, stacks, random generators."""
        self._require_open()
        self._drain()
        size = self.core.a2600_pool_env_size(self.pool)
        states = np.zeros((self.num_envs, size), np.uint8)
        for slot in range(self.num_envs):
            self.core.a2600_pool_save(self.pool, slot, states[slot].ctypes.data)
        header = STATE_MAGIC + np.array([self.num_envs, size, self._started], np.int64).tobytes()
        return header + states.tobytes()

    def load_state(self, state: bytes) -> Array:
        """Continue from what `save_state` returned; returns the observations."""
        self._require_open()
        self._drain()
        size, start = self.core.a2600_pool_env_size(self.pool), len(STATE_MAGIC) + 24
        if state[: len(STATE_MAGIC)] != STATE_MAGIC or len(state) < start:
            raise StateError("not a state of a2600, or of another version; expected what save_state() returned")
        num_envs, env_size, started = np.frombuffer(state[len(STATE_MAGIC) : start], np.int64)
        if num_envs != self.num_envs or env_size != size or len(state) != start + num_envs * size:
            raise StateError(
                f"the state has {len(state)} bytes of {num_envs} environments, expected "
                f"{start + self.num_envs * size} of {self.num_envs}; "
                "load it into the same number of environments with the same options"
            )
        if not started:
            raise StateError("the state was saved before the first reset; call reset() instead")
        before = self.save_state() if self._started else None
        rows = np.frombuffer(state[start:], np.uint8).reshape(num_envs, size).copy()
        for slot in range(self.num_envs):
            if not self.core.a2600_pool_load(self.pool, slot, rows[slot].ctypes.data):
                if before is not None and slot:
                    self.load_state(before)
                raise StateError(f"the state of environment {slot} is damaged or of another game than {self.game.name}")
        self._started, self._received = True, None
        return self.obs.copy()

    def screens(self) -> Array:
        """The newest picture of each environment: uint8 [N, 210, 160], with a last axis of 3 if in colour."""
        self._require_open()
        pictures, ram = np.zeros((self.num_envs, HEIGHT, WIDTH), np.uint8), np.zeros(128, np.uint8)
        for slot in range(self.num_envs):
            self.core.a2600_pool_peek(self.pool, slot, ram.ctypes.data, pictures[slot].ctypes.data)
        return pictures if self.grayscale else self.colors[pictures]

    def render(self) -> tuple[Array, ...] | None:
        """The newest pictures, uint8 [210, 160, 3] each; in colour with grayscale=False."""
        if self.render_mode is None:
            return None
        pictures = self.screens()
        return tuple(np.repeat(pictures[..., None], 3, -1) if self.grayscale else pictures)

    def rams(self) -> Array:
        """The RAM of each environment, uint8 [N, 128]."""
        self._require_open()
        ram, picture = np.zeros((self.num_envs, 128), np.uint8), np.zeros((HEIGHT, WIDTH), np.uint8)
        for slot in range(self.num_envs):
            self.core.a2600_pool_peek(self.pool, slot, ram[slot].ctypes.data, picture.ctypes.data)
        return ram

    def xla(self) -> None:
        """Refuse: the JAX interface is not supported."""
        raise A2600Error("xla is not supported; use step, or send and recv")

    def close_extras(self, **kwargs: Any) -> None:
        """Release the environments and their threads."""
        if getattr(self, "pool", None):
            self.core.a2600_pool_free(self.pool)
            self.pool = None

    def __del__(self) -> None:
        self.close_extras()

    def _drain(self) -> None:
        while self._in_flight:
            self.recv_slots(self._in_flight)
        self._received = None

    def _require_open(self) -> None:
        if self.pool is None:
            raise ClosedEnvironmentError(f"{self.game.name} was closed; make a new environment")

    def _require_started(self) -> None:
        self._require_open()
        if not self._started:
            raise ResetNeeded(f"{self.game.name} has not started; call reset() first")

    def _checked(self, actions: Array, count: int, least: int = 0) -> Array:
        actions = np.asarray(actions)
        if actions.shape != (count,) or actions.dtype.kind not in "iu":
            raise A2600Error(f"actions must be int[{count}], got {actions.dtype}{list(actions.shape)}")
        if count and (actions.min() < least or actions.max() >= len(self.actions)):
            raise A2600Error(f"actions must be in [0, {len(self.actions)}), got {actions.min()} to {actions.max()}")
        return actions

    def _infos(self, rows: Array, slots: Array) -> dict[str, Any]:
        names = ("lives", "frame_number", "episode_frame_number")
        return {"env_id": slots.copy(), **{name: rows[name].copy() for name in names}}

    def _step_result(self, slots: Array | None) -> tuple[Array, Array, Array, Array, dict[str, Any]]:
        """What `step` and `recv` return; `slots`: None for all."""
        rows = self.results if slots is None else self.results[slots]
        infos = self._infos(rows, self._env_ids if slots is None else slots)
        terminated, truncated = rows["terminated"].copy(), rows["truncated"].copy()
        if self.autoreset_mode == AutoresetMode.SAME_STEP and (ended := terminated | truncated).any():
            infos["final_obs"] = self.final_obs.copy() if slots is None else self.final_obs[slots]
            infos["_final_obs"] = ended
        obs = self.obs.copy() if slots is None else self.obs[slots]
        return obs, rows["reward"].copy(), terminated, truncated, infos


def _whole(name: str, value: int, least: int, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not least <= value <= most:
        raise A2600Error(f"{name} must be a whole number from {least} to {most}, got {value!r}")


def _available_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
