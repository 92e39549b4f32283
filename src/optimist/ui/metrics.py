"""Points of a metrics.jsonl at a cost that does not grow with the file: lines at even offsets, and the newest ones."""

from __future__ import annotations

import math
import os
import re
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from optimist.reading import open_regular, parse_json

FLOAT = NDArray[np.float64]
WHOLE: Final = 1 << 17
"""A file of at most so many bytes is read whole."""
BLOCK: Final = 1 << 11
LONGEST: Final = 1 << 16
"""Bytes of the longest line that is read."""
SCANNED: Final = 1 << 26
"""A metric that few lines have is searched in the whole file up to this size."""
RARE: Final = 0.5
"""Share of lines below which a metric counts as rare."""
NUMBER: Final = rb"(-?[0-9][0-9.eE+-]*)"
STEP, SPEED = "step", "time/steps_per_second"


def newest_lines(path: Path, size: int = 1 << 14) -> list[dict[str, Any]]:
    """The complete lines in the last bytes of a file, oldest first; damaged lines are left out."""
    try:
        with open_regular(path) as file:
            length = os.fstat(file.fileno()).st_size
            start = max(length - size, 0)
            text = os.pread(file.fileno(), size, start)
    except OSError:
        return []
    lines = text[: text.rfind(b"\n") + 1].splitlines()
    found = []
    for line in lines[1 if start else 0 :]:
        try:
            row = parse_json(line)
        except ValueError:
            continue
        if isinstance(row, dict) and isinstance(row.get(STEP), int | float):
            found.append(row)
    if not found and start and size < LONGEST:
        return newest_lines(path, LONGEST)
    return found


def read_points(path: Path, metric: str, count: int) -> tuple[FLOAT, FLOAT, FLOAT]:
    """Steps, values and steps/s [S] of about `count` lines that have the metric, first and last included."""
    try:
        with open_regular(path) as file:
            handle = file.fileno()
            size = os.fstat(handle).st_size
            whole = size <= WHOLE
            lines = _complete(os.pread(handle, size, 0)) if whole else _spread(handle, size, count)
            rows = _matches(lines, metric)
            if not whole and len(rows) < RARE * len(lines) and size <= SCANNED:
                rows = _matches([line for line in _complete(file.read()) if metric.encode() in line], metric)
    except OSError:
        rows = []
    points = np.array(sorted(dict.fromkeys(rows)), float).reshape(-1, 3)
    points = points[np.isfinite(points[:, :2]).all(1)]
    if len(points) > count:
        points = points[np.linspace(0, len(points) - 1, count).round().astype(int)]
    return points[:, 0], points[:, 1], points[:, 2]


def seconds_at(steps: FLOAT, speeds: FLOAT) -> FLOAT:
    """Seconds of training at each step, from the steps per second between them."""
    usable = np.where(np.isfinite(speeds) & (speeds > 0), speeds, np.nan)
    if not np.isfinite(usable).any():
        return np.full(len(steps), np.nan)
    usable = np.where(np.isnan(usable), np.nanmean(usable), usable)
    seconds: FLOAT = np.cumsum(np.diff(steps, prepend=0.0) / usable)
    return seconds


def _complete(text: bytes) -> list[bytes]:
    """The lines that end with a line break: a last one without is being written."""
    return text[: text.rfind(b"\n") + 1].splitlines()


def _spread(handle: int, size: int, count: int) -> list[bytes]:
    """The line after each of `count` even offsets, and the first and the last."""
    lines = [_line_after(handle, offset) for offset in np.linspace(0, size, count, endpoint=False).astype(int).tolist()]
    last = _complete(os.pread(handle, LONGEST, max(size - LONGEST, 0)))
    return list(dict.fromkeys([line for line in (*lines, *last[-1:]) if line]))


def _line_after(handle: int, offset: int) -> bytes:
    for size in (BLOCK, LONGEST):
        text = os.pread(handle, size, offset)
        start = text.find(b"\n") + 1 if offset else 0
        end = text.find(b"\n", start)
        if end > start > 0 or (end > 0 and not offset):
            return text[start:end]
    return b""


def _matches(lines: list[bytes], metric: str) -> list[tuple[float, float, float]]:
    step, value, speed = (_pattern(name) for name in (STEP, metric, SPEED))
    rows = []
    for line in lines:
        at, found = step.search(line), value.search(line)
        if at and found:
            pace = speed.search(line)
            rows.append((_float(at[1]), _float(found[1]), _float(pace[1]) if pace else math.nan))
    return rows


@lru_cache(maxsize=256)
def _pattern(metric: str) -> re.Pattern[bytes]:
    return re.compile(rb'"' + re.escape(metric.encode()) + rb'":\s*' + NUMBER + rb"\s*[,}]")


def _float(text: bytes) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
