"""The runs below a folder: where they are, what they do now, and names that cannot lead elsewhere."""

from __future__ import annotations

import os
import re
import threading
import time
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np

from optimist.errors import OptimistError, RunFolderError
from optimist.reading import printable, read_json, read_text
from optimist.report.identify import identify
from optimist.report.rows import ROWS, read_rows
from optimist.report.runs import CONFIG, METRICS, RETURN, SUMMARY, Curve
from optimist.tracking.files import LOCK
from optimist.ui.metrics import newest_lines, read_points

Status = Literal["running", "stopped", "failed", "finished", "broken"]
DEPTH: Final = 4
"""Levels of folders below the runs folder in which runs are found."""
FRESH: Final = 0.9
"""Seconds for which a scan is used again."""
SPARK_POINTS: Final = 60
STALLED: Final = 600.0
"""Seconds without a new line after which a running run is called stalled."""
SKIPPED: Final = ("checkpoints", "tensorboard", "__pycache__")
HUGE: Final = 1 << 28
ERROR: Final = "error.txt"
"""Why a training failed, in the folder of its run."""


@dataclass
class RunInfo:
    """What the table shows of a run."""

    name: str
    """Its folder below the runs folder, or FILE:LINE of a results file."""
    path: Path
    status: Status = "stopped"
    note: str = ""
    method: str = "–"
    family: str = ""
    env: str = "–"
    preset: str = ""
    seed: int | None = None
    steps: int = 0
    budget: int = 0
    rate: float | None = None
    value: float | None = None
    spark: tuple[tuple[float, float], ...] = ()
    metrics: tuple[str, ...] = ()
    memory: bool = False
    pid: int | None = None
    curve: Curve | None = None
    frames: int = 1
    """Frames of a step."""

    @property
    def share(self) -> float:
        """Share of the budget that is done."""
        return min(self.steps / self.budget, 1.0) if self.budget else 0.0

    @property
    def left(self) -> float | None:
        """Seconds to the end at the current speed."""
        return (self.budget - self.steps) / self.rate if self.status == "running" and self.rate else None

    @property
    def is_folder(self) -> bool:
        """Whether it is a run folder, and not a row of a results file."""
        return self.curve is None


@dataclass
class _Kept:
    """What is known of a run folder as long as its files do not change."""

    signature: tuple[Any, ...] = ()
    info: RunInfo | None = None
    config: dict[str, Any] = field(default_factory=dict)


class RunsFolder:
    """All runs below a folder; symbolic links are not followed."""

    def __init__(self, root: Path) -> None:
        if not root.is_dir():
            raise RunFolderError(f"RUNS_DIR does not exist: {root}; give a folder with runs")
        self.root = root.resolve()
        self._kept: dict[str, _Kept] = {}
        self._rows: dict[Path, tuple[float, list[RunInfo]]] = {}
        self._found: tuple[float, list[RunInfo]] = (-1e9, [])
        self._lock = threading.Lock()

    def scan(self) -> list[RunInfo]:
        """Every run, in the order of names; a scan of the last second is used again."""
        with self._lock:
            if time.monotonic() - self._found[0] > FRESH:
                pids, seen, runs = _lock_holders(), set(), list[RunInfo]()
                for path in _walk(self.root, DEPTH):
                    if path.name == CONFIG:
                        name = path.parent.relative_to(self.root).as_posix()
                        seen.add(name)
                        runs.append(self._run(name, path.parent, pids))
                    else:
                        runs += self._rows_of(path)
                for name in self._kept.keys() - seen:
                    del self._kept[name]
                self._found = time.monotonic(), sorted(runs, key=lambda run: _natural(run.name))
            return self._found[1]

    def forget(self) -> None:
        """Look again at the next scan."""
        self._found = (-1e9, [])

    def get(self, name: str) -> RunInfo:
        """The run of this name."""
        run = next((run for run in self.scan() if run.name == name), None)
        if run is None:
            raise RunFolderError(f"no run '{name[:80]}' in this folder; it may have been deleted")
        return run

    def path(self, name: str) -> Path:
        """The folder of a run: one that was found below the runs folder, and nothing else."""
        run = self.get(name)
        if not run.is_folder:
            raise RunFolderError(f"{name} is a row of a results file; only run folders have checkpoints")
        return run.path

    def _run(self, name: str, path: Path, pids: dict[int, int]) -> RunInfo:
        kept = self._kept.setdefault(name, _Kept())
        stats = {file: _stat(path / file) for file in (CONFIG, METRICS, SUMMARY, LOCK, ERROR)}
        lock = stats[LOCK]
        pid = None if lock is None else pids.get(lock.st_ino)
        written = stats[METRICS] or stats[CONFIG]
        idle = time.time() - written.st_mtime if written else 0.0
        signature = (
            *((s.st_mtime_ns, s.st_size, s.st_ino) if s else None for f, s in stats.items() if f != LOCK),
            pid,
            idle > STALLED,
        )
        if kept.info is None or signature != kept.signature:
            kept.signature, kept.info = signature, read_folder(name, path, pid, idle)
        return kept.info

    def _rows_of(self, path: Path) -> list[RunInfo]:
        stat = _stat(path)
        changed = stat.st_mtime if stat else 0.0
        if path not in self._rows or self._rows[path][0] != changed:
            runs, _ = read_rows(path, path.relative_to(self.root).as_posix())
            self._rows[path] = changed, [_row_info(run, path) for run in runs]
        return self._rows[path][1]


