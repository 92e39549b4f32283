"""An environment that gives a nan after some steps, as reward or observation."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np


class Broken(gymnasium.Env):
    """Counts its steps; from step `after` on, the reward or the observation (`what`) is nan."""

    def __init__(self, what: str, after: int = 19) -> None:
        self.what, self.after, self.steps = what, after, 0
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float32)
        self.action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        super().reset(seed=seed)
        return np.zeros(2, np.float32), {}

    def step(self, action: int):
        self.steps += 1
        bad = self.steps >= self.after
        obs = np.array([self.steps % 5, np.nan if bad and self.what == "observation" else 0.0], np.float32)
        reward = np.nan if bad and self.what == "reward" else float(action)
        return obs, reward, self.steps % 5 == 0, False, {}


gymnasium.register("tests/Broken-v0", entry_point=Broken)
