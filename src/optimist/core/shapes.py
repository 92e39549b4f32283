"""require_same_shape: the check in front of every equation that combines tensors."""

from __future__ import annotations

from torch import Tensor

from optimist.errors import ShapeMismatch


def require_same_shape(**tensors: Tensor) -> None:
    """Raise ShapeMismatch, naming both, if two of the given tensors differ in shape."""
    (first, expected), *others = tensors.items()
    for name, tensor in others:
        if tensor.shape != expected.shape:
            raise ShapeMismatch(
                f"{name} is {list(tensor.shape)} but {first} is {list(expected.shape)}; both must match"
            )
