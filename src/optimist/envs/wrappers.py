"""DelayedRewards, StepsLeft, and the state of environments behind them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from gymnasium.spaces import Box
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from optimist.errors import ConfigError

Array = NDArray[Any]
AnyVectorEnv = VectorEnv[Any, Any, Any]


class DelayedRewards(VectorWrapper):
    """Pay rewards every `delay` steps and at the end of an episode, whose return stays the same.

    Between payments the reward is 0, and the observation does not show the amount that is held back, as in the delayed
    MuJoCo tasks of Oh et al. (2018).
    """

    key = "delay"

    def __init__(self, envs: AnyVectorEnv, delay: int) -> None:
        super().__init__(envs)
        self.delay = delay
        self.held = np.zeros(envs.num_envs)  # reward not paid yet
        self.waited = np.zeros(envs.num_envs, np.int64)  # steps since the last payment
        self.resetting = np.zeros(envs.num_envs, bool)  # the next step only resets
        self.reset_steps = envs.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start new episodes, all or those in `options["reset_mask"]`, and drop what was held back for them."""
        started = slice(None) if options is None or "reset_mask" not in options else options["reset_mask"]
        self.held[started], self.waited[started], self.resetting[started] = 0.0, 0, False
        return self.env.reset(seed=seed, options=options)

    def step(self, actions: Any) -> tuple[Any, Array, Array, Array, dict[str, Any]]:
        """One step; the reward is what is due."""
        obs, rewards, terminated, truncated, infos = self.env.step(actions)
        playing = ~self.resetting
        self.held += np.where(playing, rewards, 0.0)
        self.waited += playing
        ended = (terminated | truncated) & playing
        due = ended | infos.get("life_lost", False) | (self.waited >= self.delay)  # both are ends for the learner
        paid = np.where(due, self.held, 0.0)
        self.held[due], self.waited[due] = 0.0, 0
        if self.reset_steps:
            self.resetting = ended
        return obs, paid, terminated, truncated, infos

    def state_dict(self) -> dict[str, Any]:
        """Rewards held back, and since when."""
        return {"held": self.held.copy(), "waited": self.waited.copy(), "resetting": self.resetting.copy()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Load the result of `state_dict`."""
        self.held, self.waited = state["held"].copy(), state["waited"].copy()
        self.resetting = state["resetting"].copy()


class StepsLeft(VectorWrapper):
    """Append the share of steps left before the time limit to vector observations, as an entry for the critic alone.

    Where returns end at a time limit, the value of a state depends on the time left (Pardo et al., 2018).
    """

    key = "steps"

    def __init__(self, envs: AnyVectorEnv) -> None:
        super().__init__(envs)
        self.limit, space = longest_episode(envs), envs.single_observation_space
        if not (isinstance(space, Box) and len(space.shape) == 1):
            raise ConfigError(f"env.steps_left needs observations that are vectors, got {space}: turn it off")
        if not self.limit:
            raise ConfigError("env.steps_left needs a time limit: set env.kwargs.max_episode_steps, or turn it off")
        low, high = np.append(space.low, 0.0), np.append(space.high, 1.0)
        self.single_observation_space = Box(low.astype(np.float32), high.astype(np.float32))
        self.observation_space = batch_space(self.single_observation_space, envs.num_envs)
        self.metadata = {**envs.metadata, "privileged": envs.metadata.get("privileged", 0) + 1}
        self.elapsed = np.zeros(envs.num_envs, np.int64)
        self.resetting = np.zeros(envs.num_envs, bool)  # the next step only resets
        self.mode = envs.metadata["autoreset_mode"]

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Start new episodes, all or those in `options["reset_mask"]`."""
        started = slice(None) if options is None or "reset_mask" not in options else options["reset_mask"]
        self.elapsed[started], self.resetting[started] = 0, False
        obs, infos = self.env.reset(seed=seed, options=options)
        return self._extended(obs), infos

    def step(self, actions: Any) -> tuple[Any, Array, Array, Array, dict[str, Any]]:
        """One step, with the steps left after it."""
        obs, rewards, terminated, truncated, infos = self.env.step(actions)
        ended = terminated | truncated
        self.elapsed = np.where(self.resetting, 0, self.elapsed + 1)
        if self.mode is AutoresetMode.SAME_STEP and ended.any():
            final_obs = np.zeros_like(obs)
            final_obs[ended] = np.stack(list(infos["final_obs"][ended]))  # of an array of objects too
            infos = {**infos, "final_obs": self._extended(final_obs)}
            self.elapsed[ended] = 0
        if self.mode is AutoresetMode.NEXT_STEP:
            self.resetting = ended & ~self.resetting
        return self._extended(obs), rewards, terminated, truncated, infos

    def state_dict(self) -> dict[str, Any]:
        """Steps done in each unfinished episode."""
        return {"elapsed": self.elapsed.copy(), "resetting": self.resetting.copy()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Load the result of `state_dict`."""
        self.elapsed, self.resetting = state["elapsed"].copy(), state["resetting"].copy()

    def _extended(self, obs: Array) -> Array:
        left = 1.0 - self.elapsed / self.limit
        return np.concatenate([obs, left[:, None]], axis=1, dtype=np.float32)


def can_save_state(envs: AnyVectorEnv) -> bool:
    """Whether the environments save and restore their exact state (`state_dict`, `load_state_dict`)."""
    return all(callable(getattr(envs.unwrapped, name, None)) for name in ("state_dict", "load_state_dict"))


def saved_state(envs: AnyVectorEnv) -> Any:
    """The exact state of environments that can save it, and of our wrappers around them."""
    state = envs.unwrapped.state_dict()  # type: ignore[attr-defined]
    own = {wrapper.key: wrapper.state_dict() for wrapper in _wrappers(envs)}
    return {"envs": state, **own} if own else state


def restore_state(envs: AnyVectorEnv, state: Any) -> None:
    """Load the result of `saved_state`."""
    wrappers = list(_wrappers(envs))
    for wrapper in wrappers:
        wrapper.load_state_dict(state[wrapper.key])
    envs.unwrapped.load_state_dict(state["envs"] if wrappers else state)  # type: ignore[attr-defined]


def longest_episode(envs: AnyVectorEnv) -> int:
    """Steps of the longest possible episode if the environments state it, else 0."""
    own = getattr(envs.unwrapped, "longest_episode", None)
    return own or (envs.spec and envs.spec.max_episode_steps) or 0


def _wrappers(envs: AnyVectorEnv) -> Iterator[DelayedRewards | StepsLeft]:
    """Our wrappers with a state, from the outermost to the innermost."""
    while isinstance(envs, VectorWrapper):
        if isinstance(envs, DelayedRewards | StepsLeft):
            yield envs
        envs = envs.env
