"""A small task for RLlib's PPO, with and without OPR."""

from __future__ import annotations

from contextlib import contextmanager

import gymnasium as gym
import numpy as np
import pytest
import ray
import torch
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.core.rl_module.apis.value_function_api import ValueFunctionAPI
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig
from ray.rllib.core.rl_module.torch import TorchRLModule
from ray.rllib.env.single_agent_env_runner import SingleAgentEnvRunner

from optimist.integrations.rllib import with_opr


class Walk(gym.Env):
    """Episodes of six steps with a reward of 2 · action; observes the time and the episode's number."""

    observation_space = gym.spaces.Box(0.0, 1e6, (2,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, config=None):
        self.limit, self.time, self.game, self.total = (config or {}).get("limit"), 0, 0, 0.0
        self.played = []  # returns of its episodes

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time, self.game, self.total = 0, self.game + 1, 0.0
        return self._seen(), {}

    def step(self, action):
        self.time += 1
        reward = 2.0 * float(np.sum(action) > 0)
        self.total += reward
        cut_off, over = self.time == self.limit, self.time == 6
        if cut_off or over:
            self.played.append(self.total)
        return self._seen(), reward, over and not cut_off, cut_off, {}

    def _seen(self):
        return np.array([self.time, self.game], np.float32)


class Picture(Walk):
    """One pixel grows lighter."""

    observation_space = gym.spaces.Box(0, 1, (8, 8, 1), np.float32)

    def _seen(self):
        return np.full((8, 8, 1), self.game + self.time / 10, np.float32) / 100


class HalfTheReward(gym.RewardWrapper):
    def reward(self, reward):
        return reward / 2


class Own(TorchRLModule, ValueFunctionAPI):
    """A module as users write them."""

    def setup(self):
        self.head = torch.nn.Linear(2, 3)

    def _forward(self, batch, **_):
        return {"action_dist_inputs": self.head(batch["obs"])[:, :2]}

    def compute_values(self, batch, embeddings=None):
        return self.head(batch["obs"])[:, 2]


def settings(env="CartPole-v1", opr=None, *, envs=2, fragment=64, batch=256, env_config=None, **training):
    config = (
        PPOConfig()
        .environment(env, env_config=env_config or {})
        .env_runners(num_env_runners=0, num_envs_per_env_runner=envs, rollout_fragment_length=fragment)
        .training(train_batch_size_per_learner=batch, minibatch_size=min(64, batch), num_epochs=2, **training)
        .rl_module(model_config=DefaultModelConfig(fcnet_hiddens=[16]))
        .debugging(seed=0, log_level="ERROR")
    )
    return config if opr is None else with_opr(config, opr)


@contextmanager
def built(config):
    algorithm = config.build_algo()
    try:
        yield algorithm
    finally:
        algorithm.stop()


def learner_of(algorithm):
    return algorithm.learner_group._learner


def games_of(algorithm):
    return [env.unwrapped for env in algorithm.env_runner.env.unwrapped.envs]


def weights(learner):
    return torch.cat([parameter.detach().flatten() for parameter in learner.module[DEFAULT_MODULE_ID].parameters()])


def trained(config, updates=3):
    """Return the learner after a few updates, and the last result."""
    with built(config) as algorithm:
        for _ in range(updates):
            result = algorithm.train()
        return learner_of(algorithm), result["learners"][DEFAULT_MODULE_ID]


def sampled(config, times=1):
    """Return chunks of episodes from an environment runner."""
    runner = SingleAgentEnvRunner(config=config)
    return [runner.sample() for _ in range(times)]


@pytest.fixture(scope="module", autouse=True)
def session():
    """One Ray session for a file of tests."""
    ray.init(address="local", num_cpus=4, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    yield
    ray.shutdown()
