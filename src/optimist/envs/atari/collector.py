"""AtariCollector: acts for the slots that are ready while others are being stepped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from optimist.core.steps import Rollout
from optimist.cuda.acting import BatchActor
from optimist.cuda.device import pinned
from optimist.envs.atari.buffers import RESULT, SharedBuffers, lives_lost
from optimist.envs.atari.games import Slots
from optimist.rollout.collector import Collector, Columns
from optimist.rollout.stepper import Array

if TYPE_CHECKING:
    from optimist.envs.atari.vector import AtariVectorEnv

GPU_BATCH_SIZE = 32
"""Most slots of a batch on a GPU; fewer take as long."""
NO_SLOTS = np.empty(0, np.intp)


class AtariCollector(Collector):
    """Policy × AtariVectorEnv → Rollout [T, N], on the learner's device in memory allocated once.

    Slots with the fewest steps come first, so that all finish at about the same time. Every slot completes its T steps
    before the rollout is returned: no action is older than the last update. A rollout does not depend on the order in
    which slots become ready. It is valid until the next one is collected.
    """

    def __init__(self, *arguments: Any, graphs: bool = False, **keywords: Any) -> None:
        """`graphs`: act with CUDA graphs; the rest is as in Collector."""
        super().__init__(*arguments, **keywords)
        self.atari: AtariVectorEnv = self.envs.unwrapped  # type: ignore[assignment]
        self.buffers, self.group_bounds = self.atari.buffers, np.array(self.atari.group_bounds)
        num_envs, on_gpu = self.atari.num_envs, self.device.type == "cuda"
        self.host_obs = pinned(self.buffers.obs) if on_gpu else torch.from_numpy(self.buffers.obs)
        rows = self.num_steps * num_envs + 1  # the last is for padding
        self.rollout_obs = torch.zeros((rows, *self.host_obs.shape[1:]), dtype=torch.uint8, device=self.device)
        self.rollout_actions = torch.zeros(rows, dtype=torch.int64, device=self.device)
        # A CPU's results depend on the batch in their last digits, so its batches are the groups of the workers.
        self.whole_groups = not on_gpu
        self.batch_size = min(GPU_BATCH_SIZE, num_envs) if on_gpu else int(np.diff(self.group_bounds).max())
        self.actor = BatchActor(
            self.policy,
            self.generator,
            host_obs=self.host_obs,
            rollout_obs=self.rollout_obs,
            rollout_actions=self.rollout_actions,
            batch_size=self.batch_size,
            graphs=graphs,
        )

    def restart(self, seed: int) -> None:
        """Start new episodes everywhere; unfinished ones are discarded."""
        super().restart(seed)
        self._use_shared_obs()

    def collect(self, progress: float = 0.0) -> Rollout:
        """T steps of every slot under the current policy."""
        self.finished = []
        columns = AtariColumns(self._by_step(self.rollout_obs), self.atari.lives.copy())
        self.actor.start_rollout()
        try:
            self._fill(columns)
        except BaseException:  # leave no step and no batch in progress
            self.atari.drain()
            self.actor.cancel()
            raise
        columns.finish(life_loss_ends=self.atari.life_loss_ends)
        for t in range(self.num_steps):
            self._count(columns.rewards[t].astype(np.float64), columns.terminated[t] | columns.truncated[t])
        return self._rollout(columns, progress)

    def on_update_start(self) -> None:
        """Prepare the next episodes while the learner updates."""
        self.atari.pre_reset()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the state of `state_dict`."""
        super().load_state_dict(state)
        self._use_shared_obs()

    def _fill(self, columns: AtariColumns) -> None:
        """Step every slot T times."""
        num_envs, steps_done, submitted = len(self.obs), np.zeros(len(self.obs), np.int64), NO_SLOTS
        ready, left = np.ones(num_envs, np.bool_), num_envs * self.num_steps
        while left:
            if not len(submitted) and len(submitted := self._next_batch(ready, steps_done)):
                ready[submitted] = False
                self.actor.submit(submitted, steps_done[submitted] * num_envs + submitted)
            if len(submitted) and self.actor.is_ready():
                columns.add_actions(steps_done, submitted, self.atari.send(submitted, self.actor.result()))
                submitted = NO_SLOTS
                continue
            slots = self.atari.recv(self.actor.is_ready if len(submitted) else None)
            if len(slots):
                columns.add_results(steps_done, slots, self.buffers)
                steps_done[slots] += 1
                left -= len(slots)
                ready[slots] = steps_done[slots] < self.num_steps

    def _next_batch(self, ready: Array, steps_done: Array) -> Slots:
        """At most `batch_size` slots that wait for an action: those with the fewest steps."""
        if self.whole_groups:
            complete = np.flatnonzero(np.logical_and.reduceat(ready, self.group_bounds[:-1]))
            if not len(complete):
                return NO_SLOTS
            group = complete[steps_done[self.group_bounds[complete]].argmin()]
            return np.arange(self.group_bounds[group], self.group_bounds[group + 1])
        slots = np.flatnonzero(ready)
        if len(slots) <= self.batch_size:
            return slots
        return slots[steps_done[slots].argsort(kind="stable")[: self.batch_size]]

    def _by_step(self, rows: Tensor) -> Tensor:
        """[T·N + 1, ...] with the padding row last → [T, N, ...]."""
        return rows[:-1].view(self.num_steps, -1, *rows.shape[1:])

    def _use_shared_obs(self) -> None:
        """Keep the current observations in the shared buffers, which the device can read."""
        self.host_obs.copy_(torch.from_numpy(self.obs))
        self.obs = self.host_obs.numpy()

    def _stored_actions(self, columns: Columns) -> Tensor:
        """The actions to learn from: the selected ones, or the FIRE that replaced one, as configured."""
        assert isinstance(columns, AtariColumns)
        actions = self._by_step(self.rollout_actions)
        if self.config.forced_actions == "sampled" or not columns.overrides:
            return actions
        executed, overridden = (torch.from_numpy(rows).to(self.device) for rows in columns.executed_rows())
        return torch.where(overridden, executed, actions)


