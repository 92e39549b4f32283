"""The folder of a sweep: its lock, its plan, its events, and the run folders and logs in it."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import time
import uuid
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from optimist.errors import FolderInUse, RunFolderError
from optimist.reading import MIB, open_regular, parse_json, read_json, read_lines, read_text
from optimist.tracking.files import LOCK, FolderLock, disk_errors, write_json, write_text

PLAN, ROWS, TABLE, TOKEN, EVENTS, SCORE = "plan.json", "runs.jsonl", "table.md", ".token", "events.jsonl", "score.json"
PLAN_BYTES = 64 * MIB
"""Largest `plan.json`."""
_CHECKPOINT = re.compile(r"step-(\d+)")


class SweepFolder:
    """`runs/NAME` and `logs/NAME.log` of each run, `plan.json`, `events.jsonl`; in the end `runs.jsonl`, `table.md`.

    A folder with published results has `runs.jsonl` alone: rows without a run folder count as finished runs.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()

    def check(self) -> None:
        """Raise if the path is a file, or a folder with content that no sweep wrote."""
        if self.path.exists() and not self.path.is_dir():
            raise RunFolderError(f"{self.path} is a file; a sweep needs a folder")
        content = {entry.name for entry in self.path.iterdir()} if self.path.exists() else set()
        if content - {LOCK, TOKEN} and not content & {PLAN, ROWS}:
            raise RunFolderError(f"{self.path} is not empty and has no {PLAN}; choose another folder with --out DIR")

    def lock(self, timeout: float = 1.0) -> FolderLock:
        """Create the folder if needed and lock it. Retry until `timeout`: `is_locked` holds the lock briefly."""
        self.check()
        with disk_errors(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
        until = time.monotonic() + timeout
        while True:
            try:
                lock = FolderLock(self.path)
                break
            except FolderInUse as error:
                if time.monotonic() > until:
                    raise FolderInUse(
                        f"{self.path} is in use by another process; see: optimist sweep status {self.path}"
                    ) from error
                time.sleep(0.05)
        if not (self.path / TOKEN).exists():
            write_text(self.path / TOKEN, uuid.uuid4().hex)
        return lock

    @property
    def is_locked(self) -> bool:
        """Whether a process works in the folder now."""
        try:
            handle = os.open(self.path / LOCK, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
        finally:
            os.close(handle)
        return False

    @cached_property
    def token(self) -> str:
        """Random text by which other machines recognize the folder; empty if the file is missing."""
        with suppress(OSError):
            return read_text(self.path / TOKEN)
        return ""

    def read_plan(self) -> dict[str, Any]:
        """`plan.json`: `statistic`, and `runs` with a record of each run."""
        path = self.path / PLAN
        if not path.is_file():
            raise RunFolderError(f"{self.path} is not the folder of a sweep: it has no {PLAN}")
        try:
            document: dict[str, Any] = read_json(path, PLAN_BYTES)
            document["statistic"], document["runs"]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise RunFolderError(f"{path} is damaged ({error}); move the folder away") from error
        return document

    def write_plan(self, document: Mapping[str, Any]) -> None:
        """Replace `plan.json` atomically."""
        write_json(self.path / PLAN, document)

    def read_rows(self) -> list[dict[str, Any]]:
        """The rows of `runs.jsonl`; empty if there is none."""
        path = self.path / ROWS
        try:
            rows = [parse_json(line) for line in read_lines(path)]
            if not all(isinstance(row, dict) and "run" in row for row in rows):
                raise ValueError("a row without 'run'")
        except FileNotFoundError:
            return []
        except (OSError, ValueError) as error:
            raise RunFolderError(f"{path} is damaged ({error}); move it away") from error
        return rows

    @cached_property
    def published(self) -> dict[str, dict[str, Any]]:
        """Run name → its row in `runs.jsonl`, for rows that have no run folder."""
        return {row["run"]: row for row in self.read_rows() if "folder" not in row}

    def run_path(self, name: str) -> Path:
        """The run folder."""
        return self.path / "runs" / name

    def log_path(self, name: str) -> Path:
        """The file with the output and tracebacks of the run's processes."""
        return self.path / "logs" / f"{name.replace('/', '_')}.log"

    def log(self, name: str, text: str) -> None:
        """Append to the run's log."""
        path = self.log_path(name)
        with disk_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a", encoding="utf-8") as file:
                file.write(text)

    def add_event(self, run: str, event: str, **more: Any) -> None:
        """Append a line to `events.jsonl`."""
        moment = datetime.now(UTC).isoformat(timespec="seconds")
        line = {"time": moment, "run": run, "event": event} | more
        path = self.path / EVENTS
        with disk_errors(path), path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")

    def last_events(self) -> dict[str, dict[str, Any]]:
        """Run name → its newest event; incomplete lines are ignored."""
        found: dict[str, dict[str, Any]] = {}
        with suppress(FileNotFoundError):
            for line in read_lines(self.path / EVENTS):
                with suppress(ValueError, KeyError, TypeError):
                    event = parse_json(line)
                    found[event["run"]] = event
        return found

    def read_json(self, name: str, file: str = "summary.json") -> dict[str, Any] | None:
        """A JSON file of a run folder, None if it is missing; raise if it is damaged."""
        path = self.run_path(name) / file
        try:
            found: dict[str, Any] = read_json(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (ValueError, OSError) as error:
            raise RunFolderError(f"{path} is damaged ({error}); remove it and run the sweep again") from error
        return found

    def is_finished(self, name: str, *, scored: bool = False) -> bool:
        """Whether the run has a summary, and a score if `scored`, or is published."""
        if name in self.published:
            return True
        return self.read_json(name) is not None and (not scored or self.read_json(name, SCORE) is not None)

    def saved_step(self, name: str) -> int:
        """Steps of the run's newest checkpoint; 0 if there is none."""
        folder = self.run_path(name) / "checkpoints"
        with suppress(FileNotFoundError, NotADirectoryError):
            found = [_CHECKPOINT.fullmatch(entry.name) for entry in folder.iterdir()]
            return max((int(match[1]) for match in found if match), default=0)
        return 0

    def remove_checkpoints(self, name: str) -> None:
        """Remove a finished run's checkpoints; policy, metrics and summary stay."""
        path = self.run_path(name) / "checkpoints"
        with disk_errors(path), suppress(FileNotFoundError):
            shutil.rmtree(path)

    def newest_metrics(self, name: str) -> dict[str, Any]:
        """The last complete line of the run's metrics; empty if there is none."""
        try:
            with open_regular(self.run_path(name) / "metrics.jsonl") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - 16_384))
                lines = file.read().split(b"\n")[:-1]
        except (FileNotFoundError, NotADirectoryError):
            return {}
        for line in reversed(lines):
            with suppress(ValueError):
                found = parse_json(line)
                if isinstance(found, dict):
                    return found
        return {}
