"""The cores of this computer: how many there are to use, and threads that leave them to others."""

from __future__ import annotations

import os
from collections.abc import Callable
from threading import Thread
from typing import TypeVar

from optimist.errors import OptimistError

Made = TypeVar("Made")
HAS_IDLE_PRIORITY = hasattr(os, "SCHED_IDLE")
"""Linux has it."""


def available_cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def be_nice() -> None:
    """From now on this process, and whatever it begins, steps back behind others."""
    if hasattr(os, "nice"):
        os.nice(10)


def is_nice() -> bool:
    """Whether this process was asked to step back behind others."""
    return hasattr(os, "getpriority") and os.getpriority(os.PRIO_PROCESS, 0) > 0


def be_idle() -> None:
    """From now on this thread runs only where nobody else wants the core."""
    try:
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))  # 0: this thread
    except OSError as error:
        raise OptimistError(f"cannot lower the priority of threads here: {error.strerror}") from error


def at_idle_priority(make: Callable[[], Made]) -> Made:
    """What `make` returns. Threads that it starts run only where nobody else wants the core; the caller's stay as is.

    Every thread takes over the priority of the one that starts it, so `make` runs in a thread that lives for it alone.
    """
    made: list[Made] = []
    failed: list[BaseException] = []

    def work() -> None:
        try:
            be_idle()
            made.append(make())
        except BaseException as error:
            failed.append(error)

    thread = Thread(target=work, name="idle")
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return made[0]
