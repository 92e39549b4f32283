"""LaneCollector: whichever games have played are decided for, while others still play."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from gymnasium.vector import VectorEnv
from torch import Tensor

from optimist.config import EnvConfig
from optimist.cuda.pinned import pinned
from optimist.envs.atari.board import TOLD, Board
from optimist.envs.atari.players import Games
from optimist.envs.atari.vector import AtariVectorEnv, lives_lost
from optimist.networks.policy import PolicyNetwork
from optimist.rollout.batch import Rollout
from optimist.rollout.collector import Collector, Columns
from optimist.rollout.decider import Decider
from optimist.rollout.stepper import Array

AT_ONCE = 32
"""Games that a GPU decides for at once, where so many have played; for fewer it takes as long."""
NOBODY = np.empty(0, np.intp)


class LaneCollector(Collector):
    """Policy × games on a board → Rollout [T, N], on the learner's device in memory allocated once.

    Some games are played while others are decided for, those with the fewest steps first, so that all end at the same
    time. Every game finishes its T steps before the rollout is handed over, so that no action is older than the last
    update. What comes out does not depend on who is ready first. A rollout is valid until the next one is collected.
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
        self.atari: AtariVectorEnv = envs.unwrapped  # type: ignore[assignment]
        self.board, self.lanes = self.atari.board, np.array(self.atari.bounds)
        num_envs, pixels, on_gpu = envs.num_envs, envs.single_observation_space.shape, self.device.type == "cuda"
        assert pixels is not None
        self.host_obs = pinned(self.board.obs) if on_gpu else torch.from_numpy(self.board.obs)
        rows = rollout_steps * num_envs + 1  # the last is nobody's
        self.rows = torch.zeros((rows, *pixels), dtype=torch.uint8, device=self.device)
        self.actions = torch.zeros(rows, dtype=torch.int64, device=self.device)
        # A CPU decides for a whole lane at a time: the last digits of its arithmetic depend on who else is there.
        self.together = not on_gpu
        self.at_once = min(AT_ONCE, num_envs) if on_gpu else int(np.diff(self.lanes).max())
        self.decider = Decider(
            policy,
            generator,
            host_obs=self.host_obs,
            rows=self.rows,
            actions=self.actions,
            at_once=self.at_once,
            graphs=graphs,
        )

    def restart(self, seed: int) -> None:
        """Begin new games everywhere; those in play count for nothing."""
        super().restart(seed)
        self._keep_obs()

    def collect(self, progress: float = 0.0) -> Rollout:
        """T steps of every game under the current policy."""
        self.finished = []
        columns = LaneColumns(self._by_step(self.rows), self.atari.lives.copy())
        self.decider.begin()
        try:
            self._play(columns)
        except BaseException:  # whoever goes on from here, nobody is in the middle of a step or a decision
            self.atari.abandon()
            self.decider.abandon()
            raise
        columns.read(life_loss_ends=self.atari.life_loss_ends)
        for t in range(self.num_steps):
            self._count(columns.rewards[t].astype(np.float64), columns.terminated[t] | columns.truncated[t])
        return self._rollout(columns, progress)

    def begin(self) -> None:
        """The learner is about to learn: meanwhile beginnings of next games can be prepared."""
        self.atari.rest()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over the state of `state_dict`."""
        super().load_state_dict(state)
        self._keep_obs()

    def _play(self, columns: LaneColumns) -> None:
        """T steps of every game."""
        num_envs, times, asked = len(self.obs), np.zeros(len(self.obs), np.int64), NOBODY
        undecided, left = np.ones(num_envs, np.bool_), num_envs * self.num_steps
        while left:
            if not len(asked) and len(asked := self._ready(undecided, times)):
                undecided[asked] = False
                self.decider.ask(asked, times[asked] * num_envs + asked)
            if len(asked) and self.decider.is_done():
                columns.note_move(times, asked, self.atari.begin(asked, self.decider.answer()))
                asked = NOBODY
                continue
            games = self.atari.arrived(self.decider.is_done if len(asked) else None)
            if len(games):
                columns.note_step(times, games, self.board)
                times[games] += 1
                left -= len(games)
                undecided[games] = times[games] < self.num_steps

    def _ready(self, undecided: Array, times: Array) -> Games:
        """Whom to decide for next, at most `at_once` games: those that have made the fewest steps."""
        if self.together:
            complete = np.flatnonzero(np.logical_and.reduceat(undecided, self.lanes[:-1]))
            if not len(complete):
                return NOBODY
            group = complete[times[self.lanes[complete]].argmin()]
            return np.arange(self.lanes[group], self.lanes[group + 1])
        games = np.flatnonzero(undecided)
        return games if len(games) <= self.at_once else games[times[games].argsort(kind="stable")[: self.at_once]]

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

    def __init__(self, obs: Tensor, lives: Array) -> None:
        """`lives` [N] before the first step."""
        super().__init__(obs)
        self.lives = lives
        self.told = np.empty(self.shape, TOLD)
        self.pressed: list[tuple[Array, Games, Array, Array]] = []  # times, games, moves, where they replaced others
        self.cut_off: dict[tuple[int, int], Array] = {}  # time, game → last picture at a time limit

    def note_move(self, times: Array, games: Games, executed: tuple[Array, Array] | None) -> None:
        """Games have begun a step, in which some moves may have been replaced."""
        if executed is not None:
            self.pressed.append((times[games], games, *executed))

    def note_step(self, times: Array, games: Games, board: Board) -> None:
        """Steps of these games are on the board."""
        told = self.told[times[games], games] = board.told[games]
        for game in games[told["truncated"] & ~told["terminated"]]:
            self.cut_off[int(times[game]), int(game)] = board.final_obs[game].copy()

    def read(self, *, life_loss_ends: bool) -> None:
        """All steps are noted: rewards, ends and lost lives, and last pictures in order of time, then environment."""
        told = self.told
        self.rewards[:], self.terminated[:] = told["reward"], told["terminated"]
        self.truncated[:] = told["truncated"] & ~told["terminated"]
        counts = np.concatenate([self.lives[None], told["lives"]])
        self.life_lost[:] = life_loss_ends & lives_lost(counts[:-1], counts[1:], self.terminated | self.truncated)
        self.final_obs = [self.cut_off[key][None] for key in sorted(self.cut_off)]

    def executed_rows(self) -> tuple[Array, Array]:
        """Actions [T, N] that replaced others, and where they did."""
        executed, overridden = np.zeros(self.shape, np.int64), np.zeros(self.shape, np.bool_)
        for times, games, actions, replaced in self.pressed:
            executed[times, games], overridden[times, games] = actions, replaced
        return executed, overridden
