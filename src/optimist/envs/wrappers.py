"""DelayedRewards, and the state of environments behind wrappers."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
from numpy.typing import NDArray

Array = NDArray[Any]
AnyVectorEnv = VectorEnv[Any, Any, Any]


class DelayedRewards(VectorWrapper):
    """Pay rewards every `delay` steps and at the end of an episode, whose return stays the same.

    Between payments the reward is 0, and the observation does not show the amount that is held back, as in the delayed
    MuJoCo tasks of Oh et al. (2018).
    """

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


def can_save_state(envs: AnyVectorEnv) -> bool:
    """Whether the environments save and restore their exact state (`state_dict`, `load_state_dict`)."""
    return all(callable(getattr(envs.unwrapped, name, None)) for name in ("state_dict", "load_state_dict"))


def saved_state(envs: AnyVectorEnv) -> Any:
    """The exact state of environments that can save it, with rewards held back."""
    state = envs.unwrapped.state_dict()  # type: ignore[attr-defined]
    return {"envs": state, "delay": envs.state_dict()} if isinstance(envs, DelayedRewards) else state


def restore_state(envs: AnyVectorEnv, state: Any) -> None:
    """Load the result of `saved_state`."""
    if isinstance(envs, DelayedRewards):
        envs.load_state_dict(state["delay"])
        state = state["envs"]
    envs.unwrapped.load_state_dict(state)  # type: ignore[attr-defined]


def longest_episode(envs: AnyVectorEnv) -> int:
    """Steps of the longest possible episode if the environments state it, else 0."""
    own = getattr(envs.unwrapped, "longest_episode", None)
    return own or (envs.spec and envs.spec.max_episode_steps) or 0
