"""Speed against ale-py's vector environment, alternated on the same cores."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from a2600.env import AtariVectorEnv
from a2600.games import Game
from a2600.verify import import_ale

FRAME_SKIP = 4


def bench(game: Game, *, num_envs: int = 8, threads: int = 1, seconds: float = 2.0, rounds: int = 3) -> dict[str, Any]:
    """Frames per CPU second of both on one thread, per second of wall clock on several; the ratio of the medians.

    ale-py runs with the better of 1 and `num_envs` environments. Actions are random and the same in both.
    """
    vector_env = type("AleVectorEnv", (import_ale().vector_env.AtariVectorEnv,), {"metadata": {}})
    clock = time.process_time if threads == 1 else time.perf_counter
    contenders = [
        ("a2600", num_envs, AtariVectorEnv(game.name, num_envs, num_threads=threads, allow_inexact=True)),
        *(("ale", n, vector_env(game.name, n, num_threads=min(n, threads))) for n in sorted({1, num_envs})),
    ]
    rates: dict[tuple[str, int], list[float]] = {(name, n): [] for name, n, _ in contenders}
    for _, n, env in contenders:
        env.reset(seed=1)
        _run(env, n, len(game.actions), 0.1, clock)
    for _ in range(rounds):
        for name, n, env in contenders:
            rates[name, n].append(_run(env, n, len(game.actions), seconds / rounds, clock))
    for _, _, env in contenders:
        env.close()
    mine = float(np.median(rates["a2600", num_envs]))
    ale = max(float(np.median(values)) for (name, _), values in rates.items() if name == "ale")
    row = {"game": game.name, "threads": threads, "num_envs": num_envs, "a2600": mine, "ale": ale, "ratio": mine / ale}
    return row | {"turns": {f"{name} {n}": [round(rate) for rate in turns] for (name, n), turns in rates.items()}}


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The geometric mean of the ratios, and the rows."""
    ratios = [row["ratio"] for row in rows]
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    return {"ratio": mean, "least": min(ratios), "most": max(ratios), "games": len(rows), "rows": rows}


def _run(env: Any, num_envs: int, num_actions: int, seconds: float, clock: Callable[[], float]) -> float:
    """Step for at least `seconds`; returns frames per second."""
    actions = np.random.default_rng(0).integers(0, num_actions, (64, num_envs))
    steps, start = 0, clock()
    while (passed := clock() - start) < seconds:
        for row in actions[:16]:
            env.step(row)
        steps += 16
        actions = np.roll(actions, 16, axis=0)
    return steps * num_envs * FRAME_SKIP / passed
