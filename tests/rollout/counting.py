"""Shared by tests of the collector: a policy whose values and probabilities follow from the observation."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor


class CountingPolicy:
    """V(env, episode, step) = 1 + 100·env + 10·episode + step; log π(a) = −1 − a − step/10; actions at random."""

    def act(self, obs: Tensor, generator: torch.Generator | None = None) -> Tensor:
        return torch.randint(2, (len(obs),), generator=generator)

    def evaluate(self, obs: Tensor, actions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return self.log_prob(obs, actions), torch.zeros(len(obs)), self.value(obs)

    def value(self, obs: Tensor) -> Tensor:
        return 1.0 + obs @ torch.tensor([100.0, 10.0, 1.0])

    def log_prob(self, obs: Tensor, actions: Tensor) -> Tensor:
        return -1.0 - actions.reshape(len(obs), -1).sum(-1).float() - obs[:, 2] / 10


class ScalarCounter(gymnasium.Env):
    """One counting environment; like in ordinary Gymnasium environments, an info has some entries at some steps only.

    Episodes last `env` + 2 steps. Only the reset gives `level` (= 1000·env + episode). The first and the last step
    of an episode give `executed`: there 1 is executed instead of the given action.
    """

    def __init__(self, env: int, action_space: gymnasium.Space[Any] | None = None) -> None:
        self.env, self.episode, self.elapsed = env, -1, 0
        self.observation_space = spaces.Box(0.0, np.inf, (3,), np.float32)
        self.action_space = spaces.Discrete(2) if action_space is None else action_space

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        self.episode, self.elapsed = self.episode + 1, 0
        return self.observe(), {"level": 1000 * self.env + self.episode}

    def step(self, action: Any):
        first, self.elapsed = self.elapsed == 0, self.elapsed + 1
        end = self.elapsed == self.env + 2
        info = {"executed": np.ones_like(action)} if first or end else {}
        return self.observe(), float(self.elapsed), end and self.episode % 2 == 0, end and self.episode % 2 == 1, info

    def observe(self) -> np.ndarray:
        return np.array([self.env, self.episode, self.elapsed], dtype=np.float32)
