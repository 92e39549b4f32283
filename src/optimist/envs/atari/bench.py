"""Steps per second of the emulators alone, with random actions: an upper bound for every learner."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optimist.cores import HAS_IDLE_PRIORITY
from optimist.envs.atari.console_emulators import choose_emulator
from optimist.envs.atari.games import action_names, find_rom
from optimist.envs.atari.subprocess_emulators import SUPPORTED
from optimist.envs.atari.vector import AtariVectorEnv

SIZES = (8, 10, 64, 128)
"""Numbers of environments."""
WARM_UP_STEPS = 768
"""Of each environment: the first episodes end, and resets, which take as long as 20 steps, are included."""
ACTION_ROWS = 24
"""Random actions of each environment; they repeat after these steps."""


@dataclass(frozen=True)
class EmulatorSetup:
    """A number of environments, and what steps them."""

    num_envs: int
    emulator: str  # ale, a2600 or EnvPool, which steps half of more than 16 environments at a time
    worker_type: str = "processes"

    @property
    def name(self) -> str:
        """A description."""
        workers = {"processes": "processes", "none": "one thread"}[self.worker_type]
        return f"{self.num_envs} envs, {f'ale-py, {workers}' if self.emulator == 'ale' else self.emulator}"


def emulator_setups(game: str) -> list[EmulatorSetup]:
    """What is measured: ale-py, in processes where they are supported; a2600 and EnvPool where they are installed."""
    setups = [EmulatorSetup(SIZES[0], "ale", worker_type="none")]
    if SUPPORTED:
        setups += [EmulatorSetup(num_envs, "ale") for num_envs in SIZES]
    if choose_emulator("auto", game) == "a2600":
        setups += [EmulatorSetup(num_envs, "a2600") for num_envs in SIZES]
    if find_spec("envpool"):
        setups += [EmulatorSetup(num_envs, "EnvPool") for num_envs in SIZES]
    return setups


def emulator_speed(game: str, setup: EmulatorSetup, seconds: float) -> float:
    """Steps per second of all environments together; each step is followed by the next at once, as in training."""
    if setup.emulator == "EnvPool":
        return _envpool_speed(game, setup.num_envs, seconds)
    env = AtariVectorEnv(
        setup.num_envs,
        game=game,
        sticky=0.0,
        emulator=setup.emulator,
        worker_type=setup.worker_type,
        priority="idle" if HAS_IDLE_PRIORITY and setup.num_envs > 16 else "normal",  # as in the presets
    )
    actions = np.random.default_rng(0).integers(0, len(env.action_meanings), (ACTION_ROWS, setup.num_envs))
    try:
        env.reset(seed=0)
        step_until(env, actions, min_steps=WARM_UP_STEPS * setup.num_envs)
        start = time.perf_counter()
        steps = step_until(env, actions, end=start + seconds)
        elapsed = time.perf_counter() - start
    finally:
        env.close()
    return steps / elapsed


def step_until(
    env: AtariVectorEnv, actions: NDArray[Any], *, min_steps: float = math.inf, end: float = math.inf
) -> int:
    """Step until there are `min_steps` steps of all environments or the time `end`; the number of steps."""
    total, steps_done, slots = 0, np.zeros(env.num_envs, np.int64), np.arange(env.num_envs)
    env.send(slots, actions[0])
    while total < min_steps and time.perf_counter() < end:
        slots = env.recv()
        total += len(slots)
        steps_done[slots] += 1
        env.send(slots, actions[steps_done[slots] % ACTION_ROWS, slots])
    env.drain()
    return total


def _envpool_speed(game: str, num_envs: int, seconds: float) -> float:
    """EnvPool's speed; resets are steps of their own and count."""
    import envpool

    task = "".join(word.capitalize() for word in find_rom(game).split("_")) + "-v5"
    batch_size = num_envs if num_envs <= 16 else num_envs // 2
    pool = envpool.make(task, env_type="gymnasium", num_envs=num_envs, batch_size=batch_size, seed=0)
    actions = np.random.default_rng(0).integers(0, len(action_names(game)), (ACTION_ROWS, batch_size))
    pool.async_reset()

    def step_all(rounds: int) -> None:
        for row in [*actions] * rounds:
            slots = pool.recv()[4]["env_id"]
            pool.send(row, slots)

    step_all(-(-WARM_UP_STEPS * num_envs // batch_size // ACTION_ROWS))
    start, steps = time.perf_counter(), 0
    while time.perf_counter() < start + seconds:
        step_all(1)
        steps += ACTION_ROWS * batch_size
    return steps / (time.perf_counter() - start)
