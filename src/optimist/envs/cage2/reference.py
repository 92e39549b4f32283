"""Returns measured on the original game, and whether ours, played freely, are the same in distribution."""

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

from optimist.envs.cage2.policies import POLICIES, interface_of
from optimist.envs.cage2.settings import RULES

REFERENCE: Final = Path(__file__).with_name("data") / "reference_returns.json"
SIGNIFICANCE: Final = 0.01
"""Chance that a simulator without error fails the test over all cells."""


@dataclass(frozen=True)
class Cell:
    """One row of the reference: a policy and an opponent at a horizon, with the returns of the original."""

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
    def setting(self) -> dict[str, Any]:
        """The keywords of an environment that plays this cell."""
        return {"rules": self.rules, "table": self.table, "green": self.green, "red": self.red}

    @property
    def game(self) -> tuple[str, ...]:
        """What cells of the same episodes share: all but the horizon."""
        return (self.rules, self.table, self.green, self.red, self.blue)


@dataclass(frozen=True)
class Comparison:
    """A cell of the reference beside ours; `z` is None where the original never varied, and equality is asked."""

    cell: Cell
    mean: float
    std: float
    episodes: int
    z: float | None
    agrees: bool

    @property
    def as_dict(self) -> dict[str, Any]:
        """For JSON: the reference's columns start with `original_`."""
        cell = asdict(self.cell)
        names = {key: cell.pop(key) for key in ("mean", "std", "n", "stderr")}
        ours = {"mean": self.mean, "std": self.std, "episodes": self.episodes, "z": self.z, "agrees": self.agrees}
        return {**cell, **{f"original_{key}": value for key, value in names.items()}, **ours}


@cache
def reference_cells() -> tuple[Cell, ...]:
    """The cells whose policy and rules are known here (all but the Cardiff agent's, and the `debugged` rules)."""
    rows = [Cell(**row) for row in json.loads(REFERENCE.read_text())["rows"]]
    return tuple(row for row in rows if row.blue in POLICIES and row.rules in RULES)


def play_returns(cell: Cell, horizons: Iterable[int], episodes: int, seed: int) -> dict[int, NDArray[np.float64]]:
    """Returns [episodes] of a cell's policy at several horizons, as prefixes of the same games."""
    horizons = sorted(horizons)
    env = interface_of(cell.blue)(episodes, horizon=horizons[-1] + 1, **cell.setting)
    act = POLICIES[cell.blue](env, np.random.default_rng(seed))
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
    """Plays the cells and tests each: z-tests with Holm's correction over all of them, or equality."""
    played: list[tuple[Cell, NDArray[np.float64]]] = []
    ordered = sorted(cells, key=lambda cell: (cell.game, cell.horizon))
    for number, (game, group) in enumerate(groupby(ordered, key=lambda cell: cell.game)):
        progress(" ".join(game))
        same = list(group)
        returns = play_returns(same[0], [cell.horizon for cell in same], episodes, seed + number)
        played += [(cell, returns[cell.horizon]) for cell in same]
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
    """z = (ours − original's) / √(s²/n + s₀²/n₀), or None where the original's spread s₀ is 0."""
    if cell.std == 0:
        return None
    error = math.sqrt(returns.var(ddof=1) / len(returns) + cell.std**2 / cell.n)
    return float((returns.mean() - cell.mean) / error)


def holm(scores: list[float], significance: float = SIGNIFICANCE) -> list[bool]:
    """Which of several z-scores are too large, by Holm's procedure: valid whatever their dependence."""
    p_values = [math.erfc(abs(z) / math.sqrt(2)) for z in scores]
    rejected = [False] * len(scores)
    for rank, index in enumerate(sorted(range(len(scores)), key=p_values.__getitem__)):
        if p_values[index] > significance / (len(scores) - rank):
            break
        rejected[index] = True
    return rejected


def summary(comparisons: list[Comparison]) -> dict[str, Any]:
    """Cells, disagreements, and the spread of z: near 1 if all is chance."""
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
