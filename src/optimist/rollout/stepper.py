"""VectorStepper: one interface to Gymnasium vector environments of all autoreset modes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(frozen=True)
class Transition:
    """The result of one step of N environments."""

    obs: Array  # [N, ...] to act on next
    rewards: Array  # [N]
    terminated: NDArray[np.bool_]  # [N]
    truncated: NDArray[np.bool_]  # [N]
    ended: NDArray[np.bool_]  # [N] terminated or truncated
    valid: NDArray[np.bool_] | None  # [N] false on a reset step; None: all valid
    infos: dict[str, Any]  # of `obs`
    step_infos: dict[str, Any]  # of the step itself, where episodes continue
    final_infos: dict[str, Any]  # of the step itself, where episodes ended
    final_obs: Array | None  # [N, ...] last observations of the episodes that ended

    @property
    def life_lost(self) -> NDArray[np.bool_]:
        """Lives lost (`info["life_lost"]`) where the episode continues: ends for the learner alone."""
        return overlaid(np.zeros(len(self.rewards), bool), self.step_infos, "life_lost", ~self.ended)

    def executed(self, actions: Array) -> Array:
        """`actions` [N, ...], with those that an environment overrode replaced by the executed ones."""
        all_envs = np.ones(len(self.rewards), bool)
        executed = overlaid(actions, self.step_infos, "executed", all_envs)
        return overlaid(executed, self.final_infos, "executed", self.ended)

    def forced(self, actions: Array) -> NDArray[np.bool_]:
        """Where the policy did not choose: `info["forced"]`, and without it where the executed action differs, [N]."""
        all_envs = np.ones(len(self.rewards), bool)
        differs = (self.executed(actions) != actions).reshape(len(all_envs), -1).any(axis=1)
        forced = overlaid(differs, self.step_infos, "forced", all_envs)
        return overlaid(forced, self.final_infos, "forced", self.ended)


class VectorStepper:
    """Steps a vector environment and hides its autoreset mode.

    Under NEXT_STEP the step after an end only resets: it is returned with `valid` false, reward 0 and no end. Under
    SAME_STEP and DISABLED there is no such step.
    """

    def __init__(self, envs: VectorEnv[Any, Any, Any]) -> None:
        self.envs = envs
        self.mode = envs.metadata["autoreset_mode"]
        self.resetting = np.zeros(envs.num_envs, bool)

    def reset(self, seed: int | None = None) -> tuple[Array, dict[str, Any]]:
        """First observations [N, ...] and infos."""
        self.resetting = np.zeros(self.envs.num_envs, bool)
        obs, infos = self.envs.reset(seed=seed)
        return obs, infos

    def step(self, actions: Array) -> Transition:
        """One step of every environment."""
        obs, rewards, terminated, truncated, infos = self.envs.step(actions)
        if self.mode is AutoresetMode.NEXT_STEP:
            return self._with_reset_steps(obs, rewards, terminated, truncated, infos)
        final_obs, final_infos, step_infos = infos.get("final_obs"), infos.get("final_info", infos), infos
        ended = terminated | truncated
        if self.mode is AutoresetMode.DISABLED and ended.any():
            final_obs, final_infos = obs, infos
            obs, infos = self.envs.reset(options={"reset_mask": ended})
        return Transition(obs, rewards, terminated, truncated, ended, None, infos, step_infos, final_infos, final_obs)

    def _with_reset_steps(self, obs: Array, rewards: Array, terminated: Any, truncated: Any, infos: Any) -> Transition:
        valid = ~self.resetting
        terminated, truncated = terminated & valid, truncated & valid
        self.resetting = terminated | truncated
        mask = None if valid.all() else valid
        return Transition(obs, rewards * valid, terminated, truncated, self.resetting, mask, infos, infos, infos, obs)


def overlaid(values: Array, infos: dict[str, Any], key: str, where: NDArray[np.bool_]) -> Array:
    """`values` [N, ...], replaced by `infos[key]` for the environments in `where` that gave this entry.

    Gymnasium marks in `infos["_" + key]` which environments gave it; the rows of the others are undefined.
    """
    if key not in infos:
        return values
    mask = where & infos.get(f"_{key}", True)
    result = values.copy()
    result[mask] = rows_of(np.asarray(infos[key]), mask) if mask.any() else result[mask]
    return result


def rows_of(values: Array, mask: NDArray[np.bool_]) -> Array:
    """The rows of the masked environments, [M, ...], also from an array of objects."""
    rows = values[mask]
    return np.stack(list(rows)) if rows.dtype == object else rows
