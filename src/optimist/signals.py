"""Signals and the processes of a run."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def children_without_ctrl_c() -> Iterator[None]:
    """Processes begun here do not mind Ctrl-C, which reaches a whole group: it is for the one that began them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
