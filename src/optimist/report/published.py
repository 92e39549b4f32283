"""Published Atari scores, from data/reference_scores.json: their sources, terms, and doubts about cells."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

from optimist.envs.family import family_of
from optimist.report.formatting import counted, readable, short_steps
from optimist.report.runs import Statistic

PAPER = "OPR paper"
TEN, FIFTY = "opr_table_10M", "opr_table_50M"
METHODS = ("DQN", "A2C", "PPO", "ACPER", "SIL", "OPR")
TABLE_1 = (
    ("cleanrl_10M", "ppo_atari_envpool_xla_jax"),
    ("ppo_paper_10M", "PPO"),
    *((TEN, method) for method in METHODS),
)
"""Published columns in the table of 49 games: the best PPO reference, PPO's own paper, and the OPR paper's."""
TABLE_2 = tuple((FIFTY, method) for method in METHODS)
SHORT = {"ppo_atari_envpool_xla_jax": "PPO", "openai_baselines_ppo2": "PPO2"}


class Terms(NamedTuple):
    """How a source obtained its numbers, as far as it says."""

    name: str
    statistic: Statistic
    budget: int
    sticky: float | None
    runs: int | None
    note: str = ""


class PublishedScore(NamedTuple):
    """The score of one method on one game in one source."""

    block: str
    """Table of a source, with its budget in steps: `cleanrl_10M`."""
    method: str
    mean: float
    spread: float | None
    """Standard deviation over runs (over episodes for `nature_dqn_50M` and `sb3_zoo_10M`), if published."""


class PublishedColumn(NamedTuple):
    """A published column: its table, its terms, its scores by game, and the marks of doubtful cells (`ab`)."""

    block: str
    method: str
    terms: Terms
    url: str
    scores: Mapping[str, float]
    doubts: Mapping[str, str]

    @property
    def label(self) -> str:
        """`PPO (CleanRL)`."""
        return f"{SHORT.get(self.method, self.method)} ({self.terms.name})"

    @property
    def fine_print(self) -> str:
        """Budget, runs, statistic, sticky actions, in a few words."""
        terms = self.terms
        runs = "runs not stated" if terms.runs is None else counted(terms.runs, "run")
        statistic = "statistic not stated" if terms.statistic == "not stated" else terms.statistic
        budget = f"“{short_steps(terms.budget)}”" if terms.name == PAPER else short_steps(terms.budget)
        return f"{budget} steps, {runs}, {statistic}, sticky {readable(terms.sticky)}"


@cache
def reference_scores() -> dict[str, Any]:
    """The whole collection: `sources`, `random_human`, `scores` (block → columns → game), and how to read them."""
    file = resources.files("optimist.report").joinpath("data/reference_scores.json")
    collection: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return collection


def published_scores(game: str) -> list[PublishedScore]:
    """Every published score of a game; empty if the collection has none."""
    found = []
    for block, table in reference_scores()["scores"].items():
        for method, column in table["columns"].items():
            if (cell := column.get(game)) is not None:
                found.append(PublishedScore(block, method, *mean_and_spread(cell)))
    return found


def published_column(block: str, method: str) -> PublishedColumn:
    """One published column."""
    table = reference_scores()["scores"][block]
    url = reference_scores()["sources"][table["source"]]["url"]
    cells = table["columns"][method].items()
    scores = {game: mean_and_spread(cell)[0] for game, cell in cells if cell is not None}
    return PublishedColumn(block, method, Terms(**table["terms"]), url, scores, table.get("doubts", {}).get(method, {}))


def table_games(block: str) -> list[str]:
    """The games of a block, in the paper's order."""
    return list(reference_scores()["scores"][block].get("games", reference_scores()["games"]))


def mean_and_spread(cell: Any) -> tuple[float, float | None]:
    """Value and standard deviation of a cell of the collection; None where its source gives no deviation."""
    if not isinstance(cell, dict):
        return float(cell), None
    cell = cell.get("final", cell)  # at the end of training, not the best point of the curve
    spread = statistics.stdev(cell["runs"]) if "runs" in cell else cell.get("std")
    return float(cell["mean"]), spread


def human_normalized(scores: Mapping[str, Sequence[float]]) -> dict[str, list[float]]:
    """(score − random) / (human − random) of every run of each Atari game."""
    normalize = family_of("optimist/Atari-v0").normalized_score
    assert normalize is not None
    return {game: [normalize(game, score) for score in runs] for game, runs in scores.items()}


def highest_counts(columns: Mapping[str, Mapping[str, float]], games: Sequence[str]) -> dict[str, int]:
    """In how many of the games each column has the highest value; a tie counts for all columns that share it."""
    counts = dict.fromkeys(columns, 0)
    for game in games:
        values = {name: scores[game] for name, scores in columns.items() if game in scores}
        for name, value in values.items():
            counts[name] += value == max(values.values())
    return counts
