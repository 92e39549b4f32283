"""metrics.jsonl: one JSON line per logged update, safe to cut and to go on with."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from optimist.errors import RunFolderError
from optimist.tracking.atomic import disk_errors


class MetricsLog:
    """metrics.jsonl, appended and flushed line by line; a line is there whole or, after a kill, cut away on opening."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with disk_errors(path):
            path.touch()
            os.truncate(path, _whole_lines(path))
            self._file = path.open("ab", buffering=0)

    @property
    def offset(self) -> int:
        """Bytes written so far; a checkpoint records this."""
        return self._file.tell()

    def append(self, step: int, metrics: Mapping[str, Any]) -> None:
        """One line `{"step": …, …}`; what is not finite is written as null, for JSON has no word for it."""
        line = {"step": step} | {name: plain(value) for name, value in metrics.items()}
        with disk_errors(self.path):
            rest = json.dumps(line, allow_nan=False).encode() + b"\n"
            while rest:
                rest = rest[self._file.write(rest) :]

    def sync(self) -> int:
        """Waits until all lines are on the disk; returns the offset after the last one."""
        with disk_errors(self.path):
            os.fsync(self._file.fileno())
        return self.offset

    def truncate(self, offset: int) -> None:
        """Cuts the log back to what it was when a checkpoint recorded `offset`."""
        content = self.path.read_bytes()
        if len(content) < offset or (offset and content[offset - 1 : offset] != b"\n"):
            raise RunFolderError(
                f"{self.path} was changed: it has {len(content):,} bytes, and the checkpoint was saved at the end of a "
                f"line after {offset:,}; put it back as it was, or train a new run"
            )
        with disk_errors(self.path):
            self._file.truncate(offset)
            self._file.seek(offset)

    def close(self) -> None:
        """Closes the file; the lines are already in it."""
        self._file.close()


def plain(value: Any) -> float | int | str | None:
    """A number as JSON writes it: tensors and numpy scalars unpacked, nan and infinities as None."""
    if isinstance(value, bool | int | str) or value is None:
        return value
    number = float(value)
    return number if math.isfinite(number) else None


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """The lines of a metrics.jsonl, null as nan; a half-written last line is left out."""
    text = path.read_bytes()[: _whole_lines(path)].decode()
    lines = [json.loads(line) for line in text.splitlines()]
    return [{name: math.nan if value is None else value for name, value in line.items()} for line in lines]


def _whole_lines(path: Path) -> int:
    """Bytes up to and with the last newline."""
    return path.read_bytes().rfind(b"\n") + 1
