"""Speed of the simulator: steps per second of the vector environments with random actions."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np

from cage2.cardiff import CardiffVectorEnv
from cage2.cores import available_cores
from cage2.errors import ConfigError
from cage2.text import text_table
from cage2.vector_env import CageVectorEnv

INTERFACES: dict[str, type[CageVectorEnv]] = {"plain": CageVectorEnv, "cardiff": CardiffVectorEnv}
REDS_MEASURED = ("B_line", "Meander")
HORIZON = 100


def steps_per_second(kind: type[CageVectorEnv], red: str, games: int, threads: int, seconds: float) -> float:
    """Steps per second of all games together, over whole episodes."""
    env = kind(games, red=red, horizon=HORIZON, threads=threads)
    actions = np.random.default_rng(0).integers(0, env.num_actions, (HORIZON, games))
    env.reset(seed=0)
    for row in actions:  # one episode of warm-up
        env.step(row)
    steps, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        for row in actions:
            env.step(row)
        steps += actions.size
    elapsed = time.perf_counter() - start
    env.close()
    return steps / elapsed


def microseconds_a_step(seconds: float) -> float:
    """The median time of a step of one game through `gymnasium.make`, in microseconds, over batches of 1,000 steps."""
    env = gymnasium.make("cage2/Scenario2-v0", red=REDS_MEASURED[-1], horizon=HORIZON)
    actions = np.random.default_rng(0).integers(0, 145, 1000).tolist()
    batches: list[float] = []
    end = time.perf_counter() + seconds
    while len(batches) < 2 or time.perf_counter() < end:
        spent = 0.0
        for number, action in enumerate(actions):
            if number % HORIZON == 0:
                env.reset(seed=number)
            start = time.perf_counter()
            env.step(action)
            spent += time.perf_counter() - start
        batches.append(spent / len(actions))
    env.close()
    return statistics.median(batches[1:]) * 1e6


def measure(games: int, seconds: float, progress: Callable[[str], None] = lambda what: None) -> dict[str, Any]:
    """Measure all interfaces; `steps_per_second_per_core` is the plain interface against its slower attacker."""
    if games < 1 or seconds <= 0:
        raise ConfigError(f"--games must be at least 1 and --seconds above 0, got {games} and {seconds}")
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
    progress("one game through gymnasium.make")
    return {
        "microseconds_a_step_of_one_game": microseconds_a_step(seconds),
        "steps_per_second_per_core": min(figures["one_core"] for figures in raw["plain"].values()),
        "cores": cores,
        "games_per_core": games,
        "horizon": HORIZON,
        "raw": raw,
    }


def speed_text(result: dict[str, Any]) -> str:
    """The figures of `measure` as a table."""
    games, cores = result["games_per_core"], result["cores"]
    rows = [
        (interface, red, f"{figures['one_core'] / 1e6:.1f}", f"{figures['all_cores'] / 1e6:.1f}")
        for interface, by_red in result["raw"].items()
        for red, figures in by_red.items()
    ]
    return "\n".join(
        (
            f"CAGE 2, {games:,} games per core, random actions: million steps per second",
            text_table(("interface", "red", "1 core", f"{cores} cores"), rows, left=2),
            f"steps per second per core: {result['steps_per_second_per_core']:,.0f} (145 actions, the slower attacker)",
            f"one game through gymnasium.make: {result['microseconds_a_step_of_one_game']:.1f} µs a step",
        )
    )
