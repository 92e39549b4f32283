"""Collector: steps the vector environment with the policy and fills a Rollout."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import gymnasium as gym
import numpy as np
import torch
from gymnasium.vector import AutoresetMode, VectorEnv
from torch import Tensor

from optimist.config import EnvConfig
from optimist.core.steps import Rollout
from optimist.errors import ConfigError, NonFiniteLoss
from optimist.networks.policy import PolicyNetwork
from optimist.rollout.stepper import Array, Transition, VectorStepper, overlaid, rows_of

MAX_ROWS = 16_384
"""Rows of one forward pass when a rollout is evaluated."""


@dataclass(frozen=True)
class EpisodeRecord:
    """A finished training episode, with raw rewards and the environment's own end."""

    raw_return: float
    length: int
    group: int
    goal: bool | None  # whether it reached the goal; None if the environment has none
    step: int  # environment steps of the run when it ended


class Collector:
    """Policy × environments → Rollout [T, N]; `finished` holds the episodes that ended in the last rollout."""

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
        """`evaluated`: whether the rollout holds log π_old and V of its steps, or zeros."""
        self.envs, self.config, self.policy, self.evaluated = envs, config, policy, evaluated
        self.num_steps, self.generator, self.device = rollout_steps, generator, torch.device(device)
        self.stepper = VectorStepper(envs)
        if config.truncation == "ignored" and self.stepper.mode is AutoresetMode.NEXT_STEP:
            raise ConfigError(
                f"env.truncation 'ignored' needs environments that reset within the step; {config.id} resets in the "
                "next one: use env.vectorization = 'sync'"
            )
        space = envs.single_action_space
        self.bounds = (space.low, space.high) if isinstance(space, gym.spaces.Box) else None
        self.obs: Array = np.empty(0)
        self.groups = np.zeros(envs.num_envs, np.int64)
        self.read_starts: Callable[[], Array] | None = getattr(envs.unwrapped, "episode_starts", None)
        self.starts: Array | None = None  # [N, k] what restores the start of each unfinished episode
        self.returns = np.zeros(envs.num_envs)
        self.lengths = np.zeros(envs.num_envs, np.int64)
        self.steps_done = 0
        self.finished: list[EpisodeRecord] = []

    def restart(self, seed: int) -> None:
        """Start new episodes everywhere and drop the unfinished ones."""
        self.obs, infos = self.stepper.reset(seed)
        if self.config.group_key and self.config.group_key not in infos:
            raise ConfigError(f"env.group_key '{self.config.group_key}' is not in the info of {self.config.id}'s reset")
        self.returns[:], self.lengths[:] = 0.0, 0
        self._read_groups(infos)
        self.starts = None if self.read_starts is None else self.read_starts()

    @property
    def collecting(self) -> bool:
        """Whether a rollout was started ahead of `collect`."""
        return False

    def on_update_start(self) -> None:
        """Prepare what can be prepared while the learner updates: here, nothing."""

    def close(self) -> None:
        """Stop what runs concurrently; the environments stay open."""

    def collect(self, progress: float = 0.0) -> Rollout:
        """T steps of every environment under the current policy."""
        self.finished = []
        obs = torch.from_numpy(self.obs)
        columns = Columns(obs.new_empty((self.num_steps, *obs.shape), device=self.device))
        for t in range(self.num_steps):
            columns.obs[t], columns.groups[t] = torch.from_numpy(self.obs), self.groups
            actions = self.policy.act(columns.obs[t], self.generator)
            executable: Array = actions.cpu().numpy()
            transition = self.stepper.step(executable if self.bounds is None else np.clip(executable, *self.bounds))
            columns.add(t, transition, actions)
            self._note_starts(columns, transition.ended)
            self._count(transition.rewards, transition.ended, transition.valid, transition.final_infos.get("goal"))
            self.obs = transition.obs
            if self.config.group_key:
                self._read_groups(transition.infos)
        return self._rollout(columns, progress)

    def state_dict(self) -> dict[str, Any]:
        """The unfinished episodes, as far as the collector knows them, and the generator."""
        return {
            "obs": self.obs,
            "groups": self.groups,
            "returns": self.returns,
            "lengths": self.lengths,
            "resetting": self.stepper.resetting,
            "steps_done": self.steps_done,
            "starts": self.starts,
            "generator": self.generator.get_state(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Load the result of `state_dict`."""
        self.obs, self.groups = state["obs"].copy(), state["groups"].copy()
        self.returns, self.lengths = state["returns"].copy(), state["lengths"].copy()
        self.stepper.resetting, self.steps_done = state["resetting"].copy(), state["steps_done"]
        self.generator.set_state(state["generator"])
        if self.read_starts is not None:
            saved = state.get("starts")  # checkpoints of earlier versions have none
            self.starts = np.full_like(self.read_starts(), -1) if saved is None else saved.copy()

    def _note_starts(self, columns: Columns, ended: Array) -> None:
        """Keep the starts of the episodes that ended, and read those of the new ones."""
        if self.starts is not None and self.read_starts is not None and ended.any():
            columns.starts.append(self.starts[ended])
            self.starts = np.where(ended[:, None], self.read_starts(), self.starts)

    def _read_groups(self, infos: dict[str, Any]) -> None:
        if self.config.group_key:
            all_envs = np.ones(len(self.groups), bool)
            self.groups = overlaid(self.groups, infos, self.config.group_key, all_envs)

    def _count(self, rewards: Array, ended: Array, valid: Array | None = None, goals: Array | None = None) -> None:
        """Add a step to the unfinished episodes and record those that ended."""
        self.returns += rewards
        self.lengths += 1 if valid is None else valid
        self.steps_done += len(self.returns)
        for n in np.flatnonzero(ended):
            goal = None if goals is None else bool(goals[n])
            episode = float(self.returns[n]), int(self.lengths[n]), int(self.groups[n])
            self.finished.append(EpisodeRecord(*episode, goal, self.steps_done))
            self.returns[n], self.lengths[n] = 0.0, 0

    @torch.no_grad()
    def _rollout(self, columns: Columns, progress: float) -> Rollout:
        """Tensors on the learner's device, with the values that follow each step."""
        self._check_finite(columns)
        actions = self._stored_actions(columns)
        logp, values = self._evaluated(columns.obs, actions)
        raw_rewards = torch.from_numpy(columns.rewards)
        rewards = self.config.reward_scale * (raw_rewards.sign() if self.config.clip_rewards else raw_rewards)
        return Rollout(
            obs=columns.obs,
            actions=actions,
            rewards=rewards.to(self.device),
            logp=logp,
            raw_rewards=raw_rewards,
            episode_ends=torch.from_numpy(columns.terminated | columns.truncated),
            groups=torch.from_numpy(columns.groups) if self.config.group_key else None,
            forced=torch.from_numpy(columns.forced_rows()).to(self.device) if self._masks else None,
            starts=torch.from_numpy(np.concatenate(columns.starts)) if columns.starts else None,
            progress=progress,
            values=values,
            **self._ends(columns, values),
        )

    def _ends(self, columns: Columns, values: Tensor) -> dict[str, Any]:
        """Where episodes end for the learner, and the value that follows each step."""
        to = self.device
        truncated, valid = torch.from_numpy(columns.truncated).to(to), torch.from_numpy(columns.valid).to(to)
        dones = torch.from_numpy(columns.terminated | columns.life_lost).to(to)  # a lost life ends it for the learner
        bootstraps, final_obs = torch.zeros_like(values), None
        if self.config.truncation == "bootstrap" and columns.final_obs:
            final_obs = torch.from_numpy(np.concatenate(columns.final_obs)).to(to)
            bootstraps[truncated] = self._value(final_obs)
        if self.config.truncation != "ignored":
            dones = dones | truncated
        following = torch.cat([values[1:], self._value(torch.from_numpy(self.obs).to(to))[None]])
        return {
            "dones": dones | ~valid if columns.resets else dones,  # a reset step leads nowhere
            "valid": valid if columns.resets else None,
            "bootstraps": bootstraps,
            "next_values": torch.where(dones, bootstraps, following),
            "truncated": None if final_obs is None else truncated,
            "final_obs": final_obs,
        }

    def _check_finite(self, columns: Columns) -> None:
        """Raise where an environment gave nan or infinity, with the environment and the step."""
        if columns.obs.is_floating_point():
            self._require_finite("an observation", torch.isfinite(columns.obs).flatten(2).all(2).cpu().numpy())
        self._require_finite("a reward", np.isfinite(columns.rewards))

    def _require_finite(self, what: str, finite: Array) -> None:
        if not finite.all():
            t, n = np.argwhere(~finite)[0].tolist()
            step = self.steps_done - finite.size + t * finite.shape[1] + n
            raise NonFiniteLoss(
                f"{self.config.id} gave {what} that is nan or infinite: environment {n}, step {step:,}; repair the "
                "environment, earlier checkpoints are intact"
            )

    @property
    def _masks(self) -> bool:
        return self.config.forced_actions == "masked"

    def _stored_actions(self, columns: Columns) -> Tensor:
        """The actions to learn from: the executed ones where the environment overrode some."""
        actions = torch.stack(columns.actions)
        for t, row in columns.executed.items():
            if self.config.forced_actions != "sampled":
                actions[t] = torch.from_numpy(row)
        return actions

    def _evaluated(self, obs: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
        """log π_old and V of every step, [T, N]: cheaper for a whole rollout at once than step by step."""
        if not self.evaluated:
            zeros = torch.zeros(obs.shape[:2], device=obs.device)
            return zeros, zeros
        pieces = zip(*(torch.split(rows.flatten(0, 1), MAX_ROWS) for rows in (obs, actions)), strict=True)
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
        self.terminated, self.truncated, self.life_lost = (np.zeros(shape, bool) for _ in range(3))
        self.valid, self.resets = np.ones(shape, bool), False
        self.actions: list[Tensor] = []
        self.executed: dict[int, Array] = {}  # t → actions [N, ...], where an environment overrode some
        self.forced: dict[int, Array] = {}  # t → which of them the policy did not choose [N]
        self.final_obs: list[Array] = []  # of truncated episodes, in order of time, then environment
        self.starts: list[Array] = []  # of finished episodes, in the same order

    def add(self, t: int, transition: Transition, actions: Tensor) -> None:
        """Add one step of all environments."""
        truncated = transition.truncated & ~transition.terminated  # a termination at the time limit is none
        self.rewards[t], self.terminated[t], self.truncated[t] = transition.rewards, transition.terminated, truncated
        if "life_lost" in transition.step_infos:
            self.life_lost[t] = transition.life_lost
        if transition.valid is not None:
            self.valid[t], self.resets = transition.valid, True
        if truncated.any():
            assert transition.final_obs is not None
            self.final_obs.append(rows_of(transition.final_obs, truncated))
        self.actions.append(actions)
        if "executed" in transition.step_infos or "executed" in transition.final_infos:
            self.executed[t] = transition.executed(actions.cpu().numpy())
            self.forced[t] = transition.forced(actions.cpu().numpy())

    def forced_rows(self) -> Array:
        """Where the policy did not choose the action, [T, N]."""
        forced = np.zeros(self.shape, np.bool_)
        for t, row in self.forced.items():
            forced[t] = row
        return forced


@runtime_checkable
class AsyncVectorEnv(Protocol):
    """A vector environment whose steps finish out of order, with the collector that steps it.

    Gymnasium's class of that name is another one: it waits for all environments in every step.
    """

    collector_class: Callable[..., Collector]
    """Takes Collector's arguments and `graphs`, whether to act with CUDA graphs."""
