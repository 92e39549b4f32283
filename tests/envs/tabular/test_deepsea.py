"""DeepSea: each rule by hand, the map and its seed, and the tables against the rules written out as a plain loop."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import optimist.envs  # noqa: F401 (registers)
from optimist.envs.tabular.deepsea import DeepSeaVectorEnv, deepsea_map, deepsea_table
from optimist.envs.tabular.grid import TabularEnv, TabularVectorEnv

PLAIN = np.ones((3, 3), dtype=np.bool_)  # action 1 is right everywhere


def game_on(right_is_one: np.ndarray) -> TabularEnv:
    return TabularEnv(TabularVectorEnv(1, deepsea_table(right_is_one), {}))


def play(env: TabularEnv, actions: list[int]) -> list[tuple[int, float, bool, bool, dict]]:
    env.reset()
    return [env.step(action) for action in actions]


def test_right_every_time_reaches_the_goal_for_099() -> None:
    steps = play(game_on(PLAIN), [1, 1, 1])
    assert [step[0] for step in steps] == [4, 8, 8]  # (1, 1), (2, 2), and the cell of the last move
    assert [step[1] for step in steps] == pytest.approx([-0.01 / 3, -0.01 / 3, 1 - 0.01 / 3])
    assert [step[2] for step in steps] == [False, False, True]
    assert not any(step[3] for step in steps)
    assert [step[4] for step in steps] == [{}, {}, {"goal": True}]
    assert sum(step[1] for step in steps) == pytest.approx(0.99)


@pytest.mark.parametrize(
    ("actions", "cells", "cost"),
    [
        ([0, 0, 0], [3, 6, 6], 0.0),  # left is free and clipped at the wall
        ([1, 1, 0], [4, 8, 8], -0.02 / 3),  # in the corner, but the last move is not right
        ([0, 1, 1], [3, 7, 7], -0.02 / 3),  # one left is enough to miss it
        ([1, 0, 1], [4, 6, 6], -0.02 / 3),
    ],
)
def test_anything_else_misses_it(actions: list[int], cells: list[int], cost: float) -> None:
    steps = play(game_on(PLAIN), actions)
    assert [step[0] for step in steps] == cells
    assert sum(step[1] for step in steps) == pytest.approx(cost)
    assert steps[-1][2]
    assert steps[-1][4] == {"goal": False}


def test_flipped_cell_swaps_the_actions_there_only() -> None:
    flipped = PLAIN.copy()
    flipped[1, 1] = False
    steps = play(game_on(flipped), [1, 0, 1])
    assert steps[-1][4] == {"goal": True}
    assert sum(step[1] for step in steps) == pytest.approx(0.99)
    assert play(game_on(flipped), [1, 1, 1])[-1][4] == {"goal": False}


def test_goal_pays_only_in_the_bottom_right_corner() -> None:
    table = deepsea_table(deepsea_map(3, 7))
    assert table.goal.sum() == 1
    assert table.goal[48].any()
    assert (table.rewards > 0).sum() == 1


class PlainDeepSea:
    """The rules once more, for one game, as a loop would have them."""

    def __init__(self, right_is_one: np.ndarray) -> None:
        self.right_is_one, self.size = right_is_one, len(right_is_one)
        self.row = self.column = 0

    def step(self, action: int) -> tuple[int, float, bool, bool]:
        """Cell, reward, end, goal."""
        right = (action == 1) == bool(self.right_is_one[self.row, self.column])
        reward = -0.01 / self.size if right else 0.0
        if self.row == self.size - 1:
            goal = right and self.column == self.size - 1
            return self.row * self.size + self.column, reward + float(goal), True, goal
        self.row += 1
        self.column = min(self.column + 1, self.size - 1) if right else max(self.column - 1, 0)
        return self.row * self.size + self.column, reward, False, False


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), size=st.integers(2, 9), num_envs=st.integers(1, 5), lean=st.floats(0.5, 1.0))
def test_vector_games_follow_the_plain_rules(seed: int, size: int, num_envs: int, lean: float) -> None:
    envs = DeepSeaVectorEnv(num_envs, size=size, map_seed=seed)
    observations, infos = envs.reset(seed=seed)
    assert observations.tolist() == [0] * num_envs
    assert infos == {}
    rng = np.random.default_rng(seed)
    games = [PlainDeepSea(envs.right_is_one) for _ in range(num_envs)]
    for step in range(3 * size):
        # Leaning to the right, so that goals occur.
        right = rng.random(num_envs) < lean
        actions = (right == envs.right_is_one.ravel()[observations]).astype(np.int64)
        expected = [game.step(int(action)) for game, action in zip(games, actions, strict=True)]
        observations, rewards, terminated, truncated, infos = envs.step(actions)
        assert envs.observation_space.contains(observations)
        assert rewards.tolist() == [reward for _, reward, _, _ in expected]
        assert terminated.tolist() == [end for _, _, end, _ in expected]
        assert not truncated.any()
        if (step + 1) % size == 0:  # episodes last exactly N steps
            assert terminated.all()
            assert infos["final_obs"].tolist() == [cell for cell, _, _, _ in expected]
            assert infos["final_info"]["goal"].tolist() == [goal for _, _, _, goal in expected]
            assert infos["_final_obs"].all()
            assert infos["_final_info"].all()
            assert observations.tolist() == [0] * num_envs
            games = [PlainDeepSea(envs.right_is_one) for _ in range(num_envs)]
        else:
            assert infos == {}
            assert observations.tolist() == [cell for cell, _, _, _ in expected]


def test_a_seeded_reset_keeps_the_map_of_map_seed() -> None:
    envs = DeepSeaVectorEnv(2, size=8, map_seed=7)
    for seed in (5, 6, None):
        envs.reset(seed=seed)
        assert np.array_equal(envs.right_is_one, deepsea_map(7, 8))
    assert np.array_equal(DeepSeaVectorEnv(2, size=8).right_is_one, deepsea_map(0, 8))


def test_maps_are_fair_coins_and_differ_between_seeds() -> None:
    maps = np.stack([deepsea_map(seed, 12) for seed in range(200)])
    assert abs(maps.mean() - 0.5) < 0.01  # 28,800 coins: standard error 0.003
    assert len(np.unique(maps.reshape(200, -1), axis=0)) == 200


def test_map_of_a_seed_stays_the_same_between_versions() -> None:
    assert deepsea_map(0, 4).astype(int).tolist() == [[1, 1, 1, 0], [0, 0, 0, 0], [0, 1, 1, 1], [1, 1, 1, 1]]


def test_single_and_vector_share_the_map_of_a_seed() -> None:
    one, many = (make("optimist/DeepSea-v0", size=6, map_seed=11) for make in (gymnasium.make, gymnasium.make_vec))
    assert np.array_equal(one.unwrapped.game.right_is_one, many.unwrapped.right_is_one)
