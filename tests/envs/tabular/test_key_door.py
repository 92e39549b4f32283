"""Key-Door-Treasure: each rule by hand, and the tables against the rules written out as a plain loop."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optimist.envs.tabular.key_door import KeyDoorTreasureEnv, KeyDoorTreasureVectorEnv

UP, DOWN, LEFT, RIGHT = range(4)
TO_KEY = [RIGHT] * 3 + [UP] * 5  # from (5, 0) along the bottom row to (0, 3)
TO_DOOR = [DOWN] * 5 + [RIGHT]
TO_TREASURE = [RIGHT] * 4 + [UP] * 5
SOLUTION = TO_KEY + TO_DOOR + TO_TREASURE


def cell(observation: int, height: int = 6) -> tuple[int, int, int, int]:
    """Row, column, has key, apple eaten."""
    rest, column = divmod(observation, 9)
    rest, row = divmod(rest, height)
    eaten, key = divmod(rest, 2)
    return row, column, key, eaten


def play(env: KeyDoorTreasureEnv, actions: list[int]) -> list[tuple[int, float, bool, bool, dict]]:
    env.reset()
    return [env.step(action) for action in actions]


def test_start_is_bottom_left_without_the_key() -> None:
    assert cell(KeyDoorTreasureEnv().reset()[0]) == (5, 0, 0, 0)


def test_solution_pays_one_and_terminates() -> None:
    steps = play(KeyDoorTreasureEnv(), SOLUTION)
    assert len(steps) == 23
    assert [step[1] for step in steps] == [0.0] * 22 + [1.0]
    assert [step[2] for step in steps] == [False] * 22 + [True]
    assert not any(step[3] for step in steps)
    assert steps[-1][4] == {"goal": True}
    assert cell(steps[-1][0]) == (0, 8, 1, 0)


@pytest.mark.parametrize(("action", "stays"), [(DOWN, True), (LEFT, True), (UP, False), (RIGHT, False)])
def test_edge_of_the_grid_stops_a_move(action: int, stays: bool) -> None:
    observation, *_ = play(KeyDoorTreasureEnv(), [action])[0]
    assert (cell(observation) == (5, 0, 0, 0)) == stays


def test_door_is_closed_without_the_key() -> None:
    steps = play(KeyDoorTreasureEnv(), [RIGHT] * 6)
    assert cell(steps[-1][0]) == (5, 3, 0, 0)


def test_wall_stops_even_who_has_the_key() -> None:
    steps = play(KeyDoorTreasureEnv(), [*TO_KEY, RIGHT])
    assert cell(steps[-2][0]) == (0, 3, 1, 0)
    assert cell(steps[-1][0]) == (0, 3, 1, 0)


def test_wall_stops_from_inside_the_door_and_from_behind() -> None:
    steps = play(KeyDoorTreasureEnv(), [*TO_KEY, *TO_DOOR, UP, RIGHT, UP, LEFT])
    assert [cell(step[0])[:2] for step in steps[-5:]] == [(5, 4), (5, 4), (5, 5), (4, 5), (4, 5)]


def test_key_is_kept_and_the_door_stays_open() -> None:
    steps = play(KeyDoorTreasureEnv(), [*TO_KEY, *TO_DOOR, LEFT, LEFT, RIGHT, RIGHT, RIGHT])
    assert cell(steps[-1][0]) == (5, 5, 1, 0)


def test_next_episode_starts_without_key_and_with_an_apple() -> None:
    env = KeyDoorTreasureEnv(apple=True)
    play(env, TO_KEY)
    assert cell(env.reset()[0]) == (5, 0, 0, 0)


def test_apple_pays_once_an_episode() -> None:
    env = KeyDoorTreasureEnv(apple=True)
    for _ in range(2):
        steps = play(env, [RIGHT, RIGHT, LEFT, RIGHT])
        assert [step[1] for step in steps] == [0.0, 0.1, 0.0, 0.0]
        assert [cell(step[0])[3] for step in steps] == [0, 1, 1, 1]


def test_no_apple_without_the_variant() -> None:
    assert [step[1] for step in play(KeyDoorTreasureEnv(), [RIGHT, RIGHT])] == [0.0, 0.0]


def test_horizon_truncates_and_is_no_goal() -> None:
    steps = play(KeyDoorTreasureEnv(), [LEFT] * 50)
    assert [step[3] for step in steps] == [False] * 49 + [True]
    assert not any(step[2] for step in steps)
    assert steps[-1][4] == {"goal": False}


def test_treasure_in_the_last_step_terminates_and_does_not_truncate() -> None:
    _, reward, terminated, truncated, info = play(KeyDoorTreasureEnv(horizon=23), SOLUTION)[-1]
    assert (reward, terminated, truncated, info) == (1.0, True, False, {"goal": True})


def test_reset_mask_restarts_the_clock_of_those_games_only() -> None:
    envs = KeyDoorTreasureVectorEnv(2, horizon=4)
    envs.reset()
    for _ in range(3):
        envs.step(np.array([UP, UP]))
    observations, _ = envs.reset(options={"reset_mask": np.array([True, False])})
    assert [cell(observation)[0] for observation in observations] == [5, 2]
    *_, truncated, infos = envs.step(np.array([UP, UP]))
    assert truncated.tolist() == [False, True]
    assert infos["_final_obs"].tolist() == [False, True]
    assert cell(infos["final_obs"][1])[0] == 1


class PlainKeyDoor:
    """The rules once more, for one game, as a loop would have them."""

    def __init__(self, height: int, horizon: int, apple: bool) -> None:
        self.height, self.horizon = height, horizon
        self.row, self.column, self.key = height - 1, 0, False
        self.apple_left, self.eaten, self.elapsed = apple, False, 0

    def observe(self) -> int:
        return ((self.eaten * 2 + self.key) * self.height + self.row) * 9 + self.column

    def step(self, action: int) -> tuple[int, float, bool, bool]:
        """Observation, reward, terminated, truncated."""
        row, column = self.row, self.column
        if action == UP:
            row -= 1
        elif action == DOWN:
            row += 1
        elif action == LEFT:
            column -= 1
        else:
            column += 1
        inside = 0 <= row < self.height and 0 <= column < 9
        door = column == 4 and row == self.height - 1
        if inside and (column != 4 or (door and self.key)):
            self.row, self.column = row, column
        reward = 0.0
        if (self.row, self.column) == (0, 3):
            self.key = True
        if self.apple_left and (self.row, self.column) == (self.height - 1, 2):
            self.apple_left, self.eaten, reward = False, True, 0.1
        self.elapsed += 1
        found = (self.row, self.column) == (0, 8)
        return self.observe(), reward + float(found), found, self.elapsed == self.horizon and not found


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    height=st.integers(2, 6),
    horizon=st.integers(1, 40),
    apple=st.booleans(),
    num_envs=st.integers(1, 4),
)
def test_vector_games_follow_the_plain_rules(seed: int, height: int, horizon: int, apple: bool, num_envs: int) -> None:
    envs = KeyDoorTreasureVectorEnv(num_envs, height=height, horizon=horizon, apple=apple)
    observations, _ = envs.reset(seed=seed)
    games = [PlainKeyDoor(height, horizon, apple) for _ in range(num_envs)]
    assert observations.tolist() == [game.observe() for game in games]
    rng = np.random.default_rng(seed)
    for _ in range(100):
        # A drift to the right: door and treasure occur among low grids.
        actions = rng.choice(4, p=[0.25, 0.25, 0.1, 0.4], size=num_envs)
        expected = [game.step(int(action)) for game, action in zip(games, actions, strict=True)]
        observations, rewards, terminated, truncated, infos = envs.step(actions)
        assert envs.observation_space.contains(observations)
        assert rewards.tolist() == [step[1] for step in expected]
        assert terminated.tolist() == [step[2] for step in expected]
        assert truncated.tolist() == [step[3] for step in expected]
        ended = terminated | truncated
        assert ("final_obs" in infos) == ended.any()
        for env in np.flatnonzero(ended):
            assert infos["_final_obs"][env]
            assert infos["final_obs"][env] == expected[env][0]
            assert infos["final_info"]["goal"][env] == terminated[env]
            games[env] = PlainKeyDoor(height, horizon, apple)
        assert observations.tolist() == [game.observe() for game in games]
