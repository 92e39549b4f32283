"""A small task with lives and time limits."""

from __future__ import annotations

import gymnasium as gym
import numpy as np


class Game(gym.Env):
    """An episode of `length` steps with a reward of 2 · action, and an optional time limit."""

    observation_space = gym.spaces.Box(0.0, 1.0, (1,), np.float32)
    action_space = gym.spaces.Discrete(2)

    def __init__(self, length=6, limit=None):
        self.length, self.limit, self.time = length, limit, 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        return self._seen(), {}

    def step(self, action):
        self.time += 1
        cut_off = self.time == self.limit
        return self._seen(), 2.0 * int(np.sum(action) > 0), self.time == self.length and not cut_off, cut_off, {}

    def _seen(self):
        return np.array([self.time / self.length], np.float32)


class OneLifeAnEpisode(gym.Wrapper):
    """Ends an episode every three steps, as a lost life does, and halves the reward."""

    def reset(self, **kwargs):
        if self.unwrapped.time % 6:
            return self.unwrapped._seen(), {}
        return super().reset(**kwargs)

    def step(self, action):
        obs, reward, terminated, truncated, info = super().step(action)
        return obs, reward / 2, terminated or self.unwrapped.time == 3, truncated, info
