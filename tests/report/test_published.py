"""Published columns carry their terms, and the audit's doubts come from the numbers."""

import pytest

from optimist.report.audit import FLAGS, flags
from optimist.report.published import (
    BLOCKS,
    TABLE_1,
    TABLE_2,
    highest_counts,
    published_column,
    table_games,
)
from optimist.report.reference import reference_scores

METHODS = ("DQN", "A2C", "PPO", "ACPER", "SIL", "OPR")


def marked(block, method, mark):
    return [game for game in table_games(block) if mark in flags(block, method, game)]


def test_every_block_has_terms_and_every_column_a_source():
    assert BLOCKS.keys() == reference_scores()["scores"].keys()
    for column in (*TABLE_1, *TABLE_2):
        found = published_column(*column)
        assert found.url.startswith("https://")
        assert all(score.budget == found.terms.budget for score in found.scores.values())
    assert published_column("dopamine_10M_sticky", "rainbow_tf").scores["Pong"].sticky == 0.25


@pytest.mark.parametrize(
    ("block", "counts"),
    [
        ("opr_table_10M", {"DQN": 0, "A2C": 3, "PPO": 0, "ACPER": 5, "SIL": 20, "OPR": 22}),
        ("opr_table_50M", {"DQN": 0, "A2C": 2, "PPO": 0, "ACPER": 2, "SIL": 3, "OPR": 8}),
    ],
)
def test_highest_scores_are_counted_as_the_paper_counts_them(block, counts):
    columns = [(m, {g: s.value for g, s in published_column(block, m).scores.items()}) for m in METHODS]
    assert highest_counts(columns, table_games(block)) == counts


def test_a_tie_counts_for_both():
    assert highest_counts([("a", {"x": 1.0}), ("b", {"x": 1.0}), ("c", {})], ["x", "y"]) == {"a": 1, "b": 1, "c": 0}


def test_doubts_are_as_many_as_the_audit_found():
    assert len(marked("opr_table_10M", "DQN", "a")) == 22
    assert len(marked("opr_table_10M", "DQN", "b")) == 14
    assert len(marked("opr_table_10M", "PPO", "c")) == 10
    assert len(marked("opr_table_10M", "PPO", "d")) == 7
    assert marked("opr_table_10M", "A2C", "e") == ["Breakout"]
    assert marked("opr_table_10M", "OPR", "f") == [
        "Breakout", "Centipede", "CrazyClimber", "DemonAttack", "Pong", "Qbert",
    ]  # fmt: skip
    assert marked("opr_table_50M", "OPR", "g") == ["BankHeist", "Bowling", "ChopperCommand"]
    assert marked("opr_table_10M", "DQN", "h") == ["Alien"]
    assert marked("opr_table_10M", "PPO", "h") == ["VideoPinball"]
    assert flags("cleanrl_10M", "ppo_atari", "Pong") == ""
    assert set("abcdefgh") == set(FLAGS)