class AtariColumns(Columns):
    """The rows of a rollout, filled slot by slot."""

    def __init__(self, obs: Tensor, lives: Array) -> None:
        """`lives` [N] before the first step."""
        super().__init__(obs)
        self.lives = lives
        self.results = np.empty(self.shape, RESULT)
        self.overrides: list[tuple[Array, Slots, Array, Array]] = []  # steps, slots, executed actions, where replaced
        self.truncated_obs: dict[tuple[int, int], Array] = {}  # step, slot → last observation at a time limit

    def add_actions(self, steps: Array, slots: Slots, executed: tuple[Array, Array] | None) -> None:
        """Record the executed actions of these slots if some were replaced."""
        if executed is not None:
            self.overrides.append((steps[slots], slots, *executed))

    def add_results(self, steps: Array, slots: Slots, buffers: SharedBuffers) -> None:
        """Copy the results of these slots from the buffers."""
        results = self.results[steps[slots], slots] = buffers.results[slots]
        for slot in slots[results["truncated"] & ~results["terminated"]]:
            self.truncated_obs[int(steps[slot]), int(slot)] = buffers.final_obs[slot].copy()

    def finish(self, *, life_loss_ends: bool) -> None:
        """Fill the columns of Columns from the results; final observations in order of time, then slot."""
        results = self.results
        self.rewards[:], self.terminated[:] = results["reward"], results["terminated"]
        self.truncated[:] = results["truncated"] & ~results["terminated"]
        lives = np.concatenate([self.lives[None], results["lives"]])
        self.life_lost[:] = life_loss_ends & lives_lost(lives[:-1], lives[1:], self.terminated | self.truncated)
        self.final_obs = [self.truncated_obs[key][None] for key in sorted(self.truncated_obs)]

    def executed_rows(self) -> tuple[Array, Array]:
        """Actions [T, N] that replaced others, and where they did."""
        executed, overridden = np.zeros(self.shape, np.int64), np.zeros(self.shape, np.bool_)
        for steps, slots, actions, replaced in self.overrides:
            executed[steps, slots], overridden[steps, slots] = actions, replaced
        return executed, overridden

    def forced_rows(self) -> Array:
        """Where FIRE replaced the selected action, [T, N]."""
        return self.executed_rows()[1]
