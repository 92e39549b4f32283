"""LaneCollector: every lane of games has a thread that decides, plays and writes down; none waits for another."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import nullcontext
from threading import Event
from typing import Any

import numpy as np
import torch
from gymnasium.vector import VectorEnv
from torch import Tensor

from optimist.config import EnvConfig
from optimist.envs.atari.lane import Lane, lives_lost
from optimist.networks.policy import PolicyNetwork
from optimist.rollout.batch import Rollout
from optimist.rollout.collector import Collector, Columns
from optimist.rollout.decider import Decider
from optimist.rollout.stepper import Array


class LaneCollector(Collector):
    """Policy × lanes of games → Rollout [T, N], on the learner's device in memory allocated once.

    Every lane finishes its T steps before the rollout is handed over, so that no action is older than the last update.
    Lanes draw from generators of their own, so that it does not matter who is ready first. A rollout is valid until
    the next one is collected.
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
        self.generators = [generator, *(_sibling(generator, number) for number in range(1, len(self.lanes)))]
        self.deciders = [
            Decider(
                policy,
                own,
                host_obs=self.host_obs[lane.columns],
                host_actions=self.host_actions[lane.columns],
                rows=self.rows[:, lane.columns],
                actions=self.actions[:, lane.columns],
                graphs=graphs,
            )
            for lane, own in zip(self.lanes, self.generators, strict=True)
        ]
        self.threads = ThreadPoolExecutor(len(self.lanes), "lane", torch.set_num_threads, (torch.get_num_threads(),))

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
        stream = torch.cuda.current_stream(self.device) if self.device.type == "cuda" else None
        halt = Event()
        plays = [self.threads.submit(self._play, number, columns, halt, stream) for number in range(len(self.lanes))]
        try:
            for play in plays:
                play.result()
        finally:  # an interrupt may come first, and the emulators are in use until then
            halt.set()
            wait(plays)
        for t in range(self.num_steps):
            self._count(columns.rewards[t].astype(np.float64), columns.terminated[t] | columns.truncated[t])
        columns.sort()
        return self._rollout(columns, progress)

    def close(self) -> None:
        """No more rollouts: the lanes' threads end."""
        self.threads.shutdown(wait=True)

    def state_dict(self) -> dict[str, Any]:
        """Where the games in play stand, as far as the collector knows."""
        states = [generator.get_state() for generator in self.generators]
        return super().state_dict() | {"generators": torch.stack(states)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over the state of `state_dict`."""
        super().load_state_dict(state)
        for generator, own in zip(self.generators, state["generators"], strict=True):
            generator.set_state(own.clone())  # a view would be read from its beginning
        self._keep_obs()

    def _play(self, number: int, columns: LaneColumns, halt: Event, stream: torch.cuda.Stream | None) -> None:
        """One lane's T steps; the other lanes' threads end early when it fails."""
        lane, decider = self.lanes[number], self.deciders[number]
        current: Array = self.obs[lane.columns]
        lives, steps = lane.lives, []
        try:
            with nullcontext() if stream is None else torch.cuda.stream(stream):
                for t in range(self.num_steps):
                    if halt.is_set():
                        return
                    lane.send(decider.decide())
                    if lane.executed is not None:
                        columns.pressed.append((t, lane.columns, *lane.executed))
                    obs, *told = lane.receive_unread()
                    current[:] = obs
                    steps.append(told)
            columns.add_lane(lane, lives, steps)
        except BaseException:
            halt.set()
            raise

    def _keep_obs(self) -> None:
        """From here on the current pictures lie in memory that the device can read."""
        self.host_obs.copy_(torch.from_numpy(self.obs))
        self.obs = self.host_obs.numpy()

    def _stored_actions(self, columns: Columns) -> Tensor:
        """The actions to learn from: executed ones where FIRE was pressed for the player."""
        assert isinstance(columns, LaneColumns)
        if not self.config.store_executed or not columns.pressed:
            return self.actions
        executed, overridden = (torch.from_numpy(rows).to(self.device) for rows in columns.executed_rows())
        return torch.where(overridden, executed, self.actions)


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
        """Bring what lanes added when they came to it into the order of time, then environment."""
        self.final_obs = [pictures for _, _, pictures in sorted(self.cut_off, key=lambda entry: entry[:2])]


def _sibling(generator: torch.Generator, number: int) -> torch.Generator:
    """A generator of its own for another lane, fixed by the first one's seed."""
    seed = np.random.SeedSequence([generator.initial_seed(), number]).generate_state(1, np.uint64)[0]
    return torch.Generator(generator.device).manual_seed(int(seed) >> 1)
