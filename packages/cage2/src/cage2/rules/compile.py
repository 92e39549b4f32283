"""Compilation of the rules: small functions are inlined into a few kernels, and only kernels are cached on disk.

The name of a cached kernel contains a digest of all files with compiled functions, because Numba itself notices changes
in the kernel's own file only.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core import event

Function = TypeVar("Function", bound=Callable[..., Any])


COMPILED = ("rules/*.py", "expert/*.py", "cardiff_rules.py")
"""Files of the package with compiled functions."""


def source_digest(folder: Path) -> str:
    """Eight hex digits that change with any of the package's compiled files."""
    files = sorted(file for pattern in COMPILED for file in folder.glob(pattern))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:8]


SOURCE_DIGEST = source_digest(Path(__file__).parents[1])


def rule(function: Function) -> Function:
    """Compile a part of the rules of one game into the kernels that call it."""
    return cast(Function, numba.njit(nogil=True)(function))


def kernel(function: Function) -> Function:
    """Compile an entry point from Python at its first call and cache it on disk; it releases the GIL."""
    function.__qualname__ = f"{function.__qualname__}_{SOURCE_DIGEST}"  # part of the cache file's name
    try:
        return cast(Function, numba.njit(nogil=True, cache=True)(function))
    except RuntimeError:  # no writable cache folder: each process compiles its own
        return cast(Function, numba.njit(nogil=True)(function))


class _CompilationMessage(event.Listener):
    """Prints one line at the first compilation."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.printed = False

    def on_start(self, event: Any) -> None:
        if not self.printed:
            print(f"cage2: compiling {self.what} (once; cached for later runs) ...", file=sys.stderr, flush=True)
            self.printed = True

    def on_end(self, event: Any) -> None:
        pass


@contextmanager
def announce_compilation(what: str) -> Iterator[None]:
    """Within this block, print one line on stderr if Numba compiles; loading from the cache prints nothing."""
    with event.install_listener("numba:compile", _CompilationMessage(what)):
        yield
