"""Decider: moves for some of the games at a time, kernel by kernel or as a CUDA graph."""

from __future__ import annotations

import torch
from torch import Tensor

from optimist.cuda.graph import record
from optimist.networks.policy import PolicyNetwork
from optimist.rollout.stepper import Array


class Decider:
    """Pictures go to the device and into the rollout, one action a game comes back.

    All chances of a rollout are drawn when it begins, one for each step of each game, so that it does not matter who
    is decided for when, or beside whom. The eager path and the graphs are the same work on the same tensors. On a GPU
    every decision is for `at_once` games, of which some may be nobody's: whoever it is for, it is the same arithmetic.
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
        self._turns: Array = self.host_turns.numpy()
        self._actions: Array = self.host_actions.numpy()
        self.obs = torch.zeros_like(host_obs, device=rows.device) if rows.is_cuda else host_obs
        self.turns = torch.zeros_like(self.host_turns, device=rows.device)
        self.chances: tuple[Tensor, ...] = ()
        self.seen, self.chosen = torch.empty(0), torch.empty(0)  # the pictures of a decision, and what was decided
        self.recorded: list[torch.cuda.CUDAGraph] = []
        self.done = torch.cuda.Event() if rows.is_cuda else None  # type: ignore[no-untyped-call]

    def begin(self) -> None:
        """The next decision is the first of a rollout."""
        drawn = self.policy.chances(len(self.rows), self.generator)
        for kept, fresh in zip(self.chances, drawn, strict=bool(self.chances)):
            kept.copy_(fresh)
        self.chances = self.chances or drawn
        if self.graphs and not self.recorded:
            self.host_turns[1] = len(self.rows) - 1
            self.recorded = [record(self._decide), record(self._note)]

    def decide(self, games: Array, rows: Array) -> Array:
        """Actions of these games, at most `at_once`, for their pictures in `host_obs`; `rows`: of the rollout."""
        count, turns = len(games), self._turns
        turns[0, :count], turns[1, :count], turns[1, count:] = games, rows, len(self.rows) - 1
        self.recorded[0].replay() if self.recorded else self._decide()
        if self.done is not None:
            self.done.record()
        self.recorded[1].replay() if self.recorded else self._note()  # while the host already reads the actions
        if self.done is not None:
            self.done.synchronize()
        return self._actions[:count]

    def _decide(self) -> None:
        if self.obs is not self.host_obs:
            self.obs.copy_(self.host_obs, non_blocking=True)
        self.turns.copy_(self.host_turns, non_blocking=True)
        whose, row = self.turns
        self.seen = self.obs.index_select(0, whose)
        self.chosen = self.policy.act_on(self.seen, [numbers.index_select(0, row) for numbers in self.chances])
        self.host_actions.copy_(self.chosen, non_blocking=True)

    def _note(self) -> None:
        self.rows.index_copy_(0, self.turns[1], self.seen)
        self.actions.index_copy_(0, self.turns[1], self.chosen)