def read_folder(name: str, path: Path, pid: int | None, idle: float) -> RunInfo:
    """What a run folder says now; a damaged file becomes a note."""
    info = RunInfo(name, path, pid=pid)
    try:
        config = tomllib.loads(read_text(path / CONFIG))
        identity = identify(config)
        info.seed, info.budget = int(config["seed"]), int(config["total_steps"])
    except FileNotFoundError:
        info.status, info.note = "broken", "deleted while this page was open"
        return info
    except (OSError, UnicodeDecodeError, ValueError, KeyError, TypeError, AttributeError, OptimistError) as error:
        info.status, info.note = "broken", f"{CONFIG} cannot be read: {_short(error)}"
        return info
    info.method, info.family, info.env, info.preset = identity.method, identity.family, identity.env, identity.preset
    info.memory = bool((config.get("opr") or {}).get("enabled"))
    info.frames = 4 if info.family == "Atari" else 1
    summary = _summary(path / SUMMARY, info)
    _read_metrics(path / METRICS, info)
    failure = path / ERROR
    if summary is not None:
        info.status, info.rate = "finished", _number(summary.get("time/steps_per_second")) or info.rate
        info.budget = int(_number(summary.get("steps")) or info.budget)
    elif pid is not None:
        info.status = "running"
        if idle > STALLED:
            info.note = f"no new line for {idle / 60:.0f} minutes"
    elif failure.exists():
        info.status, info.note = "failed", " ".join(printable(read_text(failure)).split())[:160]
    if info.status != "running" and summary is None:
        info.rate = None
    return info


def _read_metrics(path: Path, info: RunInfo) -> None:
    lines, stat = newest_lines(path), _stat(path)
    if stat is not None and stat.st_size and not lines:
        info.note = f"{METRICS} has no complete line"
    elif stat is not None and stat.st_size > HUGE:
        info.note = f"{METRICS} has {stat.st_size / 1e6:,.0f} MB; its curves are thinned"
    if not lines:
        return
    last = {key: value for line in lines for key, value in line.items()}
    info.steps, info.rate = int(last["step"]), _number(last.get("time/steps_per_second"))
    info.metrics = tuple(key for key, value in last.items() if key != "step" and _number(value) is not None)
    info.value = _number(last.get(RETURN))
    steps, values, _ = read_points(path, RETURN, SPARK_POINTS)
    info.spark = tuple(zip(steps.tolist(), values.tolist(), strict=True))
    if info.value is None and info.spark:
        info.value = info.spark[-1][1]


def _summary(path: Path, info: RunInfo) -> dict[str, Any] | None:
    if not path.exists():
        return None
    try:
        summary = read_json(path)
        if isinstance(summary, dict):
            return summary
    except (OSError, ValueError):
        pass
    info.note = f"{SUMMARY} is damaged"
    return None


def _row_info(run: Any, path: Path) -> RunInfo:
    curve = run.curves.get(RETURN) or Curve(np.zeros(0), np.zeros(0))
    spark = tuple(zip(curve.steps.tolist(), curve.values.tolist(), strict=True))
    value = next((score.value for score in run.scores.values()), None)
    return RunInfo(
        run.name, path, "finished", "", run.method, run.identity.family, run.env, run.identity.preset, run.seed,
        run.steps, run.budget, None, value, spark[:: max(1, len(spark) // SPARK_POINTS)], (RETURN,), curve=curve,
        frames=4 if run.identity.family == "Atari" else 1,
    )  # fmt: skip


def _walk(folder: Path, depth: int) -> Iterator[Path]:
    """The config of each run folder, and each results file, below a folder."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return
    names = {entry.name for entry in entries if entry.is_file(follow_symlinks=False)}
    if CONFIG in names:
        yield folder / CONFIG
        return
    if ROWS in names:
        yield folder / ROWS
    for entry in entries:
        hidden = entry.name.startswith(".") or entry.name in SKIPPED
        if depth and not hidden and entry.is_dir(follow_symlinks=False):
            yield from _walk(folder / entry.name, depth - 1)


def _lock_holders() -> dict[int, int]:
    """Inode of each locked file → the process that holds the lock; some file systems report another device."""
    holders = {}
    try:
        lines = Path("/proc/locks").read_text().splitlines()
    except OSError:
        return {}
    for line in lines:
        match = re.search(r"FLOCK\s+\S+\s+WRITE\s+(\d+)\s+[0-9a-f]+:[0-9a-f]+:(\d+)", line)
        if match:
            holders[int(match[2])] = int(match[1])
    return holders


def _stat(path: Path) -> os.stat_result | None:
    try:
        return path.lstat()
    except OSError:
        return None


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _short(error: Exception) -> str:
    return " ".join(str(getattr(error, "strerror", None) or error).split())[:120] or type(error).__name__


@lru_cache(maxsize=4096)
def _natural(name: str) -> tuple[Any, ...]:
    """Names sort by the numbers in them: run-2 before run-10."""
    return tuple((int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", name))
