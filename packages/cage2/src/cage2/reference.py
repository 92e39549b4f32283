"""Scripted blue policies with returns measured on the original game, and a test that our returns have the same mean.

A policy takes an environment and a generator, and gives a function that returns the actions of all games at each step.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from cage2.cardiff import CardiffVectorEnv
from cage2.cardiff_rules import NUM_OUTPUTS
from cage2.rules.scenario import (
    ANALYSE,
    DECOY,
    DECOYS,
    MONITOR,
    NOWHERE,
    NUM_ACTIONS,
    NUM_HOSTS,
    REMOVE,
    RESTORE,
    SLEEP,
    USER0,
)
from cage2.rules.state import RULES
from cage2.vector_env import CageVectorEnv

Act = Callable[[], NDArray[np.int64]]
Policy = Callable[[CageVectorEnv, np.random.Generator], Act]


def sleep(env: CageVectorEnv, rng: np.random.Generator) -> Act:
    """Always Sleep."""
    return lambda: np.full(env.num_envs, SLEEP)


def random145(env: CageVectorEnv, rng: np.random.Generator) -> Act:
    """Uniform over the 145 actions."""
    return lambda: rng.integers(NUM_ACTIONS, size=env.num_envs)


def random_cardiff(env: CageVectorEnv, rng: np.random.Generator) -> Act:
    """Uniform over the 36 Cardiff outputs, for a `CardiffVectorEnv` without opening."""
    return lambda: rng.integers(NUM_OUTPUTS, size=env.num_envs)


def _random_verbs(shares: dict[int, float]) -> Policy:
    """Draw a verb with these probabilities, then a host uniformly; for decoys, also the type uniformly."""
    first_verbs, probabilities = list(shares), list(shares.values())

    def policy(env: CageVectorEnv, rng: np.random.Generator) -> Act:
        def act() -> NDArray[np.int64]:
            verbs = rng.choice(first_verbs, size=env.num_envs, p=probabilities)
            verbs += np.where(verbs == DECOY, rng.integers(len(DECOYS), size=env.num_envs), 0)
            hosts = rng.integers(NUM_HOSTS, size=env.num_envs)
            return np.where(verbs <= MONITOR, verbs, 2 + (verbs - 2) * NUM_HOSTS + hosts)

        return act

    return policy


def _react(verb: int) -> Policy:
    """Monitor until a reverse shell is detected on a host other than User0, then act on that host in the next step.

    As in the original, which looks for connections with a process id in the result of Monitor: only detected reverse
    shells have one, so there is at most one host.
    """

    def policy(env: CageVectorEnv, rng: np.random.Generator) -> Act:
        monitored = np.zeros(env.num_envs, np.bool_)

        def act() -> NDArray[np.int64]:
            monitored[env.games["steps"] == 0] = False
            host = env.games["shell_host"].astype(np.int64)
            reacts = monitored & (host != NOWHERE) & (host != USER0)
            monitored[:] = ~reacts
            return np.where(reacts, 2 + (verb - 2) * NUM_HOSTS + host, MONITOR)

        return act

    return policy


SCRIPTED_POLICIES: Final[dict[str, Policy]] = {
    "sleep": sleep,
    "random145": random145,
    "random_cardiff": random_cardiff,
    "arr_heavy": _random_verbs({SLEEP: 0.03, MONITOR: 0.02, DECOY: 0.10, ANALYSE: 0.30, REMOVE: 0.35, RESTORE: 0.20}),
    "decoy_heavy": _random_verbs({SLEEP: 0.02, ANALYSE: 0.07, REMOVE: 0.07, RESTORE: 0.04, DECOY: 0.80}),
    "react_remove": _react(REMOVE),
    "react_restore": _react(RESTORE),
}
"""By their names in the reference."""


REFERENCE: Final = Path(__file__).with_name("data") / "reference_returns.json"
MARGIN: Final = 0.1
"""Of equivalence, as a share of the original's mean return."""
Z_90: Final = 1.644854
SIGNIFICANCE: Final = 0.01
"""Probability that a correct simulator fails the test over all cells."""


@dataclass(frozen=True)
class Cell:
    """One row of the reference: blue policy, attacker and horizon, with the returns on the original."""

    rules: str
    table: str
    green: str
    blue: str
    red: str
    horizon: int
    mean: float
    std: float
    n: int
    stderr: float

    @property
    def env_kwargs(self) -> dict[str, Any]:
        """Keywords of an environment for this cell."""
        return {"rules": self.rules, "table": self.table, "green": self.green, "red": self.red}

    @property
    def shared_settings(self) -> tuple[str, ...]:
        """All settings but the horizon: cells with the same ones share episodes."""
        return (self.rules, self.table, self.green, self.red, self.blue)


@dataclass(frozen=True)
class Comparison:
    """A cell of the reference with our returns; `z` is None where the original is constant and equality is required."""

    cell: Cell
    mean: float
    std: float
    episodes: int
    z: float | None
    agrees: bool

    @property
    def as_dict(self) -> dict[str, Any]:
        """As JSON values; columns of the reference start with `original_`."""
        cell = asdict(self.cell)
        names = {key: cell.pop(key) for key in ("mean", "std", "n", "stderr")}
        ours: dict[str, Any] = {
            "mean": self.mean,
            "std": self.std,
            "episodes": self.episodes,
            "z": self.z,
            "agrees": self.agrees,
        }
        ours["tost"] = tost(self.mean, self.std, self.episodes, (self.cell.mean, self.cell.std, self.cell.n))
        return {**cell, **{f"original_{key}": value for key, value in names.items()}, **ours}


