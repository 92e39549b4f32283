"""LaneCollector: while one lane of games plays, the moves of the others are decided; a Decider decides for one lane."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from gymnasium.vector import VectorEnv
from torch import Tensor

from optimist.config import EnvConfig
from optimist.cuda.graph import record
from optimist.networks.policy import PolicyNetwork
from optimist.rollout.batch import Rollout
from optimist.rollout.collector import Collector, Columns
from optimist.rollout.stepper import Array, Transition


class LaneCollector(Collector):
    """Policy × lanes of games → Rollout [T, N], on the learner's device in memory allocated once.

    Every lane finishes its T steps before the rollout is handed over, so that no action is older than the last update.
    A rollout is valid until the next one is collected.
    """

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
        graphs: bool = False,
    ) -> None:
        """`graphs`: decide by CUDA graphs."""
        super().__init__(envs, config, policy, rollout_steps, generator, device, evaluated=evaluated)
        self.lanes, num_envs = envs.unwrapped.lanes, envs.num_envs  # type: ignore[attr-defined]
        pixels, pinned = envs.single_observation_space.shape, self.device.type == "cuda"
        assert pixels is not None
        self.host_obs = torch.zeros((num_envs, *pixels), dtype=torch.uint8, pin_memory=pinned)
        self.host_actions = torch.zeros(num_envs, dtype=torch.int64, pin_memory=pinned)
        self.rows = torch.zeros((rollout_steps, num_envs, *pixels), dtype=torch.uint8, device=self.device)
        self.actions = torch.zeros((rollout_steps, num_envs), dtype=torch.int64, device=self.device)
        self.deciders = [Decider(self, lane.columns, graphs=graphs) for lane in self.lanes]

    def restart(self, seed: int) -> None:
        """Begin new games everywhere; those in play count for nothing."""
        super().restart(seed)
        self._keep_obs()

    def collect(self, progress: float = 0.0) -> Rollout:
        """T steps of every game under the current policy."""
        self.finished = []
        columns = LaneColumns(self.rows)
        for decider in self.deciders:
            decider.begin()
        for t in range(self.num_steps):
            for lane, decider in zip(self.lanes, self.deciders, strict=True):
                if t > 0:
                    self._receive(lane, t - 1, columns)
                lane.send(decider.decide())
        for lane in self.lanes:
            self._receive(lane, self.num_steps - 1, columns)
        for t in range(self.num_steps):
            self._count(columns.rewards[t].astype(np.float64), columns.terminated[t] | columns.truncated[t])
        return self._rollout(columns, progress)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over the state of `state_dict`."""
        super().load_state_dict(state)
        self._keep_obs()

    def _keep_obs(self) -> None:
        """From here on the current pictures lie in memory that the device can read."""
        self.host_obs.copy_(torch.from_numpy(self.obs))
        self.obs = self.host_obs.numpy()

    def _receive(self, lane: Any, t: int, columns: LaneColumns) -> None:
        obs, rewards, terminated, truncated, infos = lane.receive()
        self.obs[lane.columns] = obs
        final_obs = infos.get("final_obs")
        moved = Transition(obs, rewards, terminated, truncated, None, infos, infos, infos, final_obs)
        columns.add_lane(t, lane.columns, moved)

    def _stored_actions(self, columns: Columns) -> Tensor:
        """The actions to learn from: executed ones where FIRE was pressed for the player."""
        assert isinstance(columns, LaneColumns)
        if not self.config.store_executed or columns.executed_rows is None:
            return self.actions
        executed, overridden = (torch.from_numpy(rows).to(self.device) for rows in columns.executed_rows)
        return torch.where(overridden, executed, self.actions)


class LaneColumns(Columns):
    """The rows of a rollout while its lanes are being filled."""

    def __init__(self, obs: Tensor) -> None:
        super().__init__(obs)
        self.executed_rows: tuple[Array, Array] | None = None  # actions [T, N], and where they replaced others

    def add_lane(self, t: int, columns: slice, moved: Transition) -> None:
        """What a step of one lane gave."""
        truncated = moved.truncated & ~moved.terminated
        self.rewards[t, columns], self.terminated[t, columns] = moved.rewards, moved.terminated
        self.truncated[t, columns], self.life_lost[t, columns] = truncated, moved.life_lost
        if truncated.any():
            assert moved.final_obs is not None
            self.final_obs.append(moved.final_obs[truncated])
        if "executed" in moved.infos:
            if self.executed_rows is None:
                self.executed_rows = np.zeros(self.shape, np.int64), np.zeros(self.shape, np.bool_)
            self.executed_rows[0][t, columns] = moved.infos["executed"]
            self.executed_rows[1][t, columns] = moved.infos["_executed"]


class Decider:
    """The moves of one lane: its pictures go to the device and into the rollout, one action a game comes back.

    The eager path and the graph are the same work on the same tensors with the same random numbers.
    """

    def __init__(self, collector: LaneCollector, columns: slice, *, graphs: bool) -> None:
        self.policy, self.generator, self.graphs = collector.policy, collector.generator, graphs
        self.host_obs, self.host_actions = collector.host_obs[columns], collector.host_actions[columns]
        self.rows, self.actions = collector.rows[:, columns], collector.actions[:, columns]
        self.obs = torch.zeros_like(self.host_obs, device=collector.device)
        self.time = torch.zeros(1, dtype=torch.int64, device=collector.device)
        self.chosen = torch.zeros_like(self.host_actions, device=collector.device)
        self.recorded: list[torch.cuda.CUDAGraph] = []
        self.on_gpu = collector.device.type == "cuda"
        self.done = torch.cuda.Event() if graphs else None  # type: ignore[no-untyped-call]

    def begin(self) -> None:
        """The next decision is the first of a rollout."""
        if self.graphs and not self.recorded:
            self.recorded = [record(self._decide, generators=[self.generator]), record(self._note)]
        self.time.zero_()

    def decide(self) -> Array:
        """Actions for the pictures that lie in `host_obs`."""
        if self.done is not None:
            decide, note = self.recorded
            decide.replay()
            self.done.record()
            note.replay()  # while the host already reads the actions
            self.done.synchronize()
        else:
            self._decide()
            self._note()
            if self.on_gpu:
                torch.cuda.current_stream().synchronize()
        actions: Array = self.host_actions.numpy()
        return actions

    def _decide(self) -> None:
        self.obs.copy_(self.host_obs, non_blocking=True)
        self.chosen.copy_(self.policy.act(self.obs, self.generator))
        self.host_actions.copy_(self.chosen, non_blocking=True)

    def _note(self) -> None:
        self.rows.index_copy_(0, self.time, self.obs[None])
        self.actions.index_copy_(0, self.time, self.chosen[None])
        self.time.add_(1)
