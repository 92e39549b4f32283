"""LaneCollector: while some lanes of games play, the moves of others are decided; who is ready first comes next."""

from __future__ import annotations

from queue import SimpleQueue
from threading import Thread
from typing import Any

import numpy as np
import torch
from gymnasium.vector import VectorEnv
from torch import Tensor

from optimist.config import EnvConfig
from optimist.networks.policy import PolicyNetwork
from optimist.rollout.batch import Rollout
from optimist.rollout.collector import Collector, Columns
from optimist.rollout.decider import Decider
from optimist.rollout.stepper import Array, Transition


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
        ready: SimpleQueue[tuple[int, Any]] = SimpleQueue()
        players = [_Player(number, lane, self.obs, ready) for number, lane in enumerate(self.lanes)]
        times = [-1] * len(players)  # of the step each lane is playing
        for number in range(len(players)):
            ready.put((number, None))
        try:
            for _ in range((self.num_steps + 1) * len(players)):
                number, moved = ready.get()
                if isinstance(moved, BaseException):
                    raise moved
                if moved is not None:
                    columns.add_lane(times[number], self.lanes[number].columns, moved)
                times[number] += 1
                if times[number] < self.num_steps:
                    players[number].play(self.deciders[number].decide())
        finally:  # also those of the other lanes when one fails: they would wait for ever, and keep their emulators
            for player in players:
                player.stop()
        for t in range(self.num_steps):
            self._count(columns.rewards[t].astype(np.float64), columns.terminated[t] | columns.truncated[t])
        columns.sort()
        return self._rollout(columns, progress)

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

    def _keep_obs(self) -> None:
        """From here on the current pictures lie in memory that the device can read."""
        self.host_obs.copy_(torch.from_numpy(self.obs))
        self.obs = self.host_obs.numpy()

    def _stored_actions(self, columns: Columns) -> Tensor:
        """The actions to learn from: executed ones where FIRE was pressed for the player."""
        assert isinstance(columns, LaneColumns)
        if not self.config.store_executed or columns.executed_rows is None:
            return self.actions
        executed, overridden = (torch.from_numpy(rows).to(self.device) for rows in columns.executed_rows)
        return torch.where(overridden, executed, self.actions)


class LaneColumns(Columns):
    """The rows of a rollout while its lanes are being filled, in whatever order they are ready."""

    def __init__(self, obs: Tensor) -> None:
        super().__init__(obs)
        self.executed_rows: tuple[Array, Array] | None = None  # actions [T, N], and where they replaced others
        self.cut_off: list[tuple[int, int, Array]] = []  # time, first column, last pictures of games at a time limit

    def add_lane(self, t: int, columns: slice, moved: Transition) -> None:
        """What a step of one lane gave."""
        truncated = moved.truncated & ~moved.terminated
        self.rewards[t, columns], self.terminated[t, columns] = moved.rewards, moved.terminated
        self.truncated[t, columns], self.life_lost[t, columns] = truncated, moved.life_lost
        if truncated.any():
            assert moved.final_obs is not None
            self.cut_off.append((t, columns.start, moved.final_obs[truncated]))
        if "executed" in moved.infos:
            if self.executed_rows is None:
                self.executed_rows = np.zeros(self.shape, np.int64), np.zeros(self.shape, np.bool_)
            self.executed_rows[0][t, columns] = moved.infos["executed"]
            self.executed_rows[1][t, columns] = moved.infos["_executed"]

    def sort(self) -> None:
        """Bring what was added in the order of readiness into the order of time, then environment."""
        self.final_obs = [pictures for _, _, pictures in sorted(self.cut_off, key=lambda entry: entry[:2])]


class _Player(Thread):
    """Waits for one lane's emulators, which a finished game may hold up by the length of its restart."""

    def __init__(self, number: int, lane: Any, obs: Array, ready: SimpleQueue[tuple[int, Any]]) -> None:
        super().__init__(name=f"lane {number}", daemon=True)
        self.number, self.lane, self.obs, self.ready = number, lane, obs[lane.columns], ready
        self.moves: SimpleQueue[Array | None] = SimpleQueue()
        self.start()

    def play(self, actions: Array) -> None:
        """Begin a step; what it gives comes through the queue."""
        self.lane.send(actions)
        self.moves.put(actions)

    def stop(self) -> None:
        """No more steps in this rollout."""
        self.moves.put(None)

    def run(self) -> None:
        """Receive one step after the other."""
        while self.moves.get() is not None:
            try:
                obs, rewards, terminated, truncated, infos = self.lane.receive()
                self.obs[:] = obs
                final_obs = infos.get("final_obs")
                moved = Transition(obs, rewards, terminated, truncated, None, infos, infos, infos, final_obs)
            except BaseException as error:  # raised again where the rollout is collected
                self.ready.put((self.number, error))
                return
            self.ready.put((self.number, moved))


def _sibling(generator: torch.Generator, number: int) -> torch.Generator:
    """A generator of its own for another lane, fixed by the first one's seed."""
    seed = np.random.SeedSequence([generator.initial_seed(), number]).generate_state(1, np.uint64)[0]
    return torch.Generator(generator.device).manual_seed(int(seed) >> 1)
