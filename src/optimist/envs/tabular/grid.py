"""Tasks whose whole state is one number: the rules as a table, N environments stepped by lookups in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from optimist.envs.checks import checked_actions, reset_mask
from optimist.envs.tabular.picture import Scene, render
from optimist.errors import CheckpointError, ConfigError

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]
RENDER_MODES = ("rgb_array", "ansi")


@dataclass(frozen=True)
class Table:
    """The rules of a task: what each (state, action) leads to, as arrays [S, A]."""

    start: int
    """State every episode starts in."""
    next_state: Integers
    """Where the action leads; the final observation if it ends the episode."""
    rewards: Floats
    """Reward of the transition."""
    terminated: Booleans
    """The transition ends the episode."""
    goal: Booleans
    """The transition reaches the goal (and ends the episode)."""


class TabularVectorEnv(VectorEnv[Integers, Integers, NDArray[Any]]):
    """N environments of one tabular task, reset within the step that ends an episode (`AutoresetMode.SAME_STEP`).

    When episodes end, `infos` holds their last observations in `final_obs` [N] and whether they reached the goal in
    `final_info["goal"]` [N], valid where the mask `_final_obs` (equal to `_final_info`) is true; else it is empty.
    """

    metadata: dict[str, Any] = {  # noqa: RUF012 (declared so by Gymnasium)
        "render_modes": list(RENDER_MODES),
        "render_fps": 4,
        "autoreset_mode": AutoresetMode.SAME_STEP,
    }

    def __init__(
        self,
        num_envs: int,
        table: Table,
        task: dict[str, Any],
        horizon: int | None = None,
        render_mode: str | None = None,
    ) -> None:
        """`task`: settings that define the task; a saved state fits only the same task."""
        if render_mode not in (None, *RENDER_MODES):
            raise ConfigError(f"render_mode must be None, {' or '.join(map(repr, RENDER_MODES))}, got {render_mode!r}")
        self.render_mode = render_mode
        self.paths: list[list[int]] = []
        """With a render mode: the states of each environment's episode so far, and of its last one that ended."""
        self.finished_paths: list[list[int]] = []
        self.num_envs = require_integer("num_envs", num_envs, minimum=1)
        self.table, self.task, self.horizon = table, task, horizon
        self.num_states, self.num_actions = table.next_state.shape
        self.single_observation_space = gymnasium.spaces.Discrete(self.num_states)
        self.single_action_space = gymnasium.spaces.Discrete(self.num_actions)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        # Flat: one index for all lookups of a step.
        self._next_state, self._rewards = table.next_state.ravel(), table.rewards.ravel()
        self._terminated, self._goal = table.terminated.ravel(), table.goal.ravel()
        self._states = np.full(num_envs, table.start, dtype=np.int64)
        self._elapsed = np.zeros(num_envs, dtype=np.int64)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Integers, dict[str, Any]]:
        """Restart all environments, or those in `options["reset_mask"]`; return the observations [N]."""
        super().reset(seed=seed)
        mask = reset_mask(options, self.num_envs)
        self._states = np.where(mask, self.table.start, self._states)
        self._elapsed = np.where(mask, 0, self._elapsed)
        if self.render_mode is not None:
            self.paths, self.finished_paths = [[int(state)] for state in self._states], [[]] * self.num_envs
        return self._states.copy(), {}

    def step(self, actions: NDArray[np.integer[Any]]) -> tuple[Integers, Floats, Booleans, Booleans, dict[str, Any]]:
        """Observations, rewards, terminated, truncated, all [N], and infos."""
        actions = np.asarray(actions)
        fits = actions.dtype == np.int64 and actions.shape == self._states.shape
        if not (fits and 0 <= actions.min() <= actions.max() < self.num_actions):
            actions = checked_actions(actions, self.num_envs, self.num_actions)
        index = self._states * self.num_actions + actions
        states, terminated = self._next_state.take(index), self._terminated.take(index)
        truncated = np.zeros(self.num_envs, dtype=np.bool_)
        self._elapsed += 1
        if self.horizon is not None:
            truncated = (self._elapsed >= self.horizon) & ~terminated
        infos: dict[str, Any] = {}
        ended = terminated | truncated
        if ended.any():
            final_info = {"goal": self._goal.take(index), "_goal": ended.copy()}
            infos = {"final_obs": states, "_final_obs": ended, "final_info": final_info, "_final_info": ended.copy()}
            states = np.where(ended, self.table.start, states)
            self._elapsed[ended] = 0
        if self.render_mode is not None:
            self._record_paths(self._next_state.take(index), ended)
        self._states = states
        return states.copy(), self._rewards.take(index), terminated, truncated, infos

    def scene(self, path: list[int]) -> Scene:
        """The grid after these states of one episode."""
        raise NotImplementedError

    def render(self) -> tuple[Any, ...] | None:
        """A picture or text of each environment, as `render_mode` says."""
        if self.render_mode is None:
            return None
        return tuple(render(self.scene(path), self.render_mode) for path in self.paths)

    def _record_paths(self, reached: Integers, ended: Booleans) -> None:
        for path, state in zip(self.paths, reached, strict=True):
            path.append(int(state))
        for n in np.flatnonzero(ended):
            self.finished_paths[n], self.paths[n] = self.paths[n], [self.table.start]

    def state_dict(self) -> dict[str, Any]:
        """The exact state; nothing is random."""
        return {"task": dict(self.task), "states": self._states.copy(), "elapsed": self._elapsed.copy()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Load a state of the same task and number of environments."""
        saved, own = (state["task"], len(state["states"])), (self.task, self.num_envs)
        if saved != own:
            raise CheckpointError(f"the saved state is of {saved[1]} × {saved[0]}; expected {own[1]} × {own[0]}")
        self._states, self._elapsed = state["states"].copy(), state["elapsed"].copy()


class TabularEnv(gymnasium.Env[int, int]):
    """One environment of a tabular task, without autoreset; the last step has `info["goal"]`."""

    metadata: dict[str, Any] = {"render_modes": list(RENDER_MODES), "render_fps": 4}  # noqa: RUF012 (see above)

    def __init__(self, game: TabularVectorEnv) -> None:
        self.game, self.render_mode = game, game.render_mode
        """The same rules for one environment."""
        self.observation_space = game.single_observation_space
        self.action_space = game.single_action_space
        self._waiting = True

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[int, dict[str, Any]]:
        """The first observation."""
        super().reset(seed=seed)
        observations, infos = self.game.reset(seed=seed, options=options)
        self._waiting = False
        return int(observations[0]), infos

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """Observation, reward, terminated, truncated, info."""
        if self._waiting:
            raise ResetNeeded("the episode has ended or was not started: call reset()")
        observations, rewards, terminated, truncated, infos = self.game.step(np.asarray([action]))
        self._waiting = bool(terminated[0] or truncated[0])
        if self._waiting:
            observations = infos["final_obs"]
            infos = {"goal": bool(infos["final_info"]["goal"][0])}
        return int(observations[0]), float(rewards[0]), bool(terminated[0]), bool(truncated[0]), infos

    def render(self) -> Any:
        """A picture or text of the episode so far, its last step included."""
        if self.render_mode is None:
            return None
        (path,) = self.game.finished_paths if self._waiting else self.game.paths
        return render(self.game.scene(path), self.render_mode)


def require_integer(name: str, value: int, minimum: int) -> int:
    """The value, if it is an integer of at least `minimum`."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < minimum:
        raise ConfigError(f"{name} must be an integer of at least {minimum}, got {value!r}")
    return int(value)


STEP_COST = 1e-9  # prefers the shortest of equal returns


def scripted_success(env: gymnasium.Env[Any, Any] | VectorEnv[Any, Any, Any]) -> list[int]:
    """The shortest action sequence from the start that reaches the goal with the highest return.

    For DeepSea and Key-Door-Treasure, single or vector.
    """
    game = env.unwrapped
    if isinstance(game, TabularEnv):
        game = game.game
    if not isinstance(game, TabularVectorEnv):
        raise ConfigError(f"no script for {env}; expected DeepSea or Key-Door-Treasure without wrappers")
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
    """The best action of each state [S] at each time of an episode, by dynamic programming from its end."""
    table = game.table
    values = np.zeros(game.num_states)
    plan = []
    for _ in range(game.horizon or game.num_states):
        outcomes = table.rewards - STEP_COST + np.where(table.terminated, 0.0, values[table.next_state])
        plan.append(outcomes.argmax(axis=1))
        values = outcomes.max(axis=1)
    return plan[::-1]
