"""Collector: steps the vector environment with the policy and fills a Rollout."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from gymnasium.vector import AutoresetMode, VectorEnv
from torch import Tensor

from optimist.config import EnvConfig
from optimist.errors import ConfigError, NonFiniteLoss
from optimist.networks.policy import PolicyNetwork
from optimist.rollout.batch import Rollout
from optimist.rollout.stepper import Array, Transition, VectorStepper, overlaid, rows_of

MOST_ROWS = 16_384
"""Rows that go through the network at once when a rollout is evaluated."""


@dataclass(frozen=True)
class EpisodeRecord:
    """A finished training episode, as the game counts it."""

    raw_return: float
    length: int
    group: int
    goal: bool | None  # whether it reached the goal; None where the environment has none
    step: int  # environment steps of the run when it ended


class Collector:
    """Policy × environments → Rollout [T, N]; the finished episodes of the last rollout are in `finished`."""

    def __init__(
        self,
        envs: VectorEnv[Any, Any, Any],
        config: EnvConfig,
        policy: PolicyNetwork,
        rollout_steps: int,
        generator: torch.Generator,
        device: torch.device | str = "cpu",
        *,
        evaluated: bool = True,
    ) -> None:
        """`evaluated`: whether a rollout holds log π_old and V of its steps; zeros where nobody reads them."""
        self.envs, self.config, self.policy, self.evaluated = envs, config, policy, evaluated
        self.num_steps, self.generator, self.device = rollout_steps, generator, torch.device(device)
        self.stepper = VectorStepper(envs)
        if config.truncation == "ignored" and self.stepper.mode is AutoresetMode.NEXT_STEP:
            raise ConfigError(
                f"env.truncation 'ignored' needs environments that reset within the step, and {config.id} takes one "
                "more: use env.vectorization = 'sync'"
            )
        self.bounds = _action_bounds(envs.single_action_space)
        self.obs: Array = np.empty(0)
        self.groups = np.zeros(envs.num_envs, np.int64)
        self.returns = np.zeros(envs.num_envs)
        self.lengths = np.zeros(envs.num_envs, np.int64)
        self.steps_done = 0
        self.finished: list[EpisodeRecord] = []

    def restart(self, seed: int) -> None:
        """Begin new episodes everywhere; those in play count for nothing."""
        self.obs, infos = self.stepper.reset(seed)
        if self.config.group_key and self.config.group_key not in infos:
            raise ConfigError(f"env.group_key '{self.config.group_key}' is not in the info of {self.config.id}'s reset")
        self.returns[:], self.lengths[:] = 0.0, 0
        self._read_groups(infos)

    @property
    def underway(self) -> bool:
        """Whether a rollout is being collected between two calls of `collect`: never, it is done when asked for."""
        return False

    def begin(self) -> None:
        """The learner is about to learn from the last rollout: a collector that works beside it begins the next."""

    def close(self) -> None:
        """No more rollouts: what works beside the learner ends. The environments are their maker's to close."""

    def collect(self, progress: float = 0.0) -> Rollout:
        """T steps of every environment under the current policy."""
        self.finished = []
        columns = Columns(self._rows())
        for t in range(self.num_steps):
            columns.obs[t], columns.groups[t] = torch.from_numpy(self.obs), self.groups
            actions = self.policy.act(columns.obs[t], self.generator)
            moved = self.stepper.step(self._executable(actions))
            columns.add(t, moved, actions)
            self._count(moved.rewards, moved.ended, moved.valid, moved.final_infos.get("goal"))
            self.obs = moved.obs
            self._read_groups(moved.infos)
        return self._rollout(columns, progress)

    def state_dict(self) -> dict[str, Any]:
        """Where the episodes in play stand, as far as the collector knows."""
        return {
            "obs": self.obs,
            "groups": self.groups,
            "returns": self.returns,
            "lengths": self.lengths,
            "resetting": self.stepper.resetting,
            "steps_done": self.steps_done,
            "generator": self.generator.get_state(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over the state of `state_dict`."""
        self.obs, self.groups = state["obs"].copy(), state["groups"].copy()
        self.returns, self.lengths = state["returns"].copy(), state["lengths"].copy()
        self.stepper.resetting, self.steps_done = state["resetting"].copy(), state["steps_done"]
        self.generator.set_state(state["generator"])

    def _executable(self, actions: Tensor) -> Array:
        """Actions as the environments take them: bounded ones clipped, the stored ones are not."""
        array: Array = actions.cpu().numpy()
        return array if self.bounds is None else np.clip(array, *self.bounds)

    def _read_groups(self, infos: dict[str, Any]) -> None:
        if self.config.group_key:
            everyone = np.ones(len(self.groups), bool)
            self.groups = overlaid(self.groups, infos, self.config.group_key, everyone)

    def _rows(self) -> Tensor:
        """Room for the observations of a rollout, [T, N, ...], on the learner's device."""
        shape, dtype = (self.num_steps, *self.obs.shape), torch.from_numpy(self.obs).dtype
        return torch.empty(shape, dtype=dtype, device=self.device)

    def _count(self, rewards: Array, ended: Array, valid: Array | None = None, goals: Array | None = None) -> None:
        """Raw return and length of the episodes in play; those that ended are recorded."""
        self.returns += rewards
        self.lengths += 1 if valid is None else valid
        self.steps_done += len(self.returns)
        if not ended.any():
            return
        for n in np.flatnonzero(ended):
            goal = None if goals is None else bool(goals[n])
            record = EpisodeRecord(
                float(self.returns[n]), int(self.lengths[n]), int(self.groups[n]), goal, self.steps_done
            )
            self.finished.append(record)
        self.returns[ended], self.lengths[ended] = 0.0, 0

    @torch.no_grad()
    def _rollout(self, columns: Columns, progress: float) -> Rollout:
        """Tensors on the learner's device, with the values that follow each step."""
        to = self.device
        obs, actions = columns.obs, self._stored_actions(columns)
        if obs.is_floating_point() and not bool(torch.isfinite(obs).all()):
            raise NonFiniteLoss(f"{self.config.id} gave an observation that is nan or infinite")
        if not np.isfinite(columns.rewards).all():
            raise NonFiniteLoss(f"{self.config.id} gave a reward that is nan or infinite")
        logp, values = self._evaluated(obs, actions)
        terminated, truncated = (torch.from_numpy(c).to(to) for c in (columns.terminated, columns.truncated))
        terminated = terminated | torch.from_numpy(columns.life_lost).to(to)  # for the learner a lost life is an end
        next_values = torch.cat([values[1:], self._value(torch.from_numpy(self.obs).to(to))[None]])
        dones, bootstraps = terminated | truncated, torch.zeros_like(values)
        final = None
        if self.config.truncation == "bootstrap" and columns.final_obs:
            final = torch.from_numpy(np.concatenate(columns.final_obs)).to(to)
            bootstraps[truncated] = self._value(final)
        if self.config.truncation == "ignored":
            dones = terminated
        next_values = torch.where(dones, bootstraps, next_values)
        valid = None
        if columns.dead:
            valid = torch.from_numpy(columns.valid).to(to)
            dones = dones | ~valid  # nothing leads from a dead step anywhere
        raw_rewards = torch.from_numpy(columns.rewards)
        rewards = self.config.reward_scale * (raw_rewards.sign() if self.config.clip_rewards else raw_rewards)
        return Rollout(
            obs=obs,
            actions=actions,
            rewards=rewards.to(to),
            logp=logp,
            dones=dones,
            raw_rewards=raw_rewards,
            episode_ends=torch.from_numpy(columns.terminated | columns.truncated),
            bootstraps=bootstraps,
            valid=valid,
            groups=torch.from_numpy(columns.groups) if self.config.group_key else None,
            progress=progress,
            values=values,
            next_values=next_values,
            truncated=None if final is None else truncated,
            final_obs=final,
        )

    def _stored_actions(self, columns: Columns) -> Tensor:
        """The actions to learn from: executed ones where the environment overrode some."""
        actions = torch.stack(columns.actions)
        if self.config.store_executed:
            for t, row in columns.executed.items():
                actions[t] = torch.from_numpy(row)
        return actions

    def _evaluated(self, obs: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
        """log π_old and V of every step, [T, N]: cheaper for a whole rollout at once than step by step."""
        if not self.evaluated:
            nothing = torch.zeros(obs.shape[:2], device=obs.device)
            return nothing, nothing
        pieces = zip(
            torch.split(obs.flatten(0, 1), MOST_ROWS), torch.split(actions.flatten(0, 1), MOST_ROWS), strict=True
        )
        both = [self.policy.evaluate(*piece)[::2] for piece in pieces]
        logp, values = (torch.cat(column).view(obs.shape[:2]) for column in zip(*both, strict=True))
        return logp, values

    def _value(self, obs: Tensor) -> Tensor:
        return self.policy.value(obs) if self.evaluated else torch.zeros(len(obs), device=obs.device)


class Columns:
    """The rows of a rollout while it is being filled."""

    def __init__(self, obs: Tensor) -> None:
        shape = self.shape = tuple(obs.shape[:2])
        self.obs = obs
        self.rewards, self.groups = np.empty(shape, np.float32), np.empty(shape, np.int64)
        self.terminated, self.truncated = np.empty(shape, bool), np.empty(shape, bool)
        self.life_lost = np.empty(shape, bool)
        self.valid, self.dead = np.ones(shape, bool), False
        self.actions: list[Tensor] = []
        self.executed: dict[int, Array] = {}  # t → actions [N, ...], where an environment overrode some
        self.final_obs: list[Array] = []  # of truncated episodes, in order of time, then environment

    def add(self, t: int, moved: Transition, actions: Tensor) -> None:
        """What a step of all environments gave."""
        truncated = moved.truncated & ~moved.terminated  # a real end at the time limit is a real end
        self.rewards[t], self.terminated[t], self.truncated[t] = moved.rewards, moved.terminated, truncated
        self.life_lost[t] = moved.life_lost
        if moved.valid is not None:
            self.valid[t], self.dead = moved.valid, True
        if truncated.any():
            assert moved.final_obs is not None
            self.final_obs.append(rows_of(moved.final_obs, truncated))
        self.actions.append(actions)
        if moved.tells_executed:
            self.executed[t] = moved.executed(actions.cpu().numpy())


def _action_bounds(space: gym.Space[Any]) -> tuple[Array, Array] | None:
    return (space.low, space.high) if isinstance(space, gym.spaces.Box) else None
