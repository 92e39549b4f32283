"""A folder that an export fills: new or empty, and one line if it cannot be written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from optimist.errors import RunFolderError


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """The folder, made if need be; refuses one with content."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise RunFolderError(f"{folder} is not empty; export into a new folder")
        yield folder
    except OSError as error:
        raise RunFolderError(f"cannot write {folder}: {error.strerror or error}") from error
