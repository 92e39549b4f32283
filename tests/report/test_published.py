"""Published scores with their terms, and the doubts that follow from the numbers."""

import pytest

from optimist.report.published import (
    FIFTY,
    METHODS,
    TABLE_1,
    TABLE_2,
    TEN,
    highest_counts,
    human_normalized,
    published_column,
    published_scores,
    reference_scores,
    table_games,
)


def marked(block, method, mark):
    return [game for game, marks in published_column(block, method).doubts.items() if mark in marks]


def test_every_block_has_terms_and_every_column_a_source():
    for block, table in reference_scores()["scores"].items():
        for method in table["columns"]:
            found = published_column(block, method)
            assert found.url.startswith("https://")
            assert found.terms.budget in (10_000_000, 50_000_000)
    assert {*TABLE_1, *TABLE_2} <= {(b, m) for b, t in reference_scores()["scores"].items() for m in t["columns"]}
    assert published_column("dopamine_10M_sticky", "rainbow_tf").terms.sticky == 0.25


@pytest.mark.parametrize(
    ("block", "counts"),
    [
        ("opr_table_10M", {"DQN": 0, "A2C": 3, "PPO": 0, "ACPER": 5, "SIL": 20, "OPR": 22}),
        ("opr_table_50M", {"DQN": 0, "A2C": 2, "PPO": 0, "ACPER": 2, "SIL": 3, "OPR": 8}),
    ],
)
def test_highest_scores_are_counted_as_in_the_paper(block, counts):
    columns = {method: published_column(block, method).scores for method in METHODS}
    assert highest_counts(columns, table_games(block)) == counts


def test_tie_counts_for_both():
    assert highest_counts({"a": {"x": 1.0}, "b": {"x": 1.0}, "c": {}}, ["x", "y"]) == {"a": 1, "b": 1, "c": 0}


def test_doubts_have_their_known_numbers():
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
    assert published_column("cleanrl_10M", "ppo_atari").doubts == {}
    assert set("abcdefgh") == set(reference_scores()["doubts"])


ROUND_NUMBERS = ["SpaceInvaders", "StarGunner", "TimePilot", "Tutankham", "UpNDown", "VideoPinball", "WizardOfWor",
                 "Zaxxon", "RoadRunner", "PrivateEye"]  # fmt: skip


def expected_marks(block, method, game):
    """The marks that follow from the numbers; `doubts` of the collection says what each means."""

    def score(block, method):
        return published_column(block, method).scores.get(game)

    value, early, late = score(block, method), score(TEN, "OPR"), score(FIFTY, "OPR")
    nature, ppo = score("nature_dqn_50M", "DQN"), score("ppo_paper_10M", "PPO")
    found = {
        "a": method == "DQN" and nature is not None and nature > 0 and value < nature / 2,
        "b": method == "DQN" and value == score(block, "ACPER"),
        "c": method == "PPO" and game in ROUND_NUMBERS,
        "d": method == "PPO" and ppo and abs(value - ppo) <= 0.005 * abs(ppo),
        "e": method == "A2C" and value == score("sil_paper_50M", "A2C"),
        "f": method == "OPR" and early == late,
        "g": method == "OPR" and late is not None and late < early,
        "h": value < reference_scores()["random_human"]["standard"]["random"][game],
    }
    return "".join(mark for mark, is_set in found.items() if is_set)


@pytest.mark.parametrize("block", [TEN, FIFTY])
@pytest.mark.parametrize("method", METHODS)
def test_marks_follow_from_the_numbers(block, method):
    column = published_column(block, method)
    expected = {game: expected_marks(block, method, game) for game in column.scores}
    assert column.doubts == {game: marks for game, marks in expected.items() if marks}


def find(game, block, method):
    (row,) = [row for row in published_scores(game) if (row.block, row.method) == (block, method)]
    return row.mean, row.spread


def test_scores_have_their_spread_in_every_format_of_a_source():
    assert find("Breakout", "cleanrl_10M", "ppo_atari_envpool_xla_jax") == (430.09, 8.12)
    assert find("Pong", "ppo_paper_10M", "PPO") == (20.7, None)
    assert find("Pong", "tianshou_10_seeds_10M", "ppo") == (20.3, 0.0)
    mean, spread = find("Pong", "dopamine_10M_sticky", "rainbow_tf")
    assert (mean, spread) == (19.2528, pytest.approx(0.6234, abs=1e-4))  # of the five runs


def test_missing_scores_are_left_out():
    assert not [row for row in published_scores("Pong") if row.block == "sil_paper_50M"]
    assert published_scores("Pitfall2") == []


def test_every_block_names_a_source_with_an_address():
    collection = reference_scores()
    for block in collection["scores"].values():
        assert collection["sources"][block["source"]]["url"].startswith("https://")


def test_human_normalized_is_0_for_random_and_1_for_human():
    assert human_normalized({"Pong": [-20.7, 14.6]}) == {"Pong": [0.0, 1.0]}
