"""LaggedCollector: the next rollout is collected while the learner still learns from this one."""

from __future__ import annotations

import copy
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import nullcontext
from dataclasses import fields, replace
from typing import Any

import torch
from torch import Tensor

from optimist.networks.policy import PolicyNetwork
from optimist.rollout.batch import Rollout
from optimist.rollout.collector import Collector, EpisodeRecord


class LaggedCollector:
    """Rollouts by a copy of the policy, one update older than the policy that learns from them.

    Log π_old and V are the copy's. What is collected depends on the order of `begin` and `collect`, not on how long
    anything takes: all collecting happens in one thread, on random numbers and weights of its own.
    """

    def __init__(self, make: Callable[[PolicyNetwork], Collector], policy: PolicyNetwork, threads: int = 1) -> None:
        """`make`: the collector for a policy; `threads`: of torch, which each thread of Python has to be told."""
        self.policy, self.acting = policy, copy.deepcopy(policy).requires_grad_(False)
        self.collector = make(self.acting)
        self.finished: list[EpisodeRecord] = []
        self.pending: Future[tuple[Rollout, list[EpisodeRecord]]] | None = None
        self.thread = ThreadPoolExecutor(1, "collector", initializer=torch.set_num_threads, initargs=(threads,))
        # On a GPU the copy acts beside the update and not in its queue.
        on_gpu = self.collector.device.type == "cuda"
        self.stream = torch.cuda.Stream(self.collector.device) if on_gpu else None  # type: ignore[no-untyped-call]

    @property
    def underway(self) -> bool:
        """Whether a rollout was begun that nobody has taken yet."""
        return self.pending is not None

    def restart(self, seed: int) -> None:
        """Begin new episodes everywhere; those in play count for nothing."""
        assert not self.underway
        self.collector.restart(seed)

    def begin(self) -> None:
        """Start to collect with the policy as it is now. The next `collect` hands the rollout over."""
        assert not self.underway
        self.acting.follow(self.policy)
        self._settle()
        self.pending = self.thread.submit(self._collect)

    def collect(self, progress: float = 0.0) -> Rollout:
        """The rollout that was begun before the last update; without one, a rollout of the policy as it is now."""
        if not self.underway:
            self.begin()
        assert self.pending is not None
        try:
            rollout, self.finished = self.pending.result()
        finally:
            wait([self.pending])  # an interrupt may come first, and the environments are in use until then
            self.pending = None
        # The collector reuses its memory, and on a GPU the allocator knows it as the other stream's.
        mine = {f.name: value.clone() for f in fields(rollout) if isinstance(value := getattr(rollout, f.name), Tensor)}
        return replace(rollout, progress=progress, **mine)

    def close(self) -> None:
        """Wait for a rollout that nobody will learn from: the environments are in use until then."""
        self.thread.shutdown(wait=True)
        self.pending = None
        self.collector.close()

    def state_dict(self) -> dict[str, Any]:
        """Where the episodes in play stand; between two rollouts only."""
        assert not self.underway
        return self.collector.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over the state of `state_dict`."""
        assert not self.underway
        self.collector.load_state_dict(state)

    def _collect(self) -> tuple[Rollout, list[EpisodeRecord]]:
        with nullcontext() if self.stream is None else torch.cuda.stream(self.stream):
            rollout = self.collector.collect()
            self._settle()
        return rollout, self.collector.finished

    def _settle(self) -> None:
        """Wait for the GPU: what the calling thread has asked for is done before the other thread uses it."""
        if self.stream is not None:
            torch.cuda.current_stream(self.collector.device).synchronize()
