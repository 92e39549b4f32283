"""BatchActor: actions for some environments at a time, kernel by kernel or as a CUDA graph."""

from __future__ import annotations

import time
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from optimist.cuda.graph import capture
from optimist.networks.policy import PolicyNetwork

Array = NDArray[Any]
CHECK_SECONDS = 1.0
"""Time without an answer after which the GPU is checked for errors."""


class BatchActor:
    """Selects actions for a batch of slots (environments) and stores observations and actions in the rollout.

    Two properties make a rollout independent of the order in which slots become ready. The noise of a rollout is drawn
    when it starts, one row for each step of each slot. Batches are padded to `batch_size`, so a result does not depend
    on which rows share a batch. The eager path and the graph do the same work on the same tensors.
    """

    def __init__(
        self,
        policy: PolicyNetwork,
        generator: torch.Generator,
        *,
        host_obs: Tensor,  # [N, ...] current observations, in memory that the device can read
        rollout_obs: Tensor,  # [T·N + 1, ...] observations of the rollout by step, and one row for padding
        rollout_actions: Tensor,  # [T·N + 1]
        batch_size: int,
        graphs: bool,
    ) -> None:
        self.policy, self.generator, self.graphs, self.batch_size = policy, generator, graphs, batch_size
        self.host_obs, self.rollout_obs, self.rollout_actions = host_obs, rollout_obs, rollout_actions
        self.padding_row = len(rollout_obs) - 1
        on_gpu, device = rollout_obs.is_cuda, rollout_obs.device
        self.host_indices = torch.zeros((2, batch_size), dtype=torch.int64, pin_memory=on_gpu)  # slots, rollout rows
        self.host_actions = torch.zeros(batch_size, dtype=torch.int64, pin_memory=on_gpu)
        self.host_completed = torch.zeros(1, dtype=torch.int64, pin_memory=on_gpu)  # batches done so far
        self._indices: Array = self.host_indices.numpy()
        self._actions: Array = self.host_actions.numpy()
        self._completed: Array = self.host_completed.numpy()
        self.obs = torch.zeros_like(host_obs, device=device) if on_gpu else host_obs
        self.indices = torch.zeros_like(self.host_indices, device=device)
        self.completed = torch.zeros_like(self.host_completed, device=device)
        self.noise: tuple[Tensor, ...] = ()
        self.graph: torch.cuda.CUDAGraph | None = None
        self.submitted = self.count = 0  # batches so far, and slots of the last
        self.check_at = 0.0

    def start_rollout(self) -> None:
        """Draw the noise of a rollout, in place: the graph holds its address. The first call captures the graph."""
        drawn = self.policy.sample_noise(len(self.rollout_obs), self.generator)
        for kept, fresh in zip(self.noise, drawn, strict=bool(self.noise)):
            kept.copy_(fresh)
        self.noise = self.noise or drawn
        if self.graphs and self.graph is None:
            self._indices[1] = self.padding_row
            self.graph = capture(self._act)
            self.submitted = int(self.completed)

    def submit(self, slots: Array, rows: Array) -> None:
        """Start to select actions for at most `batch_size` slots by their `host_obs`; `result` has to follow.

        `rows`: of the rollout, where observations and actions are stored.
        """
        count, indices = len(slots), self._indices
        indices[0, :count], indices[1, :count], indices[1, count:] = slots, rows, self.padding_row
        self.submitted, self.count, self.check_at = self.submitted + 1, count, time.perf_counter() + CHECK_SECONDS
        self._act() if self.graph is None else self.graph.replay()

    def is_ready(self) -> bool:
        """Whether `result` returns without waiting."""
        ready = bool(self._completed[0] == self.submitted)
        if not ready and time.perf_counter() > self.check_at:
            torch.cuda.synchronize()  # raises errors of the GPU
        return ready

    def result(self) -> Array:
        """The actions of the submitted slots."""
        while not self.is_ready():
            pass
        return self._actions[: self.count].copy()

    def cancel(self) -> None:
        """Wait for a batch in progress, or forget one that failed, and discard its actions."""
        self.submitted = int(self.completed)
        self.host_completed.fill_(self.submitted)

    def _act(self) -> None:
        if self.obs is not self.host_obs:
            self.obs.copy_(self.host_obs, non_blocking=True)
        self.indices.copy_(self.host_indices, non_blocking=True)
        slots, rows = self.indices
        obs = self.obs.index_select(0, slots)
        actions = self.policy.act_with_noise(obs, [noise.index_select(0, rows) for noise in self.noise])
        self.host_actions.copy_(actions, non_blocking=True)
        self.completed += 1
        self.host_completed.copy_(self.completed, non_blocking=True)  # what follows overlaps with the host's work
        self.rollout_obs.index_copy_(0, rows, obs)
        self.rollout_actions.index_copy_(0, rows, actions)
