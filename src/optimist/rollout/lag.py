"""LaggedCollector: collects the next rollout while the learner updates on the current one."""

from __future__ import annotations

import copy
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import nullcontext
from dataclasses import fields, replace
from typing import Any

import torch
from torch import Tensor

from optimist.core.steps import Rollout
from optimist.networks.policy import PolicyNetwork
from optimist.rollout.collector import Collector, EpisodeRecord


class LaggedCollector:
    """Rollouts by a copy of the policy, one update older than the policy that learns from them.

    Log π_old and V are the copy's. Results depend on the order of `on_update_start` and `collect` and not on timing:
    one thread collects, with its own generator and weights.
    """

    def __init__(self, make: Callable[[PolicyNetwork], Collector], policy: PolicyNetwork, threads: int = 1) -> None:
        """`make`: the collector of a policy; `threads`: torch threads, a setting of each Python thread."""
        self.policy, self.acting = policy, copy.deepcopy(policy).requires_grad_(False)
        self.collector = make(self.acting)
        self.finished: list[EpisodeRecord] = []
        self.pending: Future[tuple[Rollout, list[EpisodeRecord]]] | None = None
        self.thread = ThreadPoolExecutor(1, "collector", initializer=torch.set_num_threads, initargs=(threads,))
        # On a GPU the copy acts on a side stream, concurrently with the update.
        on_gpu = self.collector.device.type == "cuda"
        self.stream = _side_stream(self.collector.device) if on_gpu else None

    @property
    def collecting(self) -> bool:
        """Whether a rollout was started that `collect` has not returned yet."""
        return self.pending is not None

    def restart(self, seed: int) -> None:
        """Start new episodes everywhere and drop the unfinished ones."""
        assert not self.collecting
        self.collector.restart(seed)

    def on_update_start(self) -> None:
        """Start collecting with a copy of the current policy; the next `collect` returns this rollout."""
        assert not self.collecting
        self.acting.follow(self.policy)
        self._settle()
        self.pending = self.thread.submit(self._collect)

    def collect(self, progress: float = 0.0) -> Rollout:
        """The rollout started before the last update; without one, a rollout of the current policy."""
        if not self.collecting:
            self.on_update_start()
        assert self.pending is not None
        try:
            rollout, self.finished = self.pending.result()
        finally:
            wait([self.pending])  # also after an interrupt: the environments are in use until then
            self.pending = None
        # Copies: the collector reuses its memory, which on a GPU belongs to the side stream.
        copies = {
            f.name: value.clone() for f in fields(rollout) if isinstance(value := getattr(rollout, f.name), Tensor)
        }
        return replace(rollout, progress=progress, **copies)

    def close(self) -> None:
        """Wait for a rollout in progress, which uses the environments until it is done."""
        self.thread.shutdown(wait=True)
        self.pending = None
        self.collector.close()

    def state_dict(self) -> dict[str, Any]:
        """The collector's state; between two rollouts only."""
        assert not self.collecting
        return self.collector.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Load the result of `state_dict`."""
        assert not self.collecting
        self.collector.load_state_dict(state)

    def _collect(self) -> tuple[Rollout, list[EpisodeRecord]]:
        with nullcontext() if self.stream is None else torch.cuda.stream(self.stream):
            rollout = self.collector.collect()
            self._settle()
        return rollout, self.collector.finished

    def _settle(self) -> None:
        """Wait for the GPU, so that the other thread can use what this thread computed."""
        if self.stream is not None:
            torch.cuda.current_stream(self.collector.device).synchronize()


def _side_stream(device: torch.device) -> torch.cuda.Stream:
    """A stream other than the one that captures graphs: kernels on that one would become part of a graph."""
    first, second = torch.cuda.Stream(device), torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
    return second if first == torch.cuda.graph.default_capture_stream else first  # torch hands out 32 in turn
