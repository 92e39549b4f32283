"""What goes wrong on a GPU, as one line each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

from optimist.errors import DeviceError

FULL = ("out of memory", "STATUS_ALLOC_FAILED")
"""How CUDA and its libraries say that there is no memory left, where torch did not ask for it itself."""
BROKEN = ("CUDA error", "CUDA driver", "cuDNN error", "CUDNN_STATUS", "CUBLAS_STATUS")
ADVICE = "lower env.num_envs, opr.max_episode_steps or opr.capacity_transitions in a new run"


@contextmanager
def explained(how_to_go_on: Callable[[], str]) -> Iterator[None]:
    """Errors of the GPU during a run, with what to do; the checkpoints of the run are safe."""
    try:
        yield
    except RuntimeError as error:
        reason = explanation(error)
        if reason is None:
            raise
        raise DeviceError(f"{reason}; {how_to_go_on()}") from error


def explanation(error: BaseException) -> str | None:
    """What happened to the GPU and what helps, on one line; None if it is not the GPU's fault."""
    told = str(error)
    of_gpu = any(sign in told for sign in BROKEN)
    if isinstance(error, torch.OutOfMemoryError) or (of_gpu and any(sign in told for sign in FULL)):
        return f"the GPU is out of memory: stop what else runs there, or {ADVICE}"
    if isinstance(error, RuntimeError) and of_gpu:
        return f"the GPU no longer answers ({told.splitlines()[0]}): look at nvidia-smi"
    return None
