"""The challenge's score: the sum of nine mean returns, 30/50/100 steps against B_line, Meander and Sleep."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from optimist.envs.cage2.defender import Defender
from optimist.envs.cage2.env import CageVectorEnv
from optimist.envs.cage2.state import REDS
from optimist.errors import ConfigError

HORIZONS: Final = (30, 50, 100)
Z_95: Final = 1.959964
FEWEST_EPISODES: Final = 5
"""Of a cell, for an interval: fewer say next to nothing about the spread."""
LEADERBOARD: Final = Path(__file__).with_name("data") / "leaderboard.json"


@dataclass(frozen=True)
class CellScore:
    """The mean return of one cell over its episodes, with its 95 % interval."""

    red: str
    horizon: int
    episodes: int
    mean: float
    std: float

    @property
    def error(self) -> float:
        """Standard error of the mean; nan for too few episodes to know it."""
        return self.std / math.sqrt(self.episodes) if self.episodes >= FEWEST_EPISODES else math.nan

    @property
    def half_width(self) -> float:
        """Of the 95 % interval."""
        return Z_95 * self.error


@dataclass(frozen=True)
class Score:
    """Nine cells under one rule set, actions by argmax or sampled."""

    rules: str
    table: str
    greedy: bool
    cells: tuple[CellScore, ...]

    @property
    def total(self) -> float:
        """The challenge's score."""
        return sum(cell.mean for cell in self.cells)

    @property
    def half_width(self) -> float:
        """Of the total's 95 % interval; the cells are different games."""
        return Z_95 * math.sqrt(sum(cell.error**2 for cell in self.cells))

    def cell(self, red: str, horizon: int) -> CellScore:
        """One of the cells."""
        return next(cell for cell in self.cells if (cell.red, cell.horizon) == (red, horizon))

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "total": self.total,
            "interval_95": [self.total - self.half_width, self.total + self.half_width],
            "cells": [
                {**asdict(cell), "interval_95": [cell.mean - cell.half_width, cell.mean + cell.half_width]}
                for cell in self.cells
            ],
        }


def score_defender(
    defender: Defender,
    *,
    rules: str,
    table: str,
    episodes: int,
    greedy: bool,
    seed: int = 0,
    progress: Callable[[str], None] = lambda what: None,
) -> Score:
    """Plays the nine cells; green asleep, as the challenge has it."""
    if episodes < 1:
        raise ConfigError(f"episodes must be at least 1, got {episodes}")
    cells = []
    for number, red in enumerate(REDS):
        for horizon in HORIZONS:
            progress(f"{rules}, {'argmax' if greedy else 'sampled'}, {red}, {horizon} steps")
            dice = np.random.SeedSequence([seed, number, horizon, greedy]).generate_state(1)
            returns = play(
                defender, episodes, red=red, horizon=horizon, rules=rules, table=table, greedy=greedy, seed=int(dice[0])
            )
            spread = float(returns.std(ddof=1)) if episodes > 1 else 0.0
            cells.append(CellScore(red, horizon, episodes, float(returns.mean()), spread))
    return Score(rules, table, greedy, tuple(cells))


def play(
    defender: Defender,
    episodes: int,
    *,
    red: str,
    horizon: int,
    rules: str,
    table: str,
    greedy: bool,
    seed: int,
    green: str = "Sleep",
) -> NDArray[np.float64]:
    """Returns [episodes] of so many games, all played at once."""
    env = CageVectorEnv(episodes, red=red, green=green, rules=rules, table=table, horizon=horizon)
    generator = np.random.default_rng(seed)
    observations, _ = env.reset(seed=seed)
    defender.reset(episodes)
    returns = np.zeros(episodes)
    for _ in range(horizon):
        observations, rewards, *_ = env.step(defender.act(observations, greedy=greedy, generator=generator))
        returns += rewards
    env.close()
    return np.round(returns, 1)  # rewards are tenths


@cache
def leaderboard() -> dict[str, Any]:
    """The challenge's published final leaderboard: `source`, `rules`, and `rows` from the best total down."""
    board: dict[str, Any] = json.loads(LEADERBOARD.read_text(encoding="utf-8"))
    return board


def rank_of(total: float) -> int:
    """The place that a total would take on the leaderboard."""
    return 1 + sum(float(row["total"]) > total for row in leaderboard()["rows"])
