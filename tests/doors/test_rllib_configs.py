"""OPR inside RLlib: what a config becomes, and what is refused."""

from __future__ import annotations

import subprocess
import sys

import gymnasium as gym
import pytest
from ray.rllib.algorithms.dqn import DQNConfig
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.algorithms.ppo.torch.ppo_torch_learner import PPOTorchLearner
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig
from ray.rllib.core.rl_module.rl_module import RLModuleSpec

from optimist.adapters.rllib import OPRLearner, with_opr
from optimist.core import OPRConfig
from optimist.errors import ConfigError
from tests.doors.rllib_walk import Own, Walk, session, settings, trained, weights

__all__ = ["session"]


def test_switched_off_is_the_config_as_it_was():
    assert with_opr(settings(), OPRConfig(enabled=False)).learner_class is PPOTorchLearner


def test_a_config_is_left_as_it_was_and_opr_can_be_switched_off_again():
    base = settings("CartPole-v1")
    joined = with_opr(base, OPRConfig(bc_weights="uniform"))
    assert (base.learner_class, joined.learner_class) == (PPOTorchLearner, OPRLearner)
    off = with_opr(joined, OPRConfig(enabled=False))
    plain, with_it, without = (weights(trained(config, 2)[0]) for config in (base, joined, off))
    assert without.equal(plain)
    assert not with_it.equal(plain)


class Named(Walk):
    observation_space = gym.spaces.Dict({"time": Walk.observation_space})


class Two(Walk):
    action_space = gym.spaces.Tuple([gym.spaces.Discrete(2), gym.spaces.Discrete(3)])


@pytest.mark.parametrize(
    ("config", "opr", "message"),
    [
        (lambda: settings(), OPRConfig.paper("atari"), "set augment_share = 0"),
        (lambda: settings(), OPRConfig(bc_schedule="linear"), "needs the length of the run"),
        (lambda: settings().learners(num_learners=2), OPRConfig(), "needs one learner, got num_learners = 2"),
        (lambda: settings().multi_agent(policies={"a", "b"}), OPRConfig(), "needs one agent"),
        (lambda: settings(), {"bc_coef": 0.1}, "settings are an OPRConfig, got dict"),
        (lambda: DQNConfig(), OPRConfig(), "needs a PPOConfig on RLlib's new API stack, not DQNConfig"),
        (
            lambda: PPOConfig().api_stack(enable_rl_module_and_learner=False, enable_env_runner_and_connector_v2=False),
            OPRConfig(),
            "new API stack, not PPOConfig on the old one",
        ),
    ],
)
def test_configs_that_opr_cannot_join_are_named(config, opr, message):
    with pytest.raises(ConfigError, match=message):
        with_opr(config(), opr)


@pytest.mark.parametrize(
    ("change", "env", "message"),
    [
        (lambda it: it.learners(num_learners=2), Walk, "needs one learner"),
        (lambda it: it.rl_module(rl_module_spec=RLModuleSpec(module_class=Own)), Named, "that are arrays"),
        (lambda it: it, Two, "that are arrays"),
        (lambda it: it.rl_module(model_config=DefaultModelConfig(use_lstm=True)), Walk, "without memory of its own"),
        (lambda it: it.learners(add_default_connectors_to_learner_pipeline=False), Walk, "own learner connectors"),
    ],
)
def test_learners_that_opr_cannot_join_are_named(change, env, message):
    with pytest.raises(ConfigError, match=message):
        change(settings(env, OPRConfig())).build_learner(env=env())


def test_without_rllib_the_extra_is_named():
    lines = "import sys; sys.modules['ray.rllib'] = None\nimport optimist.adapters.rllib"
    result = subprocess.run([sys.executable, "-c", lines], capture_output=True, text=True, timeout=120)
    assert result.returncode != 0
    assert "needs ray[rllib]: pip install 'optimist[rllib]'" in result.stderr
