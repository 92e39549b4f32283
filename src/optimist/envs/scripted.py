"""The solution of a tabular task, read off its rules; for tests and for experiments that inject one success."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import VectorEnv

from optimist.envs.tabular import TabularEnv, TabularVectorEnv
from optimist.errors import ConfigError

STEP_COST = 1e-9  # among equal returns the shortest way


def scripted_success(env: gymnasium.Env[Any, Any] | VectorEnv[Any, Any, Any]) -> list[int]:
    """Actions from the start that reach the goal with the highest return, in as few steps as that takes.

    For DeepSea and Key-Door-Treasure, one game or many. DeepSea needs its map: a `map_seed`, or a reset before.
    """
    game = env.unwrapped
    if isinstance(game, TabularEnv):
        game = game.game
    if not isinstance(game, TabularVectorEnv):
        raise ConfigError(f"no script for {env}; there is one for DeepSea and Key-Door-Treasure made by themselves")
    table = game.table
    actions: list[int] = []
    state = table.start
    for best in _best_actions(game):
        action = int(best[state])
        actions.append(action)
        if table.goal[state, action]:
            return actions
        if table.terminated[state, action]:
            break
        state = int(table.next_state[state, action])
    raise ConfigError(f"{game.task['name']} cannot be solved within its horizon of {game.horizon} steps")


def _best_actions(game: TabularVectorEnv) -> list[np.ndarray[Any, np.dtype[np.int64]]]:
    """The best action of each state [S] for each time of an episode, by dynamic programming from its end."""
    table = game.table
    values = np.zeros(game.num_states)
    plan = []
    for _ in range(game.horizon or game.num_states):
        outcomes = table.rewards - STEP_COST + np.where(table.terminated, 0.0, values[table.next_state])
        plan.append(outcomes.argmax(axis=1))
        values = outcomes.max(axis=1)
    return plan[::-1]
