"""Steps per second of the emulator alone, with random actions: what no learner can exceed."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optimist.envs.atari.lane import Lane
from optimist.envs.atari.vector import AtariVectorEnv

WARM_UP_STEPS = 768
"""Of each game: the first games end, and restarts, which take as long as 20 steps, come in."""
ROUND = 24
"""Steps of a lane between two looks at the clock."""


def emulator_speed(game: str, num_envs: int, lanes: int, threads: int, seconds: float, backend: str = "ale") -> float:
    """Steps of all games together; every lane is played by a thread of its own, as in training."""
    env = AtariVectorEnv(num_envs, game=game, sticky=0.0, lanes=lanes, threads=threads, backend=backend)
    actions = np.random.default_rng(0).integers(0, len(env.action_meanings), (ROUND, num_envs))
    try:
        env.reset(seed=0)
        with ThreadPoolExecutor(len(env.lanes)) as players:
            for _ in range(WARM_UP_STEPS // ROUND):
                list(players.map(lambda lane: _play(lane, actions), env.lanes))
            begin = time.perf_counter()
            steps = sum(players.map(lambda lane: _play_until(begin + seconds, lane, actions), env.lanes))
            elapsed = time.perf_counter() - begin
    finally:
        env.close()
    return steps / elapsed


def _play_until(end: float, lane: Lane, actions: NDArray[Any]) -> int:
    """How many steps the lane's games made."""
    steps = 0
    while time.perf_counter() < end:
        _play(lane, actions)
        steps += ROUND * lane.num_envs
    return steps


def _play(lane: Lane, actions: NDArray[Any]) -> None:
    for row in actions:
        lane.send(row[lane.columns])
        lane.receive()