def tost(mean: float, std: float, episodes: int, original: tuple[float, float, int]) -> str:
    """Two one-sided tests at 5 % of `mean` against the original's (mean, std, episodes): `equivalent`, `not shown` or
    `undecided`.

    The margin is 10 % of the original's mean. A cell whose standard error is above a third of it is undecided: the
    original was played too rarely. Where the original never varies, equivalent means equal.
    """
    original_mean, original_std, original_episodes = original
    if original_std == 0:
        return "equivalent" if std == 0 and mean == original_mean else "not shown"
    margin = MARGIN * abs(original_mean)
    error = math.sqrt(std**2 / episodes + original_std**2 / original_episodes)
    if error > margin / 3:
        return "undecided"
    return "equivalent" if abs(mean - original_mean) + Z_90 * error < margin else "not shown"


@cache
def reference_cells() -> tuple[Cell, ...]:
    """Cells with a policy and rules that exist here: all except the Cardiff agent's and the `debugged` rules."""
    rows = [Cell(**row) for row in json.loads(REFERENCE.read_text())["rows"]]
    return tuple(row for row in rows if row.blue in SCRIPTED_POLICIES and row.rules in RULES)


def play_returns(cell: Cell, horizons: Iterable[int], episodes: int, seed: int) -> dict[int, NDArray[np.float64]]:
    """Play a cell's policy; horizon → returns [episodes], all from the same episodes."""
    horizons = sorted(horizons)
    interface = CardiffVectorEnv if cell.blue == "random_cardiff" else CageVectorEnv
    env = interface(episodes, horizon=horizons[-1] + 1, **cell.env_kwargs)
    act = SCRIPTED_POLICIES[cell.blue](env, np.random.default_rng(seed))
    env.reset(seed=seed)
    total = np.zeros(episodes)
    returns = {}
    for step in range(1, horizons[-1] + 1):
        total += env.step(act())[1]
        if step in horizons:
            returns[step] = np.round(total, 1)
    env.close()
    return returns


def compare_returns(
    cells: Iterable[Cell], episodes: int, seed: int = 0, progress: Callable[[str], None] = lambda what: None
) -> list[Comparison]:
    """Play the cells and test each by a z-test with Holm's correction over all cells, or by equality."""
    played: list[tuple[Cell, NDArray[np.float64]]] = []
    ordered = sorted(cells, key=lambda cell: (cell.shared_settings, cell.horizon))
    for number, (shared, group) in enumerate(groupby(ordered, key=lambda cell: cell.shared_settings)):
        progress(" ".join(shared))
        horizons = list(group)
        returns = play_returns(horizons[0], [cell.horizon for cell in horizons], episodes, seed + number)
        played += [(cell, returns[cell.horizon]) for cell in horizons]
    scores = [z_score(cell, returns) for cell, returns in played]
    rejected = iter(holm([z for z in scores if z is not None]))
    return [
        Comparison(
            cell=cell,
            mean=round(float(returns.mean()), 4),
            std=round(float(returns.std(ddof=1)), 4),
            episodes=episodes,
            z=None if z is None else round(z, 3),
            agrees=bool((returns == cell.mean).all()) if z is None else not next(rejected),
        )
        for (cell, returns), z in zip(played, scores, strict=True)
    ]


def z_score(cell: Cell, returns: NDArray[np.float64]) -> float | None:
    """z = (our mean − original mean) / √(s²/n + s₀²/n₀), or None where the original's s₀ is 0."""
    if cell.std == 0:
        return None
    error = math.sqrt(returns.var(ddof=1) / len(returns) + cell.std**2 / cell.n)
    return float((returns.mean() - cell.mean) / error)


def holm(scores: list[float], significance: float = SIGNIFICANCE) -> list[bool]:
    """Which z-scores are too large by Holm's procedure, which is valid for dependent tests."""
    p_values = [math.erfc(abs(z) / math.sqrt(2)) for z in scores]
    rejected = [False] * len(scores)
    for rank, index in enumerate(sorted(range(len(scores)), key=p_values.__getitem__)):
        if p_values[index] > significance / (len(scores) - rank):
            break
        rejected[index] = True
    return rejected


def summary(comparisons: list[Comparison]) -> dict[str, Any]:
    """Number of cells and disagreements, and the root mean square of z, near 1 for a correct simulator."""
    scores = np.array([c.z for c in comparisons if c.z is not None])
    return {
        "cells": len(comparisons),
        "cells_of_equality": sum(c.z is None for c in comparisons),
        "disagreements": sum(not c.agrees for c in comparisons),
        "z_rms": round(float(np.sqrt((scores**2).mean())), 3),
        "z_max": round(float(np.abs(scores).max()), 3),
        "significance": SIGNIFICANCE,
        "correction": "Holm",
    }
