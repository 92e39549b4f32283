"""SIGINT and SIGTERM during a run: a flag between two updates, an exception where nothing can be lost."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any


class Stopped(Exception):
    """A signal came while nothing could be lost."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@dataclass
class Interrupt:
    """What has come, and whether it may raise."""

    signal: int | None = None
    raises: bool = False

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Here a signal stops what is being done, instead of waiting for its end."""
        if self.signal is not None:
            raise Stopped(self.signal)
        self.raises = True
        try:
            yield
        finally:
            self.raises = False


@contextmanager
def interrupts() -> Iterator[Interrupt]:
    """SIGINT and SIGTERM only raise a flag, so that the run can stop between two updates; the same again stops now."""
    interrupt = Interrupt()
    if threading.current_thread() is not threading.main_thread():
        yield interrupt
        return

    def handle(number: int, _: Any) -> None:
        if interrupt.signal == number:  # SIGTERM behind a SIGINT may be of whoever began this process and others
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
