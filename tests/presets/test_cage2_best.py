"""The preset of the strongest defender fits its interface."""

from __future__ import annotations

import pytest

from optimist.config import NetworkConfig, PPOConfig
from optimist.envs.cage2.expert import NUM_TRUTH
from optimist.envs.make import make_envs
from optimist.errors import ConfigError
from optimist.presets import get_preset
from optimist.presets.cage2_best import TRUTH
from optimist.training.build import make_policy


def test_critic_sees_the_whole_truth_and_the_actor_none_of_it() -> None:
    config = get_preset("cage2/best")(games=2)
    assert TRUTH == NUM_TRUTH
    envs = make_envs(config.env, seed=0)
    policy = make_policy(config, envs)
    assert policy.actor.visible == envs.single_observation_space.shape[0] - NUM_TRUTH
    assert policy.actor.masked == envs.single_action_space.n
    assert config.algorithm.rollout_steps == envs.unwrapped.settings.horizon  # an update plays whole games
    assert envs.unwrapped.weights[[0, 29, 30, 49, 50, 99]].tolist() == pytest.approx([1, 1, 2 / 3, 2 / 3, 1 / 3, 1 / 3])


def test_what_it_is_configured_with_is_checked() -> None:
    with pytest.raises(ConfigError, match=r"network\.privileged"):
        NetworkConfig(privileged=-1)
    with pytest.raises(ConfigError, match="entropy_coef_final"):
        PPOConfig(entropy_coef_final=-0.1)
