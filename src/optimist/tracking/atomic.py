"""Files that are there whole or not at all: written beside, synced, renamed; a full disk becomes one line."""

from __future__ import annotations

import errno
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from optimist.errors import RunFolderError

_NO_SPACE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_NO_SPACE_WORDS = tuple(f"os error {code}" for code in _NO_SPACE)  # safetensors gives the number only in its text


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Turns what the operating system says while `path` is written into a RunFolderError of one line."""
    try:
        yield
    except (OSError, SafetensorError) as error:
        number = error.errno if isinstance(error, OSError) else None
        if number in _NO_SPACE or any(word in str(error) for word in _NO_SPACE_WORDS):
            reason = "no space left on the disk; what was saved before is untouched; free some space and go on"
        else:
            reason = str(error)
        raise RunFolderError(f"cannot write {path}: {reason}") from error


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """`write(temporary)` beside `path`, then rename: readers see the old file or the new one, never a part."""
    temporary = path.with_name(f".tmp-{path.name}")
    with disk_errors(path):
        try:
            write(temporary)
            sync(temporary)
            os.replace(temporary, path)
            sync(path.parent)
        finally:
            with suppress(FileNotFoundError):
                temporary.unlink()


def write_text(path: Path, text: str) -> None:
    """`text` at `path`, whole or not at all."""
    write_whole(path, lambda temporary: temporary.write_text(text, encoding="utf-8"))


def write_json(path: Path, value: Any) -> None:
    """`value` as indented JSON at `path`, whole or not at all."""
    write_text(path, json.dumps(strict(value), indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def strict(value: Any) -> Any:
    """The value as JSON allows it: numbers that are none become null."""
    if isinstance(value, Mapping):
        return {str(key): strict(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [strict(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def sync(path: Path) -> None:
    """Waits until the file or folder is on the disk (fsync)."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
