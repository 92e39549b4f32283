"""Published columns as Score records: each block of the collection with its statistic, budget, runs and stickiness."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from optimist.report.reference import mean_and_spread, reference_scores
from optimist.report.scores import Score, Statistic, counted, readable, short_steps

M = 1_000_000
PAPER = "OPR paper"


class Terms(NamedTuple):
    """What a source says, or does not say, about how its numbers came about."""

    name: str
    statistic: Statistic
    budget: int
    sticky: float | None
    runs: int | None
    note: str


BLOCKS = {
    "opr_table_10M": Terms(
        PAPER, "not stated", 10 * M, None, None, "OPR's cells fit one test of 10 games of one run; others mixed"
    ),
    "opr_table_50M": Terms(PAPER, "not stated", 50 * M, None, None, "baselines equal those of the 10M table"),
    "nature_dqn_50M": Terms("Mnih et al. 2015", "final", 50 * M, 0.0, 1, "30 games of at most 5 minutes, ε = 0.05"),
    "ppo_paper_10M": Terms("Schulman et al. 2017", "last-100", 10 * M, 0.0, 3, "last 100 training games"),
    "sil_paper_50M": Terms("Oh et al. 2018", "not stated", 50 * M, 0.0, None, "one row could be confirmed"),
    "tianshou_best_single_run_10M": Terms("Tianshou README", "best-epoch", 10 * M, 0.0, 1, "best of up to 101 tests"),
    "tianshou_10_seeds_10M": Terms("Tianshou, 10 seeds", "final", 10 * M, 0.0, 10, "PPO with older settings"),
    "cleanrl_10M": Terms("CleanRL", "last-100", 10 * M, 0.0, 3, "final training return, mean and deviation of 3 seeds"),
    "sb3_zoo_10M": Terms("RL Baselines3 Zoo", "final", 10 * M, 0.0, 1, "one agent, about 600k frames"),
    "dopamine_10M_sticky": Terms("Dopamine", "last-100", 10 * M, 0.25, 5, "training return of the 40th 250k steps"),
}
TABLE_1 = (
    ("cleanrl_10M", "ppo_atari_envpool_xla_jax"),
    ("ppo_paper_10M", "PPO"),
    *(("opr_table_10M", method) for method in ("DQN", "A2C", "PPO", "ACPER", "SIL", "OPR")),
)
"""Columns beside ours in the table of 49 games: the best PPO reference, PPO's own paper, and the OPR paper's."""
TABLE_2 = tuple(("opr_table_50M", method) for method in ("DQN", "A2C", "PPO", "ACPER", "SIL", "OPR"))
SHORT = {"ppo_atari_envpool_xla_jax": "PPO", "openai_baselines_ppo2": "PPO2"}


class PublishedColumn(NamedTuple):
    """A published column: where it stands, under which terms, and its scores by game."""

    block: str
    method: str
    terms: Terms
    url: str
    scores: dict[str, Score]

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


def published_column(block: str, method: str) -> PublishedColumn:
    """One published column."""
    collection = reference_scores()
    table, terms = collection["scores"][block], BLOCKS[block]
    source = collection["sources"][table["source"]]
    scores = {}
    for game, cell in table["columns"][method].items():
        if cell is not None:
            value, spread = mean_and_spread(cell)
            scores[game] = Score(
                value=value, method=method, env=game, statistic=terms.statistic, budget=terms.budget,
                sticky=terms.sticky, runs=terms.runs, spread=spread, source=source["url"],
            )  # fmt: skip
    return PublishedColumn(block, method, terms, source["url"], scores)


def table_games(block: str) -> list[str]:
    """The games of a block, in the paper's order."""
    collection = reference_scores()
    return list(collection["scores"][block].get("games", collection["games"]))


def highest_counts(columns: Sequence[tuple[str, dict[str, float]]], games: Sequence[str]) -> dict[str, int]:
    """In how many of the games each column has the highest value; a tie counts for all that share it."""
    counts = dict.fromkeys((name for name, _ in columns), 0)
    for game in games:
        values = {name: scores[game] for name, scores in columns if game in scores}
        for name, value in values.items():
            counts[name] += value == max(values.values())
    return counts
