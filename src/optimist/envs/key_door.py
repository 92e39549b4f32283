"""Key-Door-Treasure: fetch the key, walk through the door, find the treasure; optionally an apple on the way."""

from __future__ import annotations

import numpy as np

from optimist.envs.tabular import Table, TabularEnv, TabularVectorEnv, require_integer
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

    A move against the wall, the edge or the closed door stays where it is. Walking onto the key picks it up; with it
    the door lets through. Treasure: +1 and the end. Apple: +0.1, once an episode.
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
    """N games of Key-Door-Treasure. Actions: up, down, left, right; nothing in it is random.

    After `horizon` steps an episode is truncated, or, with `horizon_terminates`, ends for good: a time limit that the
    observation does not show is bootstrapped by default.
    """

    def __init__(
        self,
        num_envs: int = 1,
        height: int = 6,
        horizon: int = 50,
        apple: bool = False,
        horizon_terminates: bool = False,
    ) -> None:
        require_integer("Key-Door-Treasure's height", height, minimum=2)
        require_integer("Key-Door-Treasure's horizon", horizon, minimum=1)
        for name, flag in (("apple", apple), ("horizon_terminates", horizon_terminates)):
            if not isinstance(flag, bool):
                raise ConfigError(f"Key-Door-Treasure's {name} must be true or false, got {flag!r}")
        self.height, self.apple = height, apple
        table = key_door_table(height, apple)
        task = {"name": "KeyDoorTreasure", "height": height, "horizon": horizon, "apple": apple}
        super().__init__(
            num_envs,
            num_states=len(table.next_state),
            num_actions=4,
            task={**task, "horizon_terminates": horizon_terminates},
            horizon=horizon,
            horizon_terminates=horizon_terminates,
        )
        self.table = table


class KeyDoorTreasureEnv(TabularEnv):
    """One game of Key-Door-Treasure."""

    def __init__(
        self, height: int = 6, horizon: int = 50, apple: bool = False, horizon_terminates: bool = False
    ) -> None:
        super().__init__(KeyDoorTreasureVectorEnv(1, height, horizon, apple, horizon_terminates))
