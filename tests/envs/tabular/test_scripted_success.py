"""The scripted success solves each task, as well as possible and as shortly as possible."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import optimist.envs  # noqa: F401 (registers)
from optimist.envs.tabular.deepsea import DeepSeaEnv, DeepSeaVectorEnv
from optimist.envs.tabular.grid import scripted_success
from optimist.envs.tabular.key_door import KeyDoorTreasureEnv, KeyDoorTreasureVectorEnv
from optimist.errors import ConfigError


def play(env: gymnasium.Env, actions: list[int]) -> tuple[float, bool, dict]:
    """Return, whether the last action (and no earlier one) terminated, last info."""
    total, terminated, info = 0.0, False, {}
    for action in actions:
        assert not terminated
        _, reward, terminated, truncated, info = env.step(action)
        assert not truncated
        total += reward
    return total, terminated, info


@given(seed=st.integers(0, 2**31), size=st.integers(2, 15))
def test_deepsea_is_right_along_the_diagonal(seed: int, size: int) -> None:
    env = DeepSeaEnv(size=size, map_seed=seed)
    env.reset()
    actions = scripted_success(env)
    assert actions == env.game.right_is_one.diagonal().astype(int).tolist()
    assert play(env, actions) == (pytest.approx(0.99), True, {"goal": True})


@pytest.mark.parametrize("height", [2, 3, 6, 10])
def test_key_door_takes_the_shortest_way(height: int) -> None:
    env = KeyDoorTreasureEnv(height=height)
    env.reset()
    actions = scripted_success(env)
    assert len(actions) == 8 + 3 * (height - 1)  # 8 columns to the right, and up, down, up
    assert play(env, actions) == (1.0, True, {"goal": True})


def test_key_door_eats_the_apple_on_the_way() -> None:
    env = KeyDoorTreasureEnv(apple=True)
    env.reset()
    actions = scripted_success(env)
    assert len(actions) == 23
    assert play(env, actions) == (pytest.approx(1.1), True, {"goal": True})


@pytest.mark.parametrize("envs", [DeepSeaVectorEnv(3, size=5), KeyDoorTreasureVectorEnv(3, height=3)])
def test_script_solves_all_games_of_a_vector_environment(envs: gymnasium.vector.VectorEnv) -> None:
    envs.reset(seed=4)
    for action in scripted_success(envs):
        *_, infos = envs.step(np.full(3, action))
    assert infos["final_info"]["goal"].all()


def test_script_sees_through_wrappers() -> None:
    env = gymnasium.make("optimist/DeepSea-v0", size=4, map_seed=1)
    assert scripted_success(env) == env.unwrapped.game.right_is_one.diagonal().astype(int).tolist()


def test_horizon_too_short_for_the_goal_is_named() -> None:
    assert len(scripted_success(KeyDoorTreasureEnv(horizon=23))) == 23
    for apple in (False, True):
        with pytest.raises(ConfigError, match="KeyDoorTreasure cannot be solved within its horizon of 22 steps"):
            scripted_success(KeyDoorTreasureEnv(horizon=22, apple=apple))


def test_other_environments_are_refused() -> None:
    with pytest.raises(ConfigError, match="no script for"):
        scripted_success(gymnasium.make("CartPole-v1"))
