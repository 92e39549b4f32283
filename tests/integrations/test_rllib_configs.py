"""OPR in RLlib: `with_opr` and the configs it does not support."""

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

from optimist.core import OPRConfig
from optimist.errors import ConfigError
from optimist.integrations.rllib import OPRLearner, with_opr
from tests.integrations.rllib_walk import Own, Walk, session, settings, trained, weights

__all__ = ["session"]


def test_disabled_opr_leaves_the_learner_class():
    assert with_opr(settings(), OPRConfig(enabled=False)).learner_class is PPOTorchLearner


def test_with_opr_copies_the_config_and_disabled_opr_removes_the_learner_again():
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
        (lambda: settings().learners(num_learners=2), OPRConfig(), "num_learners is 2; OPR needs one learner"),
        (lambda: settings().multi_agent(policies={"a", "b"}), OPRConfig(), "several agents; OPR in RLlib supports one"),
        (lambda: settings(), {"bc_coef": 0.1}, "opr must be an OPRConfig, got dict"),
        (lambda: DQNConfig(), OPRConfig(), "a DQNConfig; with_opr needs a PPOConfig on RLlib's new API stack"),
        (
            lambda: PPOConfig().api_stack(enable_rl_module_and_learner=False, enable_env_runner_and_connector_v2=False),
            OPRConfig(),
            "a PPOConfig on the old API stack; with_opr needs",
        ),
    ],
)
def test_unsupported_configs_are_errors(config, opr, message):
    with pytest.raises(ConfigError, match=message):
        with_opr(config(), opr)


@pytest.mark.parametrize(
    ("change", "env", "message"),
    [
        (lambda it: it.learners(num_learners=2), Walk, "OPR needs one learner"),
        (lambda it: it.rl_module(rl_module_spec=RLModuleSpec(module_class=Own)), Named, "that are arrays"),
        (lambda it: it, Two, "that are arrays"),
        (
            lambda it: it.rl_module(model_config=DefaultModelConfig(use_lstm=True)),
            Walk,
            "does not support recurrent modules",
        ),
        (lambda it: it.learners(add_default_connectors_to_learner_pipeline=False), Walk, "own learner connectors"),
    ],
)
def test_unsupported_learners_are_errors(change, env, message):
    with pytest.raises(ConfigError, match=message):
        change(settings(env, OPRConfig())).build_learner(env=env())


def test_without_rllib_the_error_names_the_extra():
    lines = "import sys; sys.modules['ray.rllib'] = None\nimport optimist.integrations.rllib"
    result = subprocess.run([sys.executable, "-c", lines], capture_output=True, text=True, timeout=120)
    assert result.returncode != 0
    assert "needs ray[rllib]: pip install '.[rllib]'" in result.stderr
