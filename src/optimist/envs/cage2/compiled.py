"""How the rules are compiled: small functions go into a few kernels, and only the kernels are cached on disk.

A kernel's cache carries a digest of every file it is made of. Numba by itself looks at the kernel's own file only and
would go on using old rules after a change in another one.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar, cast

from optimist.envs.compiling import compiled
from optimist.errors import missing_extra

try:
    import numba
    from numba.core import event
except ImportError as error:
    raise missing_extra("the CAGE-2 simulator", "cage2", "numba") from error

Function = TypeVar("Function", bound=Callable[..., Any])


RULE_FILES = (
    "actions.py",
    "attacks.py",
    "blue.py",
    "cardiff_rules.py",
    "chance.py",
    "compiled.py",
    "dynamics.py",
    "expert_actions.py",
    "expert_features.py",
    "expert_kernels.py",
    "expert_memory.py",
    "kernels.py",
    "network.py",
    "observe.py",
    "red.py",
    "rewards.py",
    "state.py",
)
"""The files that end up in the kernels."""


def _digest() -> str:
    """Eight hex digits that change whenever one of the rule files does."""
    sources = (Path(__file__).with_name(name).read_bytes() for name in RULE_FILES)
    return hashlib.sha256(b"".join(sources)).hexdigest()[:8]


RULES_DIGEST = _digest()


def rule(function: Function) -> Function:
    """A piece of the rules of one game, compiled into whichever kernel calls it."""
    return cast(Function, numba.njit(nogil=True)(function))


def kernel(function: Function) -> Function:
    """An entry point from Python, compiled at its first call and kept on disk; it holds no lock while it runs."""
    function.__qualname__ = f"{function.__qualname__}_{RULES_DIGEST}"  # names the cache file
    return compiled(function)


class _Announcer(event.Listener):
    """Says once that a compilation has begun."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.said = False

    def on_start(self, event: Any) -> None:
        if not self.said:
            print(f"optimist: compiling {self.what} (once; kept for the next time) ...", file=sys.stderr, flush=True)
            self.said = True

    def on_end(self, event: Any) -> None:
        pass


@contextmanager
def announce_compilation(what: str) -> Iterator[None]:
    """Within this block a compilation is announced by one line on stderr; taking code from the cache is not."""
    with event.install_listener("numba:compile", _Announcer(what)):
        yield
