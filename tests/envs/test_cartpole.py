"""Gymnasium's vector CartPole, which `auto` uses, equals the scalar CartPole with its time limit."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest

from optimist.config import EnvConfig
from optimist.envs import make_envs


def balance(observations: np.ndarray) -> np.ndarray:
    """Actions of a controller that balances for far more than 500 steps."""
    return (observations @ np.array([0.1, 0.2, 1.0, 0.5]) > 0).astype(np.int64)


def copy_start(envs: gymnasium.vector.VectorEnv, scalar: gymnasium.Env, index: int) -> None:
    """Start an episode of the scalar environment in the state of the vector environment."""
    scalar.reset()
    scalar.unwrapped.state = envs.unwrapped.state[:, index].copy()


@pytest.mark.parametrize("sutton_barto", [False, True])
def test_vector_cartpole_equals_the_scalar_one(sutton_barto: bool) -> None:
    kwargs = {"sutton_barto_reward": sutton_barto}
    envs = make_envs(EnvConfig(id="CartPole-v1", num_envs=6, kwargs=kwargs))
    scalars = [gymnasium.make("CartPole-v1", **kwargs) for _ in range(6)]
    observations, _ = envs.reset(seed=0)
    for index, scalar in enumerate(scalars):
        copy_start(envs, scalar, index)
    rng = np.random.default_rng(0)
    resetting, lengths = np.zeros(6, dtype=np.bool_), np.zeros(6, dtype=np.int64)
    truncated_at, terminations = [], 0
    for _ in range(1100):
        actions = np.where(np.arange(6) < 2, balance(observations), rng.integers(0, 2, 6))
        observations, rewards, terminated, truncated, _ = envs.step(actions)
        lengths += 1
        for index, scalar in enumerate(scalars):
            if resetting[index]:  # NEXT_STEP: the step after an end only resets
                assert (rewards[index], terminated[index], truncated[index]) == (0.0, False, False)
                assert np.abs(observations[index]).max() <= 0.05
                copy_start(envs, scalar, index)
                lengths[index] = 0
                continue
            observation, *rest, _ = scalar.step(int(actions[index]))
            assert observations[index] == pytest.approx(observation, abs=1e-6)
            assert [rewards[index], terminated[index], truncated[index]] == rest
        terminations += terminated.sum()
        truncated_at += lengths[truncated].tolist()
        resetting = terminated | truncated
    assert terminations > 50
    assert truncated_at == [500] * 4  # both balanced environments, twice
