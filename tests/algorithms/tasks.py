"""Shared by tests of the learners: a policy in a table, random rollouts, and one-step tasks."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np
import torch
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from torch import Tensor

from optimist.config import EnvConfig, NetworkConfig
from optimist.core.steps import Rollout
from optimist.networks.actor_critic import make_actor_critic
from optimist.rollout.collector import Collector
from tests.core.tables import TablePolicy


class TableActorCritic(TablePolicy):
    """A table of logits and values that a learner can train."""

    def evaluate(self, obs: Tensor, actions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        logp = self.logits.log_softmax(-1)[obs.long()]
        return self.log_prob(obs, actions), -(logp.exp() * logp).sum(-1), self.value(obs)


def random_rollout(seed: int, num_steps: int = 16, num_envs: int = 4, progress: float = 0.0, **changes: Any) -> Rollout:
    """A rollout of random steps over the six states and three actions of the table."""
    generator = torch.Generator().manual_seed(seed)
    shape = (num_steps, num_envs)
    dones = torch.rand(shape, generator=generator) < 0.2
    values = torch.randn(shape, generator=generator)
    columns: dict[str, Any] = {
        "obs": torch.randint(6, shape, generator=generator),
        "actions": torch.randint(3, shape, generator=generator),
        "rewards": torch.randn(shape, generator=generator),
        "logp": -torch.rand(shape, generator=generator) - 0.5,
        "dones": dones,
        "values": values,
        "next_values": torch.where(dones, 0.0, values.roll(-1, 0)),
        "progress": progress,
    }
    return Rollout(**(columns | changes))


class OneStep(VectorEnv):
    """Every step is an episode; in every action space one action has the highest reward."""

    def __init__(self, action_space: gym.Space[Any], num_envs: int = 16) -> None:
        self.num_envs, self.metadata = num_envs, {"autoreset_mode": AutoresetMode.SAME_STEP}
        self.single_observation_space, self.single_action_space = gym.spaces.Discrete(1), action_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(action_space, num_envs)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        return np.zeros(self.num_envs, np.int64), {}

    def step(self, actions: np.ndarray):
        match self.single_action_space:
            case gym.spaces.Discrete():
                rewards = (actions == 2).astype(float)
            case gym.spaces.MultiDiscrete():
                rewards = (actions == np.array([1, 2])).mean(1)
            case _:
                rewards = 1.0 - np.abs(actions - np.array([0.5, -0.5])).mean(1)
        done = np.ones(self.num_envs, bool)
        obs = np.zeros(self.num_envs, np.int64)
        return obs, rewards, done, ~done, {"final_obs": obs, "_final_obs": done}


ONE_STEP_SPACES = {
    "discrete": gym.spaces.Discrete(3),
    "multi-discrete": gym.spaces.MultiDiscrete([2, 3]),
    "gaussian": gym.spaces.Box(-1.0, 1.0, (2,), np.float32),
}


def one_step_task(space: str, num_steps: int, seed: int = 0, *, q_critic: bool = False) -> tuple[Any, Collector]:
    """A new policy and its collector on a one-step task."""
    envs = OneStep(ONE_STEP_SPACES[space])
    torch.manual_seed(seed)
    network = NetworkConfig(hidden=(16,), log_std=-0.5)
    policy = make_actor_critic(envs.single_observation_space, envs.single_action_space, network, q_critic=q_critic)
    config = EnvConfig(id="OneStep", num_envs=envs.num_envs)
    collector = Collector(envs, config, policy, num_steps, torch.Generator().manual_seed(seed))
    collector.restart(seed)
    return policy, collector
