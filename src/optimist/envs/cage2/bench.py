"""Steps per second through the vector interface: given random actions, observations and rewards written."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from optimist.cores import available_cores
from optimist.envs.cage2.cardiff import CardiffVectorEnv
from optimist.envs.cage2.env import CageVectorEnv
from optimist.errors import ConfigError

INTERFACES: dict[str, type[CageVectorEnv]] = {"plain": CageVectorEnv, "cardiff": CardiffVectorEnv}
REDS_MEASURED = ("B_line", "Meander")
HORIZON = 100


def steps_per_second(kind: type[CageVectorEnv], red: str, games: int, threads: int, seconds: float) -> float:
    """Steps of all games together, over whole episodes, for about so many seconds."""
    env = kind(games, red=red, horizon=HORIZON, threads=threads)
    actions = np.random.default_rng(0).integers(0, env.num_actions, (HORIZON, games))
    env.reset(seed=0)
    for row in actions:  # one episode to warm up
        env.step(row)
    steps, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        for row in actions:
            env.step(row)
        steps += actions.size
    elapsed = time.perf_counter() - start
    env.close()
    return steps / elapsed


def measure(games: int, seconds: float, progress: Callable[[str], None] = lambda what: None) -> dict[str, Any]:
    """All figures; `steps_per_second_per_core` is one core, plain interface, the slower of the two attackers."""
    if games < 1 or seconds <= 0:
        raise ConfigError(f"expected at least one game and some time, got {games} games and {seconds} seconds")
    cores = available_cores()
    raw: dict[str, dict[str, dict[str, float]]] = {}
    for interface, kind in INTERFACES.items():
        raw[interface] = {}
        for red in REDS_MEASURED:
            progress(f"{interface}, {red}")
            raw[interface][red] = {
                "one_core": steps_per_second(kind, red, games, 1, seconds),
                "all_cores": steps_per_second(kind, red, games * cores, cores, seconds),
            }
    return {
        "steps_per_second_per_core": min(figures["one_core"] for figures in raw["plain"].values()),
        "cores": cores,
        "games_per_core": games,
        "horizon": HORIZON,
        "raw": raw,
    }
