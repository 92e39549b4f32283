"""DelayedRewards: rewards are held back and paid together every K steps, the rest when the episode ends."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
from numpy.typing import NDArray

Array = NDArray[Any]


class DelayedRewards(VectorWrapper):
    """A vector environment whose rewards come K steps at a time; an episode's return stays what it was.

    Between payments the reward is 0, and nothing in the observation tells how much is held back (as in the delayed
    MuJoCo tasks of Oh et al., 2018).
    """

    def __init__(self, envs: VectorEnv[Any, Any, Any], delay: int) -> None:
        super().__init__(envs)
        self.delay = delay
        self.held = np.zeros(envs.num_envs)  # reward not paid yet
        self.waited = np.zeros(envs.num_envs, np.int64)  # steps since the last payment
        self.resetting = np.zeros(envs.num_envs, bool)  # whose next step only resets
        self.dead_steps = envs.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin episodes anew, all or those in `options["reset_mask"]`; what was held back for them is gone."""
        begun = slice(None) if options is None or "reset_mask" not in options else options["reset_mask"]
        self.held[begun], self.waited[begun], self.resetting[begun] = 0.0, 0, False
        return self.env.reset(seed=seed, options=options)

    def step(self, actions: Any) -> tuple[Any, Array, Array, Array, dict[str, Any]]:
        """One step; the reward is what falls due."""
        obs, rewards, terminated, truncated, infos = self.env.step(actions)
        playing = ~self.resetting
        self.held += np.where(playing, rewards, 0.0)
        self.waited += playing
        ended = (terminated | truncated) & playing
        due = ended | infos.get("life_lost", False) | (self.waited >= self.delay)  # for the learner both are ends
        paid = np.where(due, self.held, 0.0)
        self.held[due], self.waited[due] = 0.0, 0
        if self.dead_steps:
            self.resetting = ended
        return obs, paid, terminated, truncated, infos

    def state_dict(self) -> dict[str, Any]:
        """What is held back, and since when."""
        return {"held": self.held.copy(), "waited": self.waited.copy(), "resetting": self.resetting.copy()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over the state of `state_dict`."""
        self.held, self.waited = state["held"].copy(), state["waited"].copy()
        self.resetting = state["resetting"].copy()
