"""Steps per second of the emulator alone, with random actions: what no learner can exceed."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from optimist.envs.atari.vector import AtariVectorEnv

WARM_UP_STEPS = 768
"""Of each game: the first games end, and restarts, which take as long as 20 steps, come in."""
ROUND = 24
"""Steps of all games between two looks at the clock."""


def emulator_speed(game: str, num_envs: int, lanes: int, threads: int, seconds: float, backend: str = "ale") -> float:
    """Steps of all games together; lanes are begun in turn, so that one plays while another is received."""
    env = AtariVectorEnv(num_envs, game=game, sticky=0.0, lanes=lanes, threads=threads, backend=backend)
    try:
        env.reset(seed=0)
        actions = np.random.default_rng(0).integers(0, len(env.action_meanings), (ROUND, num_envs))
        for lane in env.lanes:
            lane.send(actions[0][lane.columns])
        for _ in range(WARM_UP_STEPS // ROUND):
            _play(env, actions)
        steps, begin = 0, time.perf_counter()
        while time.perf_counter() - begin < seconds:
            _play(env, actions)
            steps += actions.size
        elapsed = time.perf_counter() - begin
        for lane in env.lanes:
            lane.receive()
    finally:
        env.close()
    return steps / elapsed


def _play(env: AtariVectorEnv, actions: Any) -> None:
    for row in actions:
        for lane in env.lanes:
            lane.receive()
            lane.send(row[lane.columns])
