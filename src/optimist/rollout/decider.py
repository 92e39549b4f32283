"""Decider: the moves of one lane of games, kernel by kernel or as a CUDA graph."""

from __future__ import annotations

import torch
from torch import Tensor

from optimist.cuda.graph import record
from optimist.networks.policy import PolicyNetwork
from optimist.rollout.stepper import Array


class Decider:
    """Pictures go to the device and into the rollout, one action a game comes back.

    The eager path and the graphs are the same work on the same tensors with the same random numbers.
    """

    def __init__(
        self,
        policy: PolicyNetwork,
        generator: torch.Generator,
        *,
        host_obs: Tensor,  # [n, ...] current pictures, in memory that the device can read
        host_actions: Tensor,  # [n] where the decision comes back
        rows: Tensor,  # [T, n, ...] the lane's part of the rollout
        actions: Tensor,  # [T, n]
        graphs: bool,
    ) -> None:
        self.policy, self.generator, self.graphs = policy, generator, graphs
        self.host_obs, self.host_actions, self.rows, self.actions = host_obs, host_actions, rows, actions
        self.obs = torch.zeros_like(host_obs, device=rows.device)
        self.chosen = torch.zeros_like(host_actions, device=rows.device)
        self.time = torch.zeros(1, dtype=torch.int64, device=rows.device)
        self.recorded: list[torch.cuda.CUDAGraph] = []
        self.done = torch.cuda.Event() if rows.is_cuda else None  # type: ignore[no-untyped-call]

    def begin(self) -> None:
        """The next decision is the first of a rollout."""
        if self.graphs and not self.recorded:
            self.recorded = [record(self._decide, generators=[self.generator]), record(self._note)]
        self.time.zero_()

    def decide(self) -> Array:
        """Actions for the pictures that lie in `host_obs`."""
        self.recorded[0].replay() if self.recorded else self._decide()
        if self.done is not None:
            self.done.record()
        self.recorded[1].replay() if self.recorded else self._note()  # while the host already reads the actions
        if self.done is not None:
            self.done.synchronize()
        actions: Array = self.host_actions.numpy()
        return actions

    def _decide(self) -> None:
        self.obs.copy_(self.host_obs, non_blocking=True)
        self.chosen.copy_(self.policy.act(self.obs, self.generator))
        self.host_actions.copy_(self.chosen, non_blocking=True)

    def _note(self) -> None:
        self.rows.index_copy_(0, self.time, self.obs[None])
        self.actions.index_copy_(0, self.time, self.chosen[None])
        self.time.add_(1).remainder_(len(self.rows))  # also when a recording tries it out more often than T
