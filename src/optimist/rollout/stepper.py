"""VectorStepper: any Gymnasium vector environment, whatever its autoreset mode, as one clear sequence of steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from numpy.typing import NDArray

Array = NDArray[Any]


@dataclass(frozen=True)
class Transition:
    """What one step of N environments gave."""

    obs: Array  # [N, ...] to act on next
    rewards: Array  # [N]
    terminated: NDArray[np.bool_]  # [N]
    truncated: NDArray[np.bool_]  # [N]
    valid: NDArray[np.bool_] | None  # [N] false on the dead step that only resets; None: all valid
    infos: dict[str, Any]  # goes with `obs`
    step_infos: dict[str, Any]  # goes with the step itself, of episodes that go on
    final_infos: dict[str, Any]  # goes with the step itself, of episodes that ended here
    final_obs: Array | None  # [N, ...] the last observation of the episodes that ended here

    @property
    def ended(self) -> NDArray[np.bool_]:
        """Episodes that ended with this step."""
        return self.terminated | self.truncated

    @property
    def life_lost(self) -> NDArray[np.bool_]:
        """Lives lost (`info["life_lost"]`) in episodes that go on: ends for the learner, not for the game."""
        return overlaid(np.zeros(len(self.rewards), bool), self.step_infos, "life_lost", ~self.ended)

    @property
    def tells_executed(self) -> bool:
        """Whether an environment says in `info["executed"]` which action it executed."""
        return "executed" in self.step_infos or "executed" in self.final_infos

    def executed(self, actions: Array) -> Array:
        """`actions` [N, ...], with the executed one in the place of each that an environment overrode."""
        everyone = np.ones(len(self.rewards), bool)
        executed = overlaid(actions, self.step_infos, "executed", everyone)
        return overlaid(executed, self.final_infos, "executed", self.ended)


class VectorStepper:
    """Steps a vector environment; the three autoreset modes look alike from here.

    Under NEXT_STEP the step after an end only resets: it comes back with `valid` false, reward 0 and no end. Under
    SAME_STEP and DISABLED there is no such step.
    """

    def __init__(self, envs: VectorEnv[Any, Any, Any]) -> None:
        self.envs = envs
        self.mode = envs.metadata["autoreset_mode"]
        self.resetting = np.zeros(envs.num_envs, bool)

    def reset(self, seed: int | None = None) -> tuple[Array, dict[str, Any]]:
        """First observations [N, ...] and infos."""
        self.resetting[:] = False
        obs, infos = self.envs.reset(seed=seed)
        return obs, infos

    def step(self, actions: Array) -> Transition:
        """One step of every environment."""
        obs, rewards, terminated, truncated, infos = self.envs.step(actions)
        if self.mode is AutoresetMode.NEXT_STEP:
            return self._with_dead_steps(obs, rewards, terminated, truncated, infos)
        final_obs, final_infos, step_infos = infos.get("final_obs"), infos.get("final_info", infos), infos
        ended = terminated | truncated
        if self.mode is AutoresetMode.DISABLED and ended.any():
            final_obs, final_infos = obs, infos
            obs, infos = self.envs.reset(options={"reset_mask": ended})
        return Transition(obs, rewards, terminated, truncated, None, infos, step_infos, final_infos, final_obs)

    def _with_dead_steps(self, obs: Array, rewards: Array, terminated: Any, truncated: Any, infos: Any) -> Transition:
        valid = ~self.resetting
        terminated, truncated = terminated & valid, truncated & valid
        self.resetting = terminated | truncated
        mask = None if valid.all() else valid
        return Transition(obs, rewards * valid, terminated, truncated, mask, infos, infos, infos, obs)


def overlaid(values: Array, infos: dict[str, Any], key: str, where: NDArray[np.bool_]) -> Array:
    """`values` [N, ...] with those that `infos[key]` gives, of the environments in `where`, in their place.

    Gymnasium says in `infos["_" + key]` which environments gave the entry: the rows of the others mean nothing.
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
