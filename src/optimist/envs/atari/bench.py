"""Steps per second of the emulator alone, with random actions: what no learner can exceed."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optimist.cores import HAS_IDLE_PRIORITY
from optimist.envs.atari.emulator import action_names, find_rom
from optimist.envs.atari.pool import import_envpool
from optimist.envs.atari.vector import AtariVectorEnv

WARM_UP_STEPS = 768
"""Of each game: the first games end, and restarts, which take as long as 20 steps, come in."""
ROUND = 24
"""Steps after which the moves begin anew."""


@dataclass(frozen=True)
class Division:
    """So many games, and who plays them."""

    games: int
    lanes: int = 0
    workers: str = "threads"
    backend: str = "ale"
    ready_first: bool = False
    """EnvPool's own way: half of the games are handed over at a time, those that are ready first."""

    @property
    def name(self) -> str:
        """In words; ale-py goes without saying."""
        words = [f"{self.games} games"] + [f"{self.lanes} lane{'s' * (self.lanes > 1)}"] * (self.lanes > 0)
        words += [f"{self.games // 2} at a time" if self.ready_first else self.workers]
        return ", ".join(words + [self.backend] * (self.backend != "ale"))


def emulator_speed(game: str, division: Division, seconds: float) -> float:
    """Steps of all games together: whoever has played is at once asked to go on, as in training."""
    if division.ready_first:
        return _speed_of_those_ready_first(game, division.games, seconds)
    priority = "idle" if HAS_IDLE_PRIORITY and division.games > 16 else "normal"  # as in the presets
    env = AtariVectorEnv(
        division.games,
        game=game,
        sticky=0.0,
        lanes=division.lanes,
        workers=division.workers,
        priority=priority,
        backend=division.backend,
    )
    moves = np.random.default_rng(0).integers(0, len(env.action_meanings), (ROUND, division.games))
    try:
        env.reset(seed=0)
        play_until(env, moves, steps=WARM_UP_STEPS * division.games)
        begin = time.perf_counter()
        steps = play_until(env, moves, end=begin + seconds)
        elapsed = time.perf_counter() - begin
    finally:
        env.close()
    return steps / elapsed


def play_until(env: AtariVectorEnv, moves: NDArray[Any], *, steps: float = math.inf, end: float = math.inf) -> int:
    """How many steps the games made: at least so many, or until then."""
    made, times, games = 0, np.zeros(env.num_envs, np.int64), np.arange(env.num_envs)
    env.begin(games, moves[0])
    while made < steps and time.perf_counter() < end:
        games = env.arrived()
        made += len(games)
        times[games] += 1
        env.begin(games, moves[times[games] % ROUND, games])
    env.abandon()
    return made


def _speed_of_those_ready_first(game: str, games: int, seconds: float) -> float:
    """EnvPool alone, asked for half of its games at a time; restarts are steps of their own and count."""
    name, half = "".join(word.capitalize() for word in find_rom(game).split("_")), games // 2
    pool = import_envpool().make(f"{name}-v5", env_type="gymnasium", num_envs=games, batch_size=half, seed=0)
    actions = np.random.default_rng(0).integers(0, len(action_names(game)), (ROUND, half))
    pool.async_reset()

    def play(rounds: int) -> None:
        for row in [*actions] * rounds:
            ready = pool.recv()[4]["env_id"]
            pool.send(row, ready)

    play(2 * WARM_UP_STEPS // ROUND)
    begin, steps = time.perf_counter(), 0
    while time.perf_counter() < begin + seconds:
        play(1)
        steps += ROUND * half
    return steps / (time.perf_counter() - begin)
