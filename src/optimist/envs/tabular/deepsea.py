"""DeepSea: one treasure at the end of N right moves in a row, each of them slightly costly (Osband et al., 2019)."""

from __future__ import annotations

import numpy as np

from optimist.envs.tabular.grid import Booleans, Table, TabularEnv, TabularVectorEnv, require_integer
from optimist.envs.tabular.picture import FLOOR, TREASURE, Scene

MOVE_COST = 0.01  # of N right moves together


def deepsea_table(right_is_one: Booleans) -> Table:
    """The rules on a map [N, N] that says where action 1 means right (elsewhere it means left).

    Each move goes one row down and one column left or right, the column clipped at the walls. Right costs 0.01/N, and
    right in the bottom right corner pays 1: only N right moves in a row lead there. A move in the bottom row ends the
    episode; below it there is nothing, and the final observation is the cell of that last move.
    """
    size = len(right_is_one)
    states = np.arange(size * size)[:, None]  # [S, 1]
    rows, columns = np.divmod(states, size)
    right = (np.arange(2) == 1) == right_is_one.reshape(-1, 1)  # [S, A]
    bottom = np.broadcast_to(rows == size - 1, right.shape)
    next_columns = np.clip(columns + np.where(right, 1, -1), 0, size - 1)
    goal = right & bottom & (columns == size - 1)
    return Table(
        start=0,
        next_state=np.where(bottom, states, (rows + 1) * size + next_columns),
        rewards=np.where(goal, 1.0, 0.0) - np.where(right, MOVE_COST / size, 0.0),
        terminated=bottom.copy(),
        goal=goal,
    )


def deepsea_map(seed: int, size: int) -> Booleans:
    """The map [N, N] of a seed: whether action 1 means right, a fair coin for each cell."""
    return np.random.default_rng(seed).integers(0, 2, size=(size, size)).astype(np.bool_)


class DeepSeaVectorEnv(TabularVectorEnv):
    """N environments of DeepSea with the map of `map_seed`. Observation: row · size + column; action: 0 or 1."""

    def __init__(self, num_envs: int = 1, size: int = 12, map_seed: int = 0, render_mode: str | None = None) -> None:
        require_integer("DeepSea's size", size, minimum=2)
        require_integer("DeepSea's map_seed", map_seed, minimum=0)
        self.right_is_one = deepsea_map(map_seed, size)
        task = {"name": "DeepSea", "size": size, "map_seed": map_seed}
        super().__init__(num_envs, deepsea_table(self.right_is_one), task, render_mode=render_mode)

    def scene(self, path: list[int]) -> Scene:
        """The grid with its treasure, and the cells of the path."""
        size = len(self.right_is_one)
        cells = [[FLOOR] * size for _ in range(size)]
        cells[-1][-1] = TREASURE
        return Scene(cells, [divmod(state, size) for state in path])


class DeepSeaEnv(TabularEnv):
    """One environment of DeepSea."""

    def __init__(self, size: int = 12, map_seed: int = 0, render_mode: str | None = None) -> None:
        super().__init__(DeepSeaVectorEnv(1, size, map_seed, render_mode))
