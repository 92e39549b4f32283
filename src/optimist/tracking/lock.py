"""FolderLock: one writer per run folder, and a crashed one frees it by itself."""

from __future__ import annotations

import fcntl
import os
import weakref
from pathlib import Path
from typing import ClassVar

from optimist.errors import FolderInUse
from optimist.tracking.atomic import disk_errors

LOCK = ".lock"


class FolderLock:
    """The right to write a folder: a kernel lock on its `.lock`, gone with the process, however that ends."""

    held: ClassVar[weakref.WeakSet[FolderLock]] = weakref.WeakSet()

    def __init__(self, folder: Path) -> None:
        with disk_errors(folder):
            self._handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._handle)
            raise FolderInUse(f"{folder} is in use by another process; wait for it or choose another folder") from error
        FolderLock.held.add(self)

    def release(self) -> None:
        """Lets others write."""
        if self in FolderLock.held:
            FolderLock.held.discard(self)
            os.close(self._handle)

    @classmethod
    def forget_in_child(cls) -> None:
        """Closes a forked child's copies: a worker that outlives its trainer must not keep the folder locked."""
        for lock in list(cls.held):
            lock.release()


os.register_at_fork(after_in_child=FolderLock.forget_in_child)
