"""CUDA graphs: work on fixed tensors, captured once and replayed at the cost of one launch; and side streams."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

import torch
from torch import Tensor

NUM_WARMUPS = 3
"""Runs before the capture, in which libraries choose their kernels and allocate their workspaces."""
Result = TypeVar("Result")


def capture(
    work: Callable[[], None], *, generators: Sequence[torch.Generator] = (), restored: Iterable[Tensor] = ()
) -> torch.cuda.CUDAGraph:
    """Capture `work` as a graph. The warm-up has no effect: `restored` tensors and generators are reset after it.

    `work` reads and writes tensors at fixed addresses, and never synchronises with the device.
    """
    tensors = list(restored)
    before = [tensor.clone() for tensor in tensors]
    states = [generator.get_state() for generator in generators]
    side, main = torch.cuda.Stream(), torch.cuda.current_stream()  # type: ignore[no-untyped-call]
    side.wait_stream(main)
    with torch.cuda.stream(side):
        for _ in range(NUM_WARMUPS):
            work()
    main.wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    for generator in generators:
        graph.register_generator_state(generator)
    # Another thread may be collecting a rollout, and may allocate memory.
    with _without_garbage_collection(), torch.cuda.graph(graph, capture_error_mode="thread_local"):
        work()
    for tensor, old in zip(tensors, before, strict=True):
        tensor.copy_(old)
    for generator, state in zip(generators, states, strict=True):
        generator.set_state(state)
    return graph


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Suspend garbage collection: destroying an earlier run's graph invalidates a running capture."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class SideStream:
    """A second stream for small kernels that need not wait for each other; without CUDA the work runs at once.

    torch hands out 32 streams in turn, so this may be the stream of the capture itself. There, memory that Python
    releases is used again at once, though another side stream has yet to read it. `result` keeps it until `start`.
    """

    def __init__(self, device: torch.device | None) -> None:
        on_gpu = device is not None and device.type == "cuda"
        self.stream = torch.cuda.Stream(device) if on_gpu else None  # type: ignore[no-untyped-call]
        self.result: object = None

    def start(self, work: Callable[[], Result]) -> Callable[[], Result]:
        """Start `work` and return a function that waits for its result.

        Call that function before what `work` reads changes, and before the next `start`.
        """
        if self.stream is None:
            result = work()
            return lambda: result
        side = self.stream
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            self.result = result = work()

        def joined() -> Result:
            torch.cuda.current_stream().wait_stream(side)
            return result

        return joined
