"""ToyVectorEnv: a vector environment that counts, in any autoreset mode, so that every transition is identifiable."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space


def episode_length(env: int, episode: int) -> int:
    """Steps of an episode: 1 to 5, different for each environment and episode."""
    return 1 + (2 * env + 3 * episode) % 5


def terminates(env: int, episode: int) -> bool:
    """Whether the episode ends as terminated; the others are truncated."""
    return (env + episode) % 2 == 0


def step_reward(env: int, episode: int, step: int) -> float:
    """Reward of the step taken at observation (env, episode, step); for small numbers all differ."""
    return float(step + 1) + 0.1 * env + 0.001 * episode


def episode_return(env: int, episode: int) -> float:
    return sum(step_reward(env, episode, step) for step in range(episode_length(env, episode)))


class ToyVectorEnv(VectorEnv):
    """Observation float32 [N, 3] = (env, episode, step); actions Discrete(2), stored in `taken` and otherwise ignored.

    Ends alternate between terminated and truncated. In every mode `goal` (= terminated) comes with the last step of an
    episode: in infos, or in infos["final_info"] for SAME_STEP. The reset step of NEXT_STEP pays `reset_reward`, 0 as in
    Gymnasium or an amount that must not be used. `object_final_obs` gives `final_obs` as an object array with None
    where nothing ended, as SyncVectorEnv does, instead of a full one.
    """

    def __init__(
        self,
        num_envs: int = 3,
        autoreset_mode: AutoresetMode = AutoresetMode.SAME_STEP,
        reset_reward: float = 0.0,
        object_final_obs: bool = False,
    ) -> None:
        self.num_envs = num_envs
        self.autoreset_mode = autoreset_mode
        self.metadata = {"render_modes": [], "autoreset_mode": autoreset_mode}
        self.reset_reward, self.object_final_obs = reset_reward, object_final_obs
        self.single_observation_space = spaces.Box(0.0, np.inf, (3,), np.float32)
        self.single_action_space = spaces.Discrete(2)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.episode = np.full(num_envs, -1)  # the first reset starts episode 0
        self.elapsed = np.zeros(num_envs, dtype=np.int64)
        self.ended = np.ones(num_envs, dtype=np.bool_)
        self.taken: dict[tuple[int, int, int], int] = {}

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        mask = np.ones(self.num_envs, dtype=np.bool_) if not options else options["reset_mask"]
        self._start_episodes(mask)
        return self._observe(), {}

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        assert self.action_space.contains(np.asarray(actions)), actions
        assert (self.episode >= 0).all(), "step before reset"
        rewards = np.zeros(self.num_envs)
        terminated = np.zeros(self.num_envs, dtype=np.bool_)
        truncated = np.zeros(self.num_envs, dtype=np.bool_)
        resetting = self.ended.copy()
        if self.autoreset_mode is AutoresetMode.DISABLED:
            assert not resetting.any(), f"environments {np.flatnonzero(resetting)} have ended and were not reset"
        for env in np.flatnonzero(~resetting):
            episode, step = int(self.episode[env]), int(self.elapsed[env])
            self.taken[int(env), episode, step] = int(actions[env])
            rewards[env] = step_reward(int(env), episode, step)
            self.elapsed[env] += 1
            if self.elapsed[env] == episode_length(int(env), episode):
                (terminated if terminates(int(env), episode) else truncated)[env] = True
        if resetting.any():
            rewards[resetting] = self.reset_reward
            self._start_episodes(resetting)
        self.ended = terminated | truncated
        infos = self._end_infos(terminated) if self.ended.any() else {}
        if self.ended.any() and self.autoreset_mode is AutoresetMode.SAME_STEP:
            self._start_episodes(self.ended)
        return self._observe(), rewards, terminated, truncated, infos

    def _end_infos(self, goal: np.ndarray) -> dict[str, Any]:
        ended = self.ended.copy()
        extras = {"goal": goal.copy(), "_goal": ended}
        if self.autoreset_mode is not AutoresetMode.SAME_STEP:
            return extras
        final_obs = self._observe()
        if self.object_final_obs:
            rows, final_obs = final_obs, np.full(self.num_envs, None, dtype=object)
            for env in np.flatnonzero(ended):
                final_obs[env] = rows[env]
        return {"final_obs": final_obs, "_final_obs": ended, "final_info": extras, "_final_info": ended.copy()}

    def _start_episodes(self, mask: np.ndarray) -> None:
        self.episode[mask] += 1
        self.elapsed[mask] = 0
        self.ended = self.ended & ~mask

    def _observe(self) -> np.ndarray:
        return np.stack([np.arange(self.num_envs), self.episode, self.elapsed], axis=1).astype(np.float32)
