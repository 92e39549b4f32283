import pytest

from optimist.report.reference import published, reference_scores


def find(game, block, method):
    (row,) = [row for row in published(game) if (row.block, row.method) == (block, method)]
    return row.mean, row.spread


def test_scores_come_with_their_spread_whatever_shape_the_source_gave_them():
    assert find("Breakout", "cleanrl_10M", "ppo_atari_envpool_xla_jax") == (430.09, 8.12)
    assert find("Pong", "ppo_paper_10M", "PPO") == (20.7, None)
    assert find("Pong", "tianshou_10_seeds_10M", "ppo") == (20.3, 0.0)
    mean, spread = find("Pong", "dopamine_10M_sticky", "rainbow_tf")
    assert (mean, spread) == (19.2528, pytest.approx(0.6234, abs=1e-4))  # of the five runs


def test_what_a_source_does_not_have_is_left_out():
    assert not [row for row in published("Pong") if row.block == "sil_paper_50M"]
    assert published("Pitfall2") == []


def test_every_block_names_a_source_with_an_address():
    collection = reference_scores()
    for block in collection["scores"].values():
        assert collection["sources"][block["source"]]["url"].startswith("https://")
