"""SIGINT and SIGTERM: child processes that ignore Ctrl-C, and runs that stop between two updates."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any


@contextmanager
def children_without_ctrl_c() -> Iterator[None]:
    """Processes started here ignore Ctrl-C, which a terminal sends to the whole group: their parent handles it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


class Stopped(Exception):
    """A signal stops the run; `hint` is added to what the user reads."""

    def __init__(self, number: int, hint: str = "") -> None:
        super().__init__(number, hint)
        self.number, self.hint = number, hint


@dataclass
class Interrupt:
    """The signal received, if any, and whether the next one raises `Stopped`."""

    signal: int | None = None
    raises: bool = False

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Within this block a signal raises `Stopped` immediately."""
        if self.signal is not None:
            raise Stopped(self.signal)
        self.raises = True
        try:
            yield
        finally:
            self.raises = False


@contextmanager
def interrupts() -> Iterator[Interrupt]:
    """Record SIGINT and SIGTERM instead of raising; the same signal again kills the process."""
    interrupt = Interrupt()
    if threading.current_thread() is not threading.main_thread():
        yield interrupt
        return

    def handle(number: int, _: Any) -> None:
        if interrupt.signal == number:  # a SIGTERM after a SIGINT may come from a scheduler that sends both
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        interrupt.signal = number
        if interrupt.raises:
            interrupt.raises = False
            raise Stopped(number)

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield interrupt
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
