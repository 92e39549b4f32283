"""GPU errors as one line each, initialisation of a GPU in the background, and pinned memory."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Thread
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import conv2d, linear

from optimist.errors import DeviceError

GPU_ERRORS = ("CUDA error", "CUDA driver", "cuDNN error", "CUDNN_STATUS", "CUBLAS_STATUS")
"""Parts of the messages of CUDA and its libraries."""
OUT_OF_MEMORY = ("out of memory", "STATUS_ALLOC_FAILED")
"""Parts of those messages where memory is exhausted; torch's own allocator raises OutOfMemoryError."""
SETTINGS_TO_LOWER = "env.num_envs, opr.max_episode_steps or opr.capacity_transitions"


@contextmanager
def as_device_errors(resume_hint: Callable[[], str]) -> Iterator[None]:
    """Re-raise errors of the GPU as DeviceError, with the command that resumes the run."""
    try:
        yield
    except RuntimeError as error:
        message = gpu_error_message(error)
        if message is None:
            raise
        raise DeviceError(f"{message}; {resume_hint()}") from error


def gpu_error_message(error: BaseException) -> str | None:
    """What failed on the GPU and what to do, on one line; None for any other error."""
    text = str(error)
    of_gpu = any(part in text for part in GPU_ERRORS)
    if isinstance(error, torch.OutOfMemoryError) or (of_gpu and any(part in text for part in OUT_OF_MEMORY)):
        return f"the GPU is out of memory; stop other programs on it, or lower {SETTINGS_TO_LOWER} in a new run"
    if isinstance(error, RuntimeError) and of_gpu:
        return f"the GPU failed ({text.splitlines()[0]}); check it with nvidia-smi"
    return None


@contextmanager
def initializing_gpu(device: torch.device) -> Iterator[None]:
    """Load the kernels of a CUDA device in a thread while the block runs; on a CPU the block runs alone.

    After the block, while the thread may still run, torch's optimisers are imported, which takes seconds. No random
    number is drawn. An error of the GPU is left to the first operation that needs the GPU.
    """
    if device.type != "cuda":
        yield
        return
    thread = Thread(target=_load_kernels, args=(device,), name="initializing_gpu", daemon=True)
    thread.start()
    try:
        yield
        torch.optim.SGD([torch.empty(1)], lr=0.0)  # the first optimiser of a process imports torch's compiler
    finally:
        thread.join()


def _load_kernels(device: torch.device) -> None:
    with suppress(RuntimeError):
        images = torch.zeros(8, 4, 84, 84, device=device, requires_grad=True)
        kernels = torch.zeros(32, 4, 8, 8, device=device, requires_grad=True)
        features = conv2d(images, kernels, stride=4).flatten(1)
        weights = torch.zeros(64, features.shape[1], device=device, requires_grad=True)
        torch.autograd.grad(linear(features, weights).sum(), [images, kernels, weights])
        torch.cuda.synchronize(device)


def pinned(array: NDArray[Any]) -> Tensor:
    """The array as a tensor in pinned memory, at the same address; a GPU copies from it while the host continues."""
    tensor = torch.from_numpy(array)
    if not tensor.is_pinned():
        runtime, address = torch.cuda.cudart(), tensor.data_ptr()  # type: ignore[no-untyped-call]
        torch.cuda.check_error(runtime.cudaHostRegister(address, tensor.nbytes, 0))
        weakref.finalize(array.base if array.base is not None else array, runtime.cudaHostUnregister, address)
    return tensor
