"""Compiled functions, kept on disk where there is a folder for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """Compiled at its first call, and kept for the next process; it holds no lock while it runs."""
    import numba

    try:
        found = numba.njit(nogil=True, cache=True)(function)
    except RuntimeError:  # numba found no folder it may write to: compile anew in each process
        found = numba.njit(nogil=True)(function)
    return cast(Function, found)
