"""Presets of DQN and Rainbow: settings of their papers, and what OPR changes."""

import pytest

from optimist.config.value_based import DQNConfig, RainbowConfig
from optimist.presets import get_preset
from optimist.presets.registry import VALUE_BASED_OPR

METHODS = ("dqn", "dqn-opr", "rainbow", "rainbow-opr")
FAMILIES = ("gym", "deepsea", "keydoor", "cage2", "atari")


@pytest.mark.parametrize("family", FAMILIES)
def test_each_family_has_both_learners_and_opr_changes_nothing_else(family):
    configs = {method: get_preset(f"{family}/{method}")() for method in METHODS}
    assert isinstance(configs["dqn"].algorithm, DQNConfig)
    assert isinstance(configs["rainbow"].algorithm, RainbowConfig)
    for plain in ("dqn", "rainbow"):
        anchored = configs[f"{plain}-opr"]
        assert configs[plain].opr.enabled is False
        assert anchored.opr == VALUE_BASED_OPR
        if (family, plain) != ("atari", "dqn"):  # atari/dqn-opr has the modern settings
            assert (anchored.algorithm, anchored.env, anchored.network) == (
                configs[plain].algorithm, configs[plain].env, configs[plain].network,
            )  # fmt: skip


@pytest.mark.parametrize("name", ["dqn", "dqn-modern", "rainbow", "dqn-opr", "rainbow-opr"])
def test_atari_learners_take_a_gradient_step_every_four_steps_and_store_a_million(name):
    config = get_preset(f"atari/{name}")(game="Breakout", sticky=0.25)
    learner = config.algorithm
    assert config.env.kwargs["game"] == "Breakout"
    assert config.batch_size == 4 * learner.gradient_steps
    assert (learner.replay_capacity, learner.minibatch_size, learner.save_replay) == (1_000_000, 32, False)
    assert (config.env.frame_stack, config.env.clip_rewards) == (4, True)


@pytest.mark.parametrize(("fast", "plain"), [("fast-dqn", "dqn-modern"), ("fast-rainbow", "rainbow")])
def test_fast_atari_learners_replay_as_many_rows_in_fewer_minibatches(fast, plain):
    fast, plain = get_preset(f"atari/{fast}")(), get_preset(f"atari/{plain}")()
    ours, theirs = fast.algorithm, plain.algorithm
    replayed = ours.gradient_steps * ours.minibatch_size / fast.batch_size
    assert replayed == theirs.gradient_steps * theirs.minibatch_size / plain.batch_size == 8
    assert (fast.env.num_envs, ours.minibatch_size, fast.policy_lag) == (64, 128, 1)
    assert ours.learning_rate == 4 * theirs.learning_rate
    assert fast.env.kwargs["life_loss_ends"] is plain.env.kwargs["life_loss_ends"]


def test_nature_and_modern_settings_are_those_of_their_papers():
    nature, modern = get_preset("atari/dqn")(), get_preset("atari/dqn-modern")()
    a, b = nature.algorithm, modern.algorithm
    assert (a.optimizer, a.learning_rate, a.rmsprop_alpha) == ("rmsprop", 2.5e-4, 0.95)
    assert a.rmsprop_eps * a.minibatch_size**2 == pytest.approx(0.01)
    assert (a.target_interval, a.target_unit, a.learning_starts) == (10_000, "steps", 50_000)  # 40,000 frames
    assert (a.epsilon_final, a.evaluation_epsilon, a.loss) == (0.1, 0.05, "huber")
    assert (b.optimizer, b.learning_rate, b.adam_eps, b.target_interval) == ("adam", 6.25e-5, 1.5e-4, 8_000)
    assert (b.epsilon_final, b.epsilon_steps, b.evaluation_epsilon, b.loss) == (0.01, 250_000, 0.001, "squared")
    assert (nature.env.kwargs["life_loss_ends"], modern.env.kwargs["life_loss_ends"]) == (True, False)


@pytest.mark.parametrize("name", ["rainbow", "rainbow-opr", "fast-rainbow"])
def test_rainbow_on_atari_has_the_noise_and_the_ends_of_dqn_zoo(name):
    config = get_preset(f"atari/{name}")()
    assert config.algorithm.noisy_sigma == 0.1
    assert config.env.kwargs["life_loss_ends"] is True
    assert get_preset("gym/rainbow")().algorithm.noisy_sigma == 0.5  # small networks


def test_cage2_learners_run_half_a_million_steps_on_cardiffs_interface():
    config = get_preset("cage2/rainbow-opr")(red="Meander")
    assert (config.total_steps, config.env.id) == (500_000, "optimist/CAGE2Cardiff-v0")
    assert (config.env.kwargs["red"], config.env.truncation, config.env.forced_actions) == (
        "Meander",
        "end",
        "executed",
    )
    assert config.algorithm.value_min == -60.0
    assert get_preset("cage2/rainbow")(horizon=100).algorithm.value_min == -200.0  # longer episodes cost more
