"""A GPU wakes up beside other work: loading its context and libraries takes seconds and hardly any Python."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Thread

import torch
from torch.nn.functional import conv2d, linear


@contextmanager
def waking(device: torch.device) -> Iterator[None]:
    """While the block is at work, a CUDA device loads what convolutions and products need; else just the block.

    Where the block is done first, what optimisers need is loaded in the meantime: some seconds' worth of Python.
    Nothing is drawn and nothing kept. What fails here fails again where it is needed, and is explained there.
    """
    if device.type != "cuda":
        yield
        return
    thread = Thread(target=_touch, args=(device,), name="waking", daemon=True)
    thread.start()
    try:
        yield
        torch.optim.SGD([torch.empty(1)], lr=0.0)  # the first optimiser of a process loads torch's compiler
    finally:
        thread.join()


def _touch(device: torch.device) -> None:
    with suppress(RuntimeError):
        images = torch.zeros(8, 4, 84, 84, device=device, requires_grad=True)
        kernels = torch.zeros(32, 4, 8, 8, device=device, requires_grad=True)
        seen = conv2d(images, kernels, stride=4).flatten(1)
        weights = torch.zeros(64, seen.shape[1], device=device, requires_grad=True)
        torch.autograd.grad(linear(seen, weights).sum(), [images, kernels, weights])
        torch.cuda.synchronize(device)
