"""LaneCollector: games in lanes; whoever has played is decided for, together with those who have played meanwhile."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from gymnasium.vector import VectorEnv
from torch import Tensor

from optimist.config import EnvConfig
from optimist.envs.atari.lane import Lane, Turns, lives_lost
from optimist.networks.policy import PolicyNetwork
from optimist.rollout.batch import Rollout
from optimist.rollout.collector import Collector, Columns
from optimist.rollout.decider import Decider
from optimist.rollout.stepper import Array

AT_ONCE = 32
"""Games that a GPU decides for at once, where so many have played; for fewer it takes as long."""


class LaneCollector(Collector):
    """Policy × lanes of games → Rollout [T, N], on the learner's device in memory allocated once.

    Some lanes play while others are decided for. Every lane finishes its T steps before the rollout is handed over, so
    that no action is older than the last update. What comes out does not depend on who is ready first. A rollout is
    valid until the next one is collected.
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
        self.lanes: list[Lane] = envs.unwrapped.lanes  # type: ignore[attr-defined]
        num_envs, pixels = envs.num_envs, envs.single_observation_space.shape
        on_gpu, largest = self.device.type == "cuda", max(lane.num_envs for lane in self.lanes)
        assert pixels is not None
        self.host_obs = torch.zeros((num_envs, *pixels), dtype=torch.uint8, pin_memory=on_gpu)
        rows = rollout_steps * num_envs + 1  # the last is nobody's
        self.rows = torch.zeros((rows, *pixels), dtype=torch.uint8, device=self.device)
        self.actions = torch.zeros(rows, dtype=torch.int64, device=self.device)
        # A CPU decides for one lane at a time: the last digits of its arithmetic depend on who else is there.
        self.at_once = max(largest, min(AT_ONCE, num_envs)) if on_gpu else largest
        self.lanes_at_once = self.at_once // largest if on_gpu else 1
        self.decider = Decider(
            policy,
            generator,
            host_obs=self.host_obs,
            rows=self.rows,
            actions=self.actions,
            at_once=self.at_once,
            graphs=graphs,
        )
        self.games = [np.arange(lane.columns.start, lane.columns.stop) for lane in self.lanes]

    def restart(self, seed: int) -> None:
        """Begin new games everywhere; those in play count for nothing."""
        super().restart(seed)
        self._keep_obs()

    def collect(self, progress: float = 0.0) -> Rollout:
        """T steps of every game under the current policy."""
        self.finished = []
        columns = LaneColumns(self._by_step(self.rows))
        lives: list[Array] = [lane.lives for lane in self.lanes]
        steps: list[list[Any]] = [[] for _ in self.lanes]
        turns = Turns(self.lanes)
        self.decider.begin()
        try:
            self._play(turns, steps, columns)
        finally:
            turns.abandon()  # after an error: whatever comes next, nobody is in the middle of a step
        for lane, before, told in zip(self.lanes, lives, steps, strict=True):
            columns.add_lane(lane, before, told)
        for t in range(self.num_steps):
            self._count(columns.rewards[t].astype(np.float64), columns.terminated[t] | columns.truncated[t])
        columns.sort()
        return self._rollout(columns, progress)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over the state of `state_dict`."""
        super().load_state_dict(state)
        self._keep_obs()

    def _play(self, turns: Turns, steps: list[list[Any]], columns: LaneColumns) -> None:
        """T steps of every lane; what they gave goes to `steps`, in the emulators' own words."""
        ready = list(range(len(self.lanes)))
        while ready or turns.underway:
            while ready:
                group, ready = ready[: self.lanes_at_once], ready[self.lanes_at_once :]
                self._move(turns, group, [len(steps[number]) for number in group], columns)
            for number, (obs, *told) in turns.arrived():
                self.obs[self.lanes[number].columns] = obs
                steps[number].append(told)
                if len(steps[number]) < self.num_steps:
                    ready.append(number)

    def _move(self, turns: Turns, group: list[int], times: list[int], columns: LaneColumns) -> None:
        """Decide for these lanes, and have them play."""
        games = [self.games[number] for number in group]
        rows = [of_lane + time * len(self.obs) for of_lane, time in zip(games, times, strict=True)]
        actions, first = self.decider.decide(np.concatenate(games), np.concatenate(rows)), 0
        for number, time in zip(group, times, strict=True):
            lane = self.lanes[number]
            turns.begin(number, actions[first : first + lane.num_envs])
            first += lane.num_envs
            if lane.executed is not None:
                columns.pressed.append((time, lane.columns, *lane.executed))

    def _by_step(self, rows: Tensor) -> Tensor:
        """[T·N + 1, ...], of which the last is nobody's → [T, N, ...]."""
        return rows[:-1].view(self.num_steps, -1, *rows.shape[1:])

    def _keep_obs(self) -> None:
        """From here on the current pictures lie in memory that the device can read."""
        self.host_obs.copy_(torch.from_numpy(self.obs))
        self.obs = self.host_obs.numpy()

    def _stored_actions(self, columns: Columns) -> Tensor:
        """The actions to learn from: executed ones where FIRE was pressed for the player."""
        assert isinstance(columns, LaneColumns)
        actions = self._by_step(self.actions)
        if not self.config.store_executed or not columns.pressed:
            return actions
        executed, overridden = (torch.from_numpy(rows).to(self.device) for rows in columns.executed_rows())
        return torch.where(overridden, executed, actions)


class LaneColumns(Columns):
    """The rows of a rollout while its lanes fill them, each in its own time."""

    def __init__(self, obs: Tensor) -> None:
        super().__init__(obs)
        self.pressed: list[tuple[int, slice, Array, Array]] = []  # time, lane, actions, and where they replaced others
        self.cut_off: list[tuple[int, int, Array]] = []  # time, first column, last pictures of games at a time limit

    def add_lane(self, lane: Lane, lives: Array, steps: list[list[Any]]) -> None:
        """What all steps of one lane gave, in its emulators' words; `lives` before the first."""
        columns, shape = lane.columns, (len(steps), lane.num_envs)
        rewards, terminated, truncated = (np.concatenate([step[i] for step in steps]).reshape(shape) for i in range(3))
        counts = np.stack([lives, *(told["lives"] for *_, told in steps)])
        lost = lives_lost(counts[:-1], counts[1:], terminated | truncated)
        truncated &= ~terminated
        self.rewards[:, columns], self.life_lost[:, columns] = rewards, lane.life_loss_ends & lost
        self.terminated[:, columns], self.truncated[:, columns] = terminated, truncated
        for t in np.flatnonzero(truncated.any(1)):
            self.cut_off.append((int(t), columns.start, steps[t][3]["final_obs"][truncated[t]]))

    def executed_rows(self) -> tuple[Array, Array]:
        """Actions [T, N] that replaced others, and where they did."""
        executed, overridden = np.zeros(self.shape, np.int64), np.zeros(self.shape, np.bool_)
        for t, columns, actions, replaced in self.pressed:
            executed[t, columns], overridden[t, columns] = actions, replaced
        return executed, overridden

    def sort(self) -> None:
        """Bring the last pictures of what was cut off into the order of time, then environment."""
        self.final_obs = [pictures for _, _, pictures in sorted(self.cut_off, key=lambda entry: entry[:2])]
