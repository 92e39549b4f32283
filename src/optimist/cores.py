"""CPU cores: how many this process may use, and lower priorities of processes and threads."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from optimist.errors import OptimistError

Made = TypeVar("Made")
HAS_IDLE_PRIORITY = hasattr(os, "SCHED_IDLE")
"""Whether the system has an idle priority (Linux)."""


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def be_nice() -> None:
    """Lower the priority of this process and of the processes it starts."""
    if hasattr(os, "nice"):
        os.nice(10)


def is_nice() -> bool:
    """Return whether this process has a lower priority than normal."""
    return hasattr(os, "getpriority") and os.getpriority(os.PRIO_PROCESS, 0) > 0


def be_idle() -> None:
    """Give this thread idle priority: it runs only on cores that nothing else needs."""
    try:
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))  # 0: this thread
    except OSError as error:
        raise OptimistError(f"cannot lower the priority of threads here: {error.strerror}") from error


def at_idle_priority(make: Callable[[], Made]) -> Made:
    """Call `make` with idle priority for the threads it starts, and return its result.

    A thread inherits the priority of the thread that starts it, so `make` runs in a temporary thread.
    """

    def work() -> Made:
        be_idle()
        return make()

    with ThreadPoolExecutor(1, "idle") as thread:
        return thread.submit(work).result()
