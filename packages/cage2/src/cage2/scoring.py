"""The challenge's score: the sum of nine mean returns, 30/50/100 steps against B_line, Meander and Sleep."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from cage2.agents.defender import Defender
from cage2.agents.user import UserAgent, act, finish, load, start
from cage2.errors import ConfigError, unknown_name
from cage2.rules.state import NUM_BITS, REDS, RULES
from cage2.text import text_table, with_interval
from cage2.vector_env import CageVectorEnv

HORIZONS: Final = (30, 50, 100)
Z_95: Final = 1.959964
FEWEST_EPISODES: Final = 5
"""Fewest episodes of a cell for which an interval is given."""
LEADERBOARD: Final = Path(__file__).with_name("data") / "leaderboard.json"
LEADERS: Final = 3
"""Places of the leaderboard in a table."""


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
        """Standard error of the mean; nan for fewer than `FEWEST_EPISODES`."""
        return self.std / math.sqrt(self.episodes) if self.episodes >= FEWEST_EPISODES else math.nan

    @property
    def half_width(self) -> float:
        """Half width of the 95 % interval."""
        return Z_95 * self.error


@dataclass(frozen=True)
class Score:
    """Scores of the nine cells under one rule set; `mode` is how actions were chosen."""

    rules: str
    table: str
    mode: str
    """`argmax`, `sampled`, or `agent`: a user's agent chooses as it does."""
    cells: tuple[CellScore, ...]

    @property
    def total(self) -> float:
        """The challenge's score, the sum of the cells' means."""
        return sum(cell.mean for cell in self.cells)

    @property
    def half_width(self) -> float:
        """Half width of the total's 95 % interval; cells are independent."""
        return Z_95 * math.sqrt(sum(cell.error**2 for cell in self.cells))

    @property
    def rank(self) -> int | None:
        """The place on the leaderboard, which belongs to the rules `competition`; None under other rules."""
        return rank_of(self.total) if self.rules == "competition" else None

    def cell(self, red: str, horizon: int) -> CellScore:
        """The cell of an attacker and a horizon."""
        return next(cell for cell in self.cells if (cell.red, cell.horizon) == (red, horizon))

    def as_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "total": self.total,
            "interval_95": [self.total - self.half_width, self.total + self.half_width],
            **({} if self.rank is None else {"rank": self.rank}),
            "cells": [
                {**asdict(cell), "interval_95": [cell.mean - cell.half_width, cell.mean + cell.half_width]}
                for cell in self.cells
            ],
        }

    def __str__(self) -> str:
        return scores_text([self])


def score(
    agent: Any,
    *,
    rules: str = "competition",
    table: str | None = None,
    episodes: int = 1000,
    seed: int = 0,
    greedy: bool = True,
    progress: Callable[[str], None] = lambda what: None,
) -> Score:
    """Play an agent in the nine cells, with a sleeping green agent as in the challenge.

    `agent` is a function, an object with `get_action`, `act` or `predict` (see `cage2.agents.user`), a `Defender`, the
    name of a shipped agent, FILE.py[:Agent] or module:Agent. `greedy=False` samples the actions of a `Defender`.
    """
    if episodes < 1:
        raise ConfigError(f"episodes must be at least 1, got {episodes}")
    if rules not in RULES:
        raise unknown_name("rule set", rules, RULES)
    playing = load(agent, rules)
    table = table or playing.table
    mode = "agent" if isinstance(playing, UserAgent) else "argmax" if greedy else "sampled"
    cells = []
    for number, red in enumerate(REDS):
        for horizon in HORIZONS:
            progress(f"{rules}, {mode}, {red}, {horizon} steps")
            cell_seed = int(np.random.SeedSequence([seed, number, horizon, greedy]).generate_state(1)[0])
            returns = play(
                playing, episodes, red=red, horizon=horizon, rules=rules, table=table, greedy=greedy, seed=cell_seed
            )
            std = float(returns.std(ddof=1)) if episodes > 1 else 0.0
            cells.append(CellScore(red, horizon, episodes, float(returns.mean()), std))
    return Score(rules, table, mode, tuple(cells))


