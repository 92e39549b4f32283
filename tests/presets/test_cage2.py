"""Presets of CAGE 2: settings of the paper and of Cardiff, and parameters of the environment."""

import dataclasses

import pytest

from cage2.expert.features import NUM_TRUTH
from optimist.core.config import OPRConfig
from optimist.envs.make import make_envs
from optimist.errors import ConfigError
from optimist.presets import get_preset
from optimist.presets.cage2 import TRUTH
from optimist.training.build import make_policy
from optimist.training.trainer import train

CARDIFF = ["cage2/cardiff", "cage2/cardiff-opr-paper", "cage2/cardiff-opr"]


@pytest.mark.parametrize("name", [*CARDIFF, "cage2/ppo"])
def test_runs_have_the_papers_size_and_cardiffs_settings(name):
    config = get_preset(name)()
    assert config.total_steps == 3_000_000
    assert config.total_updates == 150
    assert config.batch_size == 19_980  # whole episodes, at most Cardiff's 20,000 steps
    learner = config.algorithm
    assert (learner.epochs, learner.learning_rate, learner.adam_betas, learner.clip_eps) == (
        6,
        0.002,
        (0.9, 0.990),
        0.2,
    )
    assert (learner.entropy_coef, learner.value_coef, learner.max_grad_norm, learner.gamma) == (0.01, 0.5, None, 0.99)
    assert (config.network.hidden, config.network.activation) == ((64, 64), "relu")


def test_episodes_of_100_steps_give_cardiffs_own_updates():
    config = get_preset("cage2/cardiff")(horizon=100)
    assert (config.batch_size, config.total_updates) == (20_000, 500)


def test_network_has_the_published_number_of_weights(tmp_path):
    config = dataclasses.replace(get_preset("cage2/cardiff")(), total_steps=1)
    train(
        dataclasses.replace(config, env=dataclasses.replace(config.env, num_envs=4), tensorboard=False),
        tmp_path / "run",
        progress=False,
    )
    from optimist.api import load

    assert sum(p.numel() for p in load(tmp_path / "run").policy.parameters()) == 18_789


def test_each_of_cardiffs_two_habits_can_be_left_out_alone():
    names = [*CARDIFF, "cage2/cardiff-ends", "cage2/cardiff-opening", "cage2/cardiff-corrected"]
    envs = {name: get_preset(name)().env for name in names}
    assert {name: (env.truncation, env.steps_left, env.forced_actions) for name, env in envs.items()} == {
        "cage2/cardiff": ("ignored", False, "sampled"),
        "cage2/cardiff-opr-paper": ("ignored", False, "sampled"),
        "cage2/cardiff-ends": ("end", True, "sampled"),
        "cage2/cardiff-opening": ("ignored", False, "masked"),
        "cage2/cardiff-corrected": ("end", True, "masked"),
        "cage2/cardiff-opr": ("end", True, "masked"),
    }
    assert all(get_preset(name)().network.privileged == envs[name].steps_left for name in names)
    assert not get_preset("cage2/cardiff")().opr.enabled
    assert get_preset("cage2/cardiff-opr-paper")().opr == OPRConfig.paper("cage2")
    assert get_preset("cage2/cardiff-opr")().opr == OPRConfig()


@pytest.mark.parametrize(
    ("name", "space"), [("cage2/cardiff", (62, 36)), ("cage2/cardiff-opr", (63, 36)), ("cage2/ppo", (52, 145))]
)
def test_parameters_reach_the_environment_of_each_interface(name, space):
    config = get_preset(name)(red="mixed", rules="competition", table="official", horizon=7, green="GreenAgent")
    envs = make_envs(dataclasses.replace(config.env, num_envs=2))
    assert (envs.single_observation_space.shape[0], envs.single_action_space.n) == space
    settings = envs.unwrapped.settings
    assert (settings.competition, settings.cardiff_table, settings.green, settings.horizon) == (True, False, True, 7)
    envs.close()


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"red": "Bline"}, ConfigError, "did you mean 'B_line'"),
        ({"rules": "finals"}, ConfigError, "did you mean 'final'"),
        ({"table": "cardif"}, ConfigError, "did you mean 'cardiff'"),
        ({"green": "Green"}, ConfigError, "did you mean 'GreenAgent'"),
        ({"horizon": 0}, ConfigError, "horizon must be a whole number of steps above 0"),
        ({"horizon": -5}, ConfigError, "horizon must be a whole number of steps above 0"),
    ],
)
def test_a_wrong_parameter_is_one_error_line(parameters, error, message, tmp_path):
    with pytest.raises(error, match=message):
        train(get_preset("cage2/cardiff")(**parameters), tmp_path / "run", progress=False)


def test_critic_of_the_best_defender_sees_the_true_state_and_the_actor_does_not():
    config = get_preset("cage2/best")(games=2)
    assert TRUTH == NUM_TRUTH
    envs = make_envs(config.env, seed=0)
    policy = make_policy(config, envs)
    assert policy.actor.visible == envs.single_observation_space.shape[0] - NUM_TRUTH
    assert policy.actor.masked == envs.single_action_space.n
    assert config.algorithm.rollout_steps == envs.unwrapped.settings.horizon  # an update is whole episodes
    assert envs.unwrapped.weights[[0, 29, 30, 49, 50, 99]].tolist() == pytest.approx([1, 1, 2 / 3, 2 / 3, 1 / 3, 1 / 3])
