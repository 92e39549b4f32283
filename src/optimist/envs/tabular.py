"""Tasks whose whole state is one number: the rules as a table, N games stepped by looking up rows of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from optimist.errors import CheckpointError, ConfigError, ShapeMismatch

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]


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
    """N games of one tabular task, reset within the step that ends them (`AutoresetMode.SAME_STEP`).

    When games end, `infos` holds their last observations in `final_obs` [N] and whether they reached the goal in
    `final_info["goal"]` [N], valid where the mask `_final_obs` (equal to `_final_info`) is true; else it is empty.
    """

    metadata: dict[str, Any] = {"render_modes": [], "autoreset_mode": AutoresetMode.SAME_STEP}  # noqa: RUF012 (declared so by Gymnasium)

    def __init__(
        self,
        num_envs: int,
        num_states: int,
        num_actions: int,
        task: dict[str, Any],
        horizon: int | None = None,
        horizon_terminates: bool = False,
    ) -> None:
        self.num_envs = require_integer("num_envs", num_envs, minimum=1)
        self.single_observation_space = gymnasium.spaces.Discrete(num_states)
        self.single_action_space = gymnasium.spaces.Discrete(num_actions)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.num_states, self.num_actions = num_states, num_actions
        self.horizon, self.horizon_terminates = horizon, horizon_terminates
        self.task = task
        """Settings that define the task, JSON-able; a saved state fits only the same task."""
        self._table: Table | None = None
        self._states: Integers | None = None
        self._elapsed = np.zeros(num_envs, dtype=np.int64)

    @property
    def table(self) -> Table:
        """The rules in force."""
        if self._table is None:
            raise ResetNeeded(f"{self} has no map yet: call reset() first")
        return self._table

    @table.setter
    def table(self, table: Table) -> None:
        self._table = table
        self._next_state = table.next_state.ravel()  # flat: one index serves all lookups of a step
        self._rewards = table.rewards.ravel()
        self._terminated = table.terminated.ravel()
        self._goal = table.goal.ravel()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Integers, dict[str, Any]]:
        """Observations [N] after starting all games anew, or those in `options["reset_mask"]`."""
        super().reset(seed=seed)
        mask = self._reset_mask(options)
        if mask is None:
            self._states = np.full(self.num_envs, self.table.start, dtype=np.int64)
            self._elapsed = np.zeros(self.num_envs, dtype=np.int64)
        else:
            self._states = np.where(mask, self.table.start, self._started())
            self._elapsed = np.where(mask, 0, self._elapsed)
        return self._states.copy(), {}

    def step(self, actions: NDArray[np.integer[Any]]) -> tuple[Integers, Floats, Booleans, Booleans, dict[str, Any]]:
        """Observations, rewards, terminated, truncated, all [N], and infos."""
        index = self._started() * self.num_actions + self._checked(actions)
        states = self._next_state.take(index)
        terminated = self._terminated.take(index)
        self._elapsed += 1
        truncated = np.zeros(self.num_envs, dtype=np.bool_)
        if self.horizon is not None:
            out_of_time = self._elapsed >= self.horizon
            if self.horizon_terminates:
                terminated = terminated | out_of_time
            else:
                truncated = out_of_time & ~terminated
        infos: dict[str, Any] = {}
        ended = terminated | truncated
        if ended.any():
            goal = self._goal.take(index)
            infos = {
                "final_obs": states,
                "_final_obs": ended,
                "final_info": {"goal": goal, "_goal": ended.copy()},
                "_final_info": ended.copy(),
            }
            states = np.where(ended, self.table.start, states)
            self._elapsed[ended] = 0
        self._states = states
        return states.copy(), self._rewards.take(index), terminated, truncated, infos

    def state_dict(self) -> dict[str, Any]:
        """Everything the games need to go on; nothing in them is random once the map is drawn."""
        return {"task": dict(self.task), "states": self._started().copy(), "elapsed": self._elapsed.copy()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a saved state of the same task and number of games."""
        self._check_task(state)
        states = self._saved(state, "states", (self.num_envs,), self.num_states)
        elapsed = self._saved(state, "elapsed", (self.num_envs,), self.horizon or np.iinfo(np.int64).max)
        self._states, self._elapsed = states, elapsed

    def _check_task(self, state: dict[str, Any]) -> None:
        if state.get("task") != self.task:
            raise CheckpointError(f"the saved state is of task {state.get('task')}, but this one is {self.task}")

    def _saved(self, state: dict[str, Any], name: str, shape: tuple[int, ...], limit: int) -> Integers:
        array = np.asarray(state.get(name))
        if array.shape != shape or array.dtype != np.int64:
            raise CheckpointError(f"saved {name} is {array.dtype}{list(array.shape)}, expected int64{list(shape)}")
        if array.min() < 0 or array.max() >= limit:
            raise CheckpointError(f"saved {name} lies outside [0, {limit}): {array.min()} to {array.max()}")
        return array.copy()

    def _started(self) -> Integers:
        if self._states is None:
            raise ResetNeeded(f"{self} has not started: call reset() on all environments first")
        return self._states

    def _checked(self, actions: NDArray[np.integer[Any]]) -> Integers:
        actions = np.asarray(actions)
        if actions.shape != (self.num_envs,):
            raise ShapeMismatch(
                f"actions is {list(actions.shape)}, expected one for each environment: [{self.num_envs}]"
            )
        if actions.dtype.kind not in "iu":
            raise ConfigError(f"actions must be integers, got {actions.dtype}")
        checked = actions.astype(np.int64, copy=False)
        # Seen as unsigned, a negative number is a huge one: one comparison finds both kinds of bad action.
        if checked.view(np.uint64).max() >= self.num_actions:
            raise ConfigError(f"actions must lie in [0, {self.num_actions}), got {actions.min()} to {actions.max()}")
        return checked

    def _reset_mask(self, options: dict[str, Any] | None) -> Booleans | None:
        unknown = sorted(set(options or {}) - {"reset_mask"})
        if unknown:
            raise ConfigError(f"unknown reset option '{unknown[0]}'; the only one is 'reset_mask'")
        if not options:
            return None
        mask = np.asarray(options["reset_mask"])
        if mask.shape != (self.num_envs,) or mask.dtype != np.bool_:
            raise ShapeMismatch(f"reset_mask is {mask.dtype}{list(mask.shape)}, expected bool[{self.num_envs}]")
        return mask


class TabularEnv(gymnasium.Env[int, int]):
    """One game of a tabular task; it ends and waits for `reset`. `info["goal"]` comes with the last step."""

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 (declared so by Gymnasium)

    def __init__(self, game: TabularVectorEnv) -> None:
        self.game = game
        """The same rules for one game."""
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
            raise ResetNeeded("the episode has ended or never began: call reset()")
        observations, rewards, terminated, truncated, infos = self.game.step(np.asarray([action]))
        self._waiting = bool(terminated[0] or truncated[0])
        if self._waiting:
            observations = infos["final_obs"]
            infos = {"goal": bool(infos["final_info"]["goal"][0])}
        return int(observations[0]), float(rewards[0]), bool(terminated[0]), bool(truncated[0]), infos

    def state_dict(self) -> dict[str, Any]:
        """Everything the game needs to go on."""
        return {"game": self.game.state_dict(), "waiting": self._waiting}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a saved state."""
        self.game.load_state_dict(state["game"])
        self._waiting = bool(state["waiting"])


def require_integer(name: str, value: int, minimum: int) -> int:
    """The value, if it is an integer of at least `minimum`."""
    if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < minimum:
        raise ConfigError(f"{name} must be an integer of at least {minimum}, got {value!r}")
    return int(value)
