"""Memory of the host that a GPU reads by itself."""

from __future__ import annotations

import weakref
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor


def pinned(array: NDArray[Any]) -> Tensor:
    """The array as a tensor that stays where it is and that a GPU can copy from while the host goes on."""
    tensor = torch.from_numpy(array)
    if not tensor.is_pinned():
        runtime, address = torch.cuda.cudart(), tensor.data_ptr()  # type: ignore[no-untyped-call]
        torch.cuda.check_error(runtime.cudaHostRegister(address, tensor.nbytes, 0))
        weakref.finalize(array.base if array.base is not None else array, runtime.cudaHostUnregister, address)
    return tensor
