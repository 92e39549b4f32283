"""The toy environment has the three autoreset modes of SyncVectorEnv."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from tests.envs.toy import ToyVectorEnv, episode_length, episode_return, step_reward, terminates

MODES = list(AutoresetMode)


class ScalarToy(gymnasium.Env):
    """One environment that counts like the toy, for Gymnasium's own vectorisation."""

    def __init__(self, env: int) -> None:
        self.env, self.episode, self.elapsed = env, -1, 0
        self.observation_space = spaces.Box(0.0, np.inf, (3,), np.float32)
        self.action_space = spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        self.episode, self.elapsed = self.episode + 1, 0
        return self.observe(), {}

    def step(self, action: int):
        reward = step_reward(self.env, self.episode, self.elapsed)
        self.elapsed += 1
        end, terminated = self.elapsed == episode_length(self.env, self.episode), terminates(self.env, self.episode)
        info = {"goal": terminated} if end else {}
        return self.observe(), reward, end and terminated, end and not terminated, info

    def observe(self) -> np.ndarray:
        return np.array([self.env, self.episode, self.elapsed], dtype=np.float32)


def equal(one: Any, other: Any) -> bool:
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(equal(one[key], other[key]) for key in one)
    if one.dtype == object:
        pairs = zip(one, other, strict=True)
        return all(a is b if a is None or b is None else np.array_equal(a, b) for a, b in pairs)
    return np.array_equal(one, other)


@pytest.mark.parametrize("mode", MODES)
def test_every_step_equals_gymnasiums_own_vectorisation(mode: AutoresetMode) -> None:
    toy = ToyVectorEnv(4, mode, object_final_obs=True)
    gyms = SyncVectorEnv([lambda i=i: ScalarToy(i) for i in range(4)], autoreset_mode=mode)
    assert equal(toy.reset()[0], gyms.reset()[0])
    for _ in range(60):
        actions = np.zeros(4, dtype=np.int64)
        ours, theirs = toy.step(actions), gyms.step(actions)
        for one, other in zip(ours, theirs, strict=True):
            assert equal(one, other)
        ended = ours[2] | ours[3]
        if mode is AutoresetMode.DISABLED and ended.any():
            options = [{"reset_mask": ended.copy()} for _ in range(2)]
            assert equal(toy.reset(options=options[0])[0], gyms.reset(options=options[1])[0])


def test_returns_and_both_kinds_of_ends_occur() -> None:
    toy = ToyVectorEnv(2)
    toy.reset()
    returns, totals, ends = [[], []], np.zeros(2), np.zeros(2, dtype=int)
    for _ in range(20):
        _, rewards, terminated, truncated, _ = toy.step(np.zeros(2, dtype=np.int64))
        totals += rewards
        ends += [terminated.sum(), truncated.sum()]
        for env in np.flatnonzero(terminated | truncated):
            returns[env].append(totals[env])
            totals[env] = 0.0
    assert ends.min() >= 2
    for env in range(2):
        assert returns[env] == pytest.approx([episode_return(env, episode) for episode in range(len(returns[env]))])


def test_disabled_mode_refuses_to_step_an_ended_environment() -> None:
    toy = ToyVectorEnv(1, AutoresetMode.DISABLED)
    toy.reset()
    assert toy.step(np.array([0]))[2][0]  # episode 0 of environment 0 has length 1
    with pytest.raises(AssertionError, match="not reset"):
        toy.step(np.array([0]))


def test_the_reset_step_pays_the_given_reward() -> None:
    toy = ToyVectorEnv(1, AutoresetMode.NEXT_STEP, reset_reward=1e6)
    toy.reset()
    toy.step(np.array([1]))
    observation, rewards, terminated, truncated, _ = toy.step(np.array([0]))
    assert rewards[0] == 1e6
    assert not terminated[0]
    assert not truncated[0]
    assert observation[0].tolist() == [0.0, 1.0, 0.0]
    assert toy.taken == {(0, 0, 0): 1}  # the action of the reset step is not taken
