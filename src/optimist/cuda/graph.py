"""CUDA graphs: work on fixed tensors, recorded once and replayed at the cost of one launch."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor

WARM_UPS = 3
"""Times the work runs before it is recorded: libraries choose their kernels and allocate their workspaces then."""


def record(
    work: Callable[[], None], *, generators: Sequence[torch.Generator] = (), kept: Iterable[Tensor] = ()
) -> torch.cuda.CUDAGraph:
    """`work` as a graph, to be replayed. Nothing has happened afterwards: `kept` tensors and generators are put back.

    `work` reads and writes tensors that stay where they are, and never asks the device for a number.
    """
    tensors = list(kept)
    before = [tensor.clone() for tensor in tensors]
    states = [generator.get_state() for generator in generators]
    side, main = torch.cuda.Stream(), torch.cuda.current_stream()  # type: ignore[no-untyped-call]
    side.wait_stream(main)
    with torch.cuda.stream(side):
        for _ in range(WARM_UPS):
            work()
    main.wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    for generator in generators:
        graph.register_generator_state(generator)
    # Another thread may be collecting meanwhile, and may allocate memory.
    with _keeping_garbage(), torch.cuda.graph(graph, capture_error_mode="thread_local"):
        work()
    for tensor, old in zip(tensors, before, strict=True):
        tensor.copy_(old)
    for generator, state in zip(generators, states, strict=True):
        generator.set_state(state)
    return graph


@contextmanager
def _keeping_garbage() -> Iterator[None]:
    """Nothing is collected within the block: a graph of an earlier run that goes then spoils the one being recorded."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
