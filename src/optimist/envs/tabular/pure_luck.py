"""Pure luck: rewards do not depend on actions, so there is nothing to learn from a good episode."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from optimist.envs.tabular.grid import Booleans, Floats, Integers, Table, TabularEnv, TabularVectorEnv, require_integer
from optimist.envs.tabular.picture import FLOOR, Scene


def pure_luck_table(length: int, actions: int) -> Table:
    """A corridor of `length` cells: every action leads to the next cell, and the last step ends the episode."""
    cells = np.arange(length)[:, None]  # [S, 1]
    shape = (length, actions)
    return Table(
        start=0,
        next_state=np.broadcast_to(np.minimum(cells + 1, length - 1), shape).copy(),
        rewards=np.zeros(shape),
        terminated=np.broadcast_to(cells == length - 1, shape).copy(),
        goal=np.zeros(shape, np.bool_),
    )


class PureLuckVectorEnv(TabularVectorEnv):
    """N environments of pure luck. Observation: the time; the last step pays an exponential reward with mean 1."""

    def __init__(self, num_envs: int = 1, length: int = 10, actions: int = 4, render_mode: str | None = None) -> None:
        require_integer("PureLuck's length", length, minimum=1)
        require_integer("PureLuck's actions", actions, minimum=2)
        task = {"name": "PureLuck", "length": length, "actions": actions}
        super().__init__(num_envs, pure_luck_table(length, actions), task, render_mode=render_mode)

    def step(self, actions: NDArray[np.integer[Any]]) -> tuple[Integers, Floats, Booleans, Booleans, dict[str, Any]]:
        """Observations, rewards, terminated, truncated, all [N], and infos."""
        observations, rewards, terminated, truncated, infos = super().step(actions)
        rewards[terminated] = self.np_random.exponential(size=int(terminated.sum()))
        return observations, rewards, terminated, truncated, infos

    def scene(self, path: list[int]) -> Scene:
        """The corridor and the cells of the path."""
        return Scene([[FLOOR] * self.num_states], [(0, state) for state in path])

    def state_dict(self) -> dict[str, Any]:
        """The exact state, the random generator included."""
        return super().state_dict() | {"generator": self.np_random.bit_generator.state}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Load a state of the same task and number of environments."""
        super().load_state_dict(state)
        self.np_random.bit_generator.state = state["generator"]


class PureLuckEnv(TabularEnv):
    """One environment of pure luck."""

    def __init__(self, length: int = 10, actions: int = 4, render_mode: str | None = None) -> None:
        super().__init__(PureLuckVectorEnv(1, length, actions, render_mode))
