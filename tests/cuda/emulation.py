"""CUDA graphs on a CPU: a capture records the operations, and a replay repeats them on the same tensors.

So a value that Python computes is fixed at the capture, as in a CUDA graph; only tensors that change in place are read
again. A capture that waits for the device or draws from an unregistered generator raises, as on a GPU.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from optimist.algorithms import dqn
from optimist.algorithms.base import Learner
from optimist.algorithms.rainbow import Rainbow
from optimist.replay.transitions import Replay, Transitions
from optimist.training import build

SYNCHRONIZING = {
    "_local_scalar_dense",
    "equal",
    "is_nonzero",
    "lift_fresh",
    "masked_select",
    "nonzero",
    "unique",
    "unique_consecutive",
}
"""Operations that need a value on the host, or copy one from it."""


class EmulatedGraph:
    """The recorded operations of a capture, with their tensors."""

    def __init__(self) -> None:
        self.generators: list[torch.Generator] = []
        self.operations: list[tuple[Any, tuple[Any, ...], dict[str, Any], list[Tensor | None]]] = []

    def register_generator_state(self, generator: torch.Generator) -> None:
        """Allow draws from this generator."""
        self.generators.append(generator)

    def knows(self, generator: torch.Generator) -> bool:
        """Whether this generator is registered; torch passes it as another object."""
        return any(generator.get_state().equal(registered.get_state()) for registered in self.generators)

    @torch.no_grad()
    def replay(self) -> None:
        """Repeat the operations; results go to the addresses that the recorded ones have."""
        for operation, args, kwargs, results in self.operations:
            repeated = tree_leaves(operation(*args, **kwargs))
            for recorded, new in zip(results, repeated, strict=True):
                if recorded is not None:
                    recorded.copy_(new)


class EmulatedStream:
    """A stream on a device that does everything at once."""

    def wait_stream(self, other: EmulatedStream) -> None:
        """Return at once."""


class emulated_capture(TorchDispatchMode):  # noqa: N801  # in the place of torch.cuda.graph
    """Record the operations of the block in `graph`."""

    def __init__(self, graph: EmulatedGraph, capture_error_mode: str = "global") -> None:
        super().__init__()
        self.graph = graph

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs, name = kwargs or {}, func.__name__.split(".")[0]
        inputs = tree_leaves((args, kwargs))
        if name in SYNCHRONIZING:
            raise RuntimeError(f"{name} is not permitted while a stream is captured")
        if not all(self.graph.knows(value) for value in inputs if isinstance(value, torch.Generator)):
            raise RuntimeError(f"{name} draws from a generator that is not registered with the graph")
        result = func(*args, **kwargs)
        known = {tensor.untyped_storage().data_ptr() for tensor in inputs if isinstance(tensor, Tensor)}
        fresh = [
            value.detach() if isinstance(value, Tensor) and value.untyped_storage().data_ptr() not in known else None
            for value in tree_leaves(result)
        ]
        self.graph.operations.append((func, args, kwargs, fresh))
        return result


def emulate_cuda_graphs(monkeypatch) -> None:
    """Let `capture` and the learners do on a CPU what they do on a GPU."""
    monkeypatch.setattr(torch.cuda, "Stream", EmulatedStream)
    monkeypatch.setattr(torch.cuda, "current_stream", EmulatedStream)
    monkeypatch.setattr(torch.cuda, "stream", nullcontext)
    monkeypatch.setattr(torch.cuda, "CUDAGraph", EmulatedGraph)
    monkeypatch.setattr(torch.cuda, "graph", emulated_capture)
    monkeypatch.setattr(Replay, "sample", sample_on_device)
    monkeypatch.setattr(Learner, "descend", descend_on_device)
    monkeypatch.setattr(dqn, "MINIBATCHES_PER_DRAW", 1)
    uses_graphs, make_rainbow = build.uses_graphs, Rainbow.__init__
    monkeypatch.setattr(
        build, "uses_graphs", lambda config, anchor: uses_graphs(replace(config, device="cuda"), anchor)
    )

    def make_rainbow_on_device(self, *args, **kwargs):
        make_rainbow(self, *args, **kwargs)
        self.beta = torch.tensor(self.beta, dtype=torch.float64)

    monkeypatch.setattr(Rainbow, "__init__", make_rainbow_on_device)


def sample_on_device(self: Replay, size: int, generator: torch.Generator) -> Transitions:
    """`Replay.sample` on a GPU, where the number of drawable steps is a tensor."""
    return self.transitions(self.positions_of(torch.rand(size, generator=generator, dtype=torch.float64)))


def descend_on_device(self: Learner) -> None:
    """`Learner.descend` on a GPU, where the norm of the gradient is not read."""
    assert self.flat.grad is not None
    max_norm = self.config.max_grad_norm
    if max_norm is not None:
        norm = torch.linalg.vector_norm(self.flat.grad)
        self.flat.grad.mul_((max_norm / (norm + 1e-6)).clamp(max=1.0))
    self.optimizer.step()
