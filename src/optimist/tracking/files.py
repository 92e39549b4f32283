"""Atomic file writes, disk errors as one line, and the lock of a folder."""

from __future__ import annotations

import errno
import fcntl
import json
import math
import os
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar

from safetensors import SafetensorError

from optimist.errors import FolderInUse, RunFolderError

LOCK = ".lock"
_NO_SPACE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_NO_SPACE_WORDS = tuple(f"os error {code}" for code in _NO_SPACE)  # safetensors has the number in its text only


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Raise failures to write `path` as a RunFolderError."""
    try:
        yield
    except (OSError, SafetensorError) as error:
        raise disk_error(path, error) from error


def disk_error(path: Path, error: Exception) -> RunFolderError:
    """The failure to write `path` as one line."""
    number, reason = getattr(error, "errno", None), str(error)
    if number in _NO_SPACE or any(word in reason for word in _NO_SPACE_WORDS):
        reason = "no space left on the disk; earlier files are unchanged; free some space and resume"
    return RunFolderError(f"cannot write {path}: {reason}")


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Call `write(temporary)` and rename the result to `path`: readers see the old file or the new one."""
    temporary = path.with_name(f".tmp-{path.name}")
    with disk_errors(path):
        temporary.unlink(missing_ok=True)  # it may be a link
        try:
            write(temporary)
            sync(temporary)
            os.replace(temporary, path)
            sync(path.parent)
        finally:
            with suppress(FileNotFoundError):
                temporary.unlink()


def write_text(path: Path, text: str) -> None:
    """Write `text` to `path` atomically."""
    write_whole(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))


def write_json(path: Path, value: Any) -> None:
    """Write `value` to `path` as indented JSON, atomically."""
    write_text(path, json.dumps(strict(value), indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def strict(value: Any) -> Any:
    """The value as JSON allows it: nan and infinities become null."""
    if isinstance(value, Mapping):
        return {str(key): strict(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [strict(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def create_empty(folder: Path) -> None:
    """Create a folder; raises if it has content."""
    with disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise RunFolderError(f"{folder} is not empty; choose another folder")


def sync(path: Path) -> None:
    """Wait until the file or folder is on the disk (fsync)."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class FolderLock:
    """Exclusive write access to a folder: a kernel lock on its `.lock`, released when the process exits."""

    held: ClassVar[weakref.WeakSet[FolderLock]] = weakref.WeakSet()

    def __init__(self, folder: Path) -> None:
        with disk_errors(folder):
            self._handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._handle)
            raise FolderInUse(f"{folder} is in use by another process; wait for it or choose another folder") from error
        FolderLock.held.add(self)

    def release(self) -> None:
        """Release the lock."""
        if self in FolderLock.held:
            FolderLock.held.discard(self)
            os.close(self._handle)

    @classmethod
    def release_in_child(cls) -> None:
        """Close a forked child's copies: a worker that outlives its trainer must not keep the folder locked."""
        for lock in list(cls.held):
            lock.release()


os.register_at_fork(after_in_child=FolderLock.release_in_child)
