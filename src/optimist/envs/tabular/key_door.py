"""Key-Door-Treasure: fetch the key, walk through the door, find the treasure; optionally an apple on the way."""

from __future__ import annotations

import numpy as np

from optimist.envs.tabular.grid import Table, TabularEnv, TabularVectorEnv, require_integer
from optimist.envs.tabular.picture import APPLE, DOOR, FLOOR, KEY, OPEN_DOOR, TREASURE, WALL, Scene
from optimist.errors import ConfigError

WIDTH = 9
WALL_COLUMN = 4  # the door is its bottom cell
KEY_COLUMN = 3  # in the top row
TREASURE_COLUMN = 8  # in the top row
APPLE_COLUMN = 2  # in the bottom row
TREASURE_REWARD = 1.0
APPLE_REWARD = 0.1
ROW_STEPS = np.array([-1, 1, 0, 0])  # actions: up, down, left, right
COLUMN_STEPS = np.array([0, 0, -1, 1])


def key_door_table(height: int, apple: bool) -> Table:
    """The rules on a grid of `height` × 9, start in the bottom left cell.

    A move against the wall, the edge or the closed door has no effect. Walking onto the key picks it up, which opens
    the door. Treasure: +1 and the end. Apple: +0.1, once an episode.
    The state is ((apple eaten · 2 + has key) · height + row) · 9 + column.
    """
    bottom = height - 1
    states = np.arange((4 if apple else 2) * height * WIDTH)[:, None]  # [S, 1]
    rest, columns = np.divmod(states, WIDTH)
    rest, rows = np.divmod(rest, height)
    eaten, has_key = np.divmod(rest, 2)

    to_rows = np.clip(rows + ROW_STEPS, 0, bottom)  # [S, A]
    to_columns = np.clip(columns + COLUMN_STEPS, 0, WIDTH - 1)
    blocked = (to_columns == WALL_COLUMN) & ((to_rows != bottom) | (has_key == 0))
    to_rows, to_columns = np.where(blocked, rows, to_rows), np.where(blocked, columns, to_columns)

    to_key = has_key | ((to_rows == 0) & (to_columns == KEY_COLUMN))
    eats = (to_rows == bottom) & (to_columns == APPLE_COLUMN) & (eaten == 0) & apple
    goal = (to_rows == 0) & (to_columns == TREASURE_COLUMN)
    return Table(
        start=bottom * WIDTH,
        next_state=(((eaten | eats) * 2 + to_key) * height + to_rows) * WIDTH + to_columns,
        rewards=np.where(goal, TREASURE_REWARD, 0.0) + np.where(eats, APPLE_REWARD, 0.0),
        terminated=goal,
        goal=goal,
    )


class KeyDoorTreasureVectorEnv(TabularVectorEnv):
    """N environments of Key-Door-Treasure. Actions: up, down, left, right; nothing is random.

    After `horizon` steps an episode is truncated, although the observation does not show the time left.
    """

    def __init__(
        self,
        num_envs: int = 1,
        height: int = 6,
        horizon: int = 50,
        apple: bool = False,
        render_mode: str | None = None,
    ) -> None:
        require_integer("Key-Door-Treasure's height", height, minimum=2)
        require_integer("Key-Door-Treasure's horizon", horizon, minimum=1)
        if not isinstance(apple, bool):
            raise ConfigError(f"Key-Door-Treasure's apple must be true or false, got {apple!r}")
        task = {"name": "KeyDoorTreasure", "height": height, "horizon": horizon, "apple": apple}
        super().__init__(num_envs, key_door_table(height, apple), task, horizon, render_mode)

    def scene(self, path: list[int]) -> Scene:
        """The grid as it is after the path: without a key that was taken or an apple that was eaten."""
        height = self.task["height"]
        eaten, has_key = divmod(path[-1] // (height * WIDTH), 2)
        cells = [[WALL if column == WALL_COLUMN else FLOOR for column in range(WIDTH)] for _ in range(height)]
        cells[-1][WALL_COLUMN] = OPEN_DOOR if has_key else DOOR
        cells[0][TREASURE_COLUMN] = TREASURE
        if not has_key:
            cells[0][KEY_COLUMN] = KEY
        if self.task["apple"] and not eaten:
            cells[-1][APPLE_COLUMN] = APPLE
        return Scene(cells, [divmod(state % (height * WIDTH), WIDTH) for state in path])


class KeyDoorTreasureEnv(TabularEnv):
    """One environment of Key-Door-Treasure."""

    def __init__(self, height: int = 6, horizon: int = 50, apple: bool = False, render_mode: str | None = None) -> None:
        super().__init__(KeyDoorTreasureVectorEnv(1, height, horizon, apple, render_mode))
