"""DeepSea: one treasure at the end of N right moves in a row, each of them slightly costly (Osband et al., 2019)."""

from __future__ import annotations

from typing import Any

import numpy as np

from optimist.envs.tabular import Booleans, Integers, Table, TabularEnv, TabularVectorEnv, require_integer
from optimist.errors import CheckpointError, ConfigError

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
    """N games of DeepSea on one map. Observation: row · size + column; action: 0 or 1, whatever they mean there.

    The map follows from `map_seed`, or else from the seed of the first `reset(seed=…)`, and then stays: later resets
    keep it, with or without a seed. Without any seed the first reset draws one that cannot be repeated.
    """

    def __init__(self, num_envs: int = 1, size: int = 12, map_seed: int | None = None) -> None:
        self.size = require_integer("DeepSea's size", size, minimum=2)
        super().__init__(num_envs, num_states=size * size, num_actions=2, task={"name": "DeepSea", "size": size})
        self.right_is_one = np.zeros((size, size), dtype=np.bool_)
        """The map in force, once there is one."""
        self._map_fixed = map_seed is not None
        if map_seed is not None:
            self._use_map(deepsea_map(require_integer("DeepSea's map_seed", map_seed, minimum=0), size))

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Integers, dict[str, Any]]:
        """Observations [N] after starting all games anew, or those in `options["reset_mask"]`."""
        if seed is not None and not self._map_fixed:
            if options and not np.all(options.get("reset_mask", True)):
                raise ConfigError("the first reset with a seed draws DeepSea's map and has to reset all environments")
            self._use_map(deepsea_map(seed, self.size))
            self._map_fixed = True
        elif self._table is None:
            self._use_map(deepsea_map(int(self.np_random.integers(2**63)), self.size))
        return super().reset(seed=seed, options=options)

    def state_dict(self) -> dict[str, Any]:
        """Everything the games need to go on, the map included."""
        return {**super().state_dict(), "right_is_one": self.right_is_one.copy(), "map_fixed": self._map_fixed}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a saved state, on its map."""
        self._check_task(state)
        right_is_one = np.asarray(state.get("right_is_one"))
        if right_is_one.dtype != np.bool_ or right_is_one.shape != (self.size, self.size):
            shape = list(right_is_one.shape)
            raise CheckpointError(f"saved map is {right_is_one.dtype}{shape}, expected bool[{self.size}, {self.size}]")
        super().load_state_dict(state)
        self._use_map(right_is_one.copy())
        self._map_fixed = bool(state["map_fixed"])

    def _use_map(self, right_is_one: Booleans) -> None:
        self.right_is_one = right_is_one
        self.table = deepsea_table(right_is_one)


class DeepSeaEnv(TabularEnv):
    """One game of DeepSea, with the map of `DeepSeaVectorEnv` for the same seed."""

    def __init__(self, size: int = 12, map_seed: int | None = None) -> None:
        super().__init__(DeepSeaVectorEnv(1, size=size, map_seed=map_seed))