def play(
    agent: Defender | UserAgent,
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
    """Play the episodes in parallel, or one by one with an agent for one game; returns [episodes]."""
    one_by_one = isinstance(agent, UserAgent) and not agent.batched
    env = CageVectorEnv(episodes, red=red, green=green, rules=rules, table=table, horizon=horizon)
    observations, _ = env.reset(seed=seed)
    if one_by_one:
        assert isinstance(agent, UserAgent)
        returns = _play_one_by_one(agent, env, f"cell {red} {horizon}")
    else:
        generator = np.random.default_rng(seed)
        returns = np.zeros(episodes)
        start(agent, episodes)
        for step in range(horizon):
            if isinstance(agent, UserAgent):
                agent.where = f"cell {red} {horizon}, step {step + 1}"
            observations, rewards, *_ = env.step(act(agent, observations, greedy, generator))
            returns += rewards
        finish(agent)
    env.close()
    return np.round(returns, 1)  # rewards are tenths


def _play_one_by_one(agent: UserAgent, games: CageVectorEnv, cell: str) -> NDArray[np.float64]:
    """Play each of the games to its end: the same games as in parallel."""
    settings, returns = games.settings, np.zeros(games.num_envs)
    one = CageVectorEnv(1, copy=False)
    one.settings = settings
    one.reset(seed=0)
    observation = np.zeros(NUM_BITS, np.int8)
    for number in range(games.num_envs):
        one.games[0] = games.games[number]
        observation[:] = 0
        agent.where = f"{cell}, game {number + 1}"
        agent.start()
        for step in range(settings.horizon):
            agent.where = f"{cell}, game {number + 1}, step {step + 1}"
            seen, rewards, *_ = one.step(np.array([agent.action(observation)]))
            observation[:] = seen[0]
            returns[number] += rewards[0]
        agent.finish()
    agent.where = ""
    return returns


@cache
def leaderboard() -> dict[str, Any]:
    """The challenge's final leaderboard: `source`, `rules`, and `rows` by decreasing total."""
    published: dict[str, Any] = json.loads(LEADERBOARD.read_text(encoding="utf-8"))
    return published


def rank_of(total: float) -> int:
    """The place of a total on the leaderboard."""
    return 1 + sum(float(row["total"]) > total for row in leaderboard()["rows"])


def scores_as_dict(scores: Sequence[Score], agent: Any, seed: int) -> dict[str, Any]:
    """Scores as JSON values; `total` is the first one of each rule set, a number if there is one rule set."""
    by_rules: dict[str, dict[str, Any]] = {}
    for result in scores:
        by_rules.setdefault(result.rules, {"table": result.table})[result.mode] = result.as_dict()
    totals: Mapping[str, float] = {rules: next(s.total for s in scores if s.rules == rules) for rules in by_rules}
    return {
        "agent": agent,
        "episodes": scores[0].cells[0].episodes,
        "seed": seed,
        "total": next(iter(totals.values())) if len(totals) == 1 else totals,
        "rules": by_rules,
    }


def scores_text(scores: Sequence[Score]) -> str:
    """A table for each rule set, next to the first places of the leaderboard."""
    published = leaderboard()["rows"]
    leaders = published[:LEADERS]
    lines: list[str] = []
    for rules in dict.fromkeys(result.rules for result in scores):
        group = [result for result in scores if result.rules == rules]
        first = group[0]
        rows = [
            [
                f"{red} {horizon}",
                *(
                    with_interval(result.cell(red, horizon).mean, result.cell(red, horizon).half_width)
                    for result in group
                ),
                *(f"{row[red][number]:.2f}" for row in leaders),
            ]
            for red in REDS
            for number, horizon in enumerate(HORIZONS)
        ]
        totals = [with_interval(result.total, result.half_width) for result in group]
        rows.append(["total", *totals, *(f"{row['total']:.2f}" for row in leaders)])
        header = ["red, steps", *(result.mode for result in group), *(f"{row['place']}." for row in leaders)]
        lines += [
            f"CAGE 2, rules {rules}, table {first.table}, {first.cells[0].episodes:,} episodes per cell",
            text_table(header, rows),
            "± is the 95 % interval; there is none for fewer than five episodes.",
            "Published under the rules competition:",
            *(f"  {row['place']}. {row['team']} ({row['method']})" for row in leaders),
        ]
        if first.rank is not None:
            whose = "This agent" if first.mode == "agent" else f"This agent's {first.mode} total"
            lines.append(f"{whose} would take place {first.rank} of {len(published) + 1}.")
        lines.append("")
    return "\n".join(lines).rstrip()
