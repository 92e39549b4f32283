"""Decider: moves for some of the games at a time, kernel by kernel or as a CUDA graph."""

from __future__ import annotations

import time

import torch
from torch import Tensor

from optimist.cuda.graph import record
from optimist.networks.policy import PolicyNetwork
from optimist.rollout.stepper import Array

LONG = 1.0
"""Seconds after which a GPU that has not answered is asked what is the matter."""


class Decider:
    """Pictures go to the device and into the rollout, one action a game comes back.

    All chances of a rollout are drawn when it begins, one for each step of each game, so that it does not matter who
    is decided for when, or beside whom. The eager path and the graph are the same work on the same tensors. Every
    decision is for `at_once` games, of which some may be nobody's: whoever it is for, it is the same arithmetic.
    """

    def __init__(
        self,
        policy: PolicyNetwork,
        generator: torch.Generator,
        *,
        host_obs: Tensor,  # [N, ...] current pictures, in memory that the device can read
        rows: Tensor,  # [T·N + 1, ...] the rollout's pictures, step by step, and one row for nobody's
        actions: Tensor,  # [T·N + 1]
        at_once: int,
        graphs: bool,
    ) -> None:
        self.policy, self.generator, self.graphs, self.at_once = policy, generator, graphs, at_once
        self.host_obs, self.rows, self.actions = host_obs, rows, actions
        pinned = rows.is_cuda
        self.host_turns = torch.zeros((2, at_once), dtype=torch.int64, pin_memory=pinned)  # whose, and which row
        self.host_actions = torch.zeros(at_once, dtype=torch.int64, pin_memory=pinned)
        self.host_made = torch.zeros(1, dtype=torch.int64, pin_memory=pinned)  # decisions so far
        self._turns: Array = self.host_turns.numpy()
        self._actions: Array = self.host_actions.numpy()
        self._made: Array = self.host_made.numpy()
        self.obs = torch.zeros_like(host_obs, device=rows.device) if rows.is_cuda else host_obs
        self.turns = torch.zeros_like(self.host_turns, device=rows.device)
        self.made = torch.zeros_like(self.host_made, device=rows.device)
        self.chances: tuple[Tensor, ...] = ()
        self.recorded: torch.cuda.CUDAGraph | None = None
        self.asked = self.count = 0  # decisions, and games of the last
        self.late = 0.0  # when it is time to worry about it

    def begin(self) -> None:
        """The next decision is the first of a rollout."""
        drawn = self.policy.chances(len(self.rows), self.generator)
        for kept, fresh in zip(self.chances, drawn, strict=bool(self.chances)):
            kept.copy_(fresh)
        self.chances = self.chances or drawn
        if self.graphs and self.recorded is None:
            self._turns[1] = len(self.rows) - 1
            self.recorded = record(self._decide)
            self.asked = int(self.made)

    def ask(self, games: Array, rows: Array) -> None:
        """Begin to decide for these games, at most `at_once`, by their pictures in `host_obs`; `answer` has to follow.

        `rows`: of the rollout, where pictures and actions go.
        """
        count, turns = len(games), self._turns
        turns[0, :count], turns[1, :count], turns[1, count:] = games, rows, len(self.rows) - 1
        self.asked, self.count, self.late = self.asked + 1, count, time.perf_counter() + LONG
        self._decide() if self.recorded is None else self.recorded.replay()

    def is_done(self) -> bool:
        """Whether `answer` need not wait."""
        done = bool(self._made[0] == self.asked)
        if not done and time.perf_counter() > self.late:
            torch.cuda.synchronize()  # an error is raised here
        return done

    def answer(self) -> Array:
        """The actions that were asked for."""
        while not self.is_done():
            pass
        return self._actions[: self.count].copy()

    def abandon(self) -> None:
        """Wait for a decision that nobody has waited for, or that came to nothing."""
        self.asked = int(self.made)
        self.host_made.fill_(self.asked)

    def _decide(self) -> None:
        if self.obs is not self.host_obs:
            self.obs.copy_(self.host_obs, non_blocking=True)
        self.turns.copy_(self.host_turns, non_blocking=True)
        whose, row = self.turns
        seen = self.obs.index_select(0, whose)
        chosen = self.policy.act_on(seen, [numbers.index_select(0, row) for numbers in self.chances])
        self.host_actions.copy_(chosen, non_blocking=True)
        self.made += 1
        self.host_made.copy_(self.made, non_blocking=True)  # what follows is done while the host reads the actions
        self.rows.index_copy_(0, row, seen)
        self.actions.index_copy_(0, row, chosen)
