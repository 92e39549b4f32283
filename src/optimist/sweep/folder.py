"""WorkFolder: where the runs of a sweep or a search lie; its lock, its plan, the events of its runs, their logs."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import time
import uuid
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from optimist.errors import FolderInUse, RunFolderError
from optimist.tracking.atomic import disk_errors, write_json, write_text
from optimist.tracking.lock import LOCK, FolderLock

TOKEN, EVENTS = ".token", "events.jsonl"
_STEP = re.compile(r"step-(\d+)")


class WorkFolder:
    """`runs/<name>` for each run, `logs/<name>.log`, `events.jsonl`, and a plan that says what all this is."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()

    def claim(self, plan: str, advice: str = "") -> FolderLock:
        """The lock of the folder, made if need be; a folder with content but without the file `plan` is refused.

        `advice`: a command for who finds it in use.
        """
        if self.path.exists() and not self.path.is_dir():
            raise RunFolderError(f"{self.path} is a file; a sweep needs a folder of its own")
        content = {entry.name for entry in self.path.iterdir()} if self.path.exists() else set()
        if content - {LOCK, TOKEN} and plan not in content:
            raise RunFolderError(f"{self.path} is not empty and has no {plan}; choose another folder with -o")
        with disk_errors(self.path):
            self.path.mkdir(parents=True, exist_ok=True)
        lock = self._lock(advice)
        if not (self.path / TOKEN).exists():
            write_text(self.path / TOKEN, uuid.uuid4().hex)
        return lock

    def _lock(self, advice: str, patience: float = 1.0) -> FolderLock:
        """`driven` holds the lock for an instant, so the first refusal is not the last word."""
        until = time.monotonic() + patience
        while True:
            try:
                return FolderLock(self.path)
            except FolderInUse as error:
                if time.monotonic() > until:
                    see = f"; see: {advice} {self.path}" if advice else ""
                    raise FolderInUse(f"{self.path} is being worked on by another process{see}") from error
                time.sleep(0.05)

    @property
    def driven(self) -> bool:
        """Whether somebody works in the folder now."""
        try:
            handle = os.open(self.path / LOCK, os.O_RDONLY)
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
        """A word by which other machines recognise the folder; empty where it is not there."""
        with suppress(OSError):
            return (self.path / TOKEN).read_text(encoding="utf-8")
        return ""

    def run_path(self, name: str) -> Path:
        """The run folder."""
        return self.path / "runs" / name

    def log_path(self, name: str) -> Path:
        """What the run's processes had to say."""
        return self.path / "logs" / f"{name.replace('/', '_')}.log"

    def log(self, name: str, text: str) -> None:
        """Adds to the run's log."""
        path = self.log_path(name)
        with disk_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a", encoding="utf-8") as file:
                file.write(text)

    def read_plan(self, plan: str, keys: Iterable[str] = ()) -> dict[str, Any]:
        """The document in the file `plan`, which has these keys at least."""
        path = self.path / plan
        if not path.is_file():
            raise RunFolderError(f"{self.path} is not the folder of a sweep; it has no {plan}")
        try:
            document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            for key in keys:
                document[key]
        except (ValueError, KeyError, TypeError) as error:
            raise RunFolderError(f"{path} is damaged ({error}); move the folder away") from error
        return document

    def write_plan(self, plan: str, document: Mapping[str, Any]) -> None:
        """The document, whole or not at all."""
        write_json(self.path / plan, document)

    def event(self, run: str, event: str, **more: Any) -> None:
        """One line in events.jsonl: what happened to a run, and when."""
        moment = datetime.now(UTC).isoformat(timespec="seconds")
        line = {"time": moment, "run": run, "event": event} | more
        path = self.path / EVENTS
        with disk_errors(path), path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")

    def last_events(self) -> dict[str, dict[str, Any]]:
        """The newest event of each run; a line cut off by a kill is passed over."""
        found: dict[str, dict[str, Any]] = {}
        with suppress(FileNotFoundError):
            for line in (self.path / EVENTS).read_text(encoding="utf-8").splitlines():
                with suppress(ValueError, KeyError, TypeError):
                    event = json.loads(line)
                    found[event["run"]] = event
        return found

    def summary(self, name: str) -> dict[str, Any] | None:
        """A finished run's summary, None before its end; a damaged one is an error."""
        path = self.run_path(name) / "summary.json"
        try:
            found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (ValueError, OSError) as error:
            raise RunFolderError(f"{path} is damaged; remove it and run the sweep again ({error})") from error
        return found

    def saved_step(self, name: str) -> int:
        """Steps in the run's newest checkpoint; 0 before the first."""
        folder = self.run_path(name) / "checkpoints"
        with suppress(FileNotFoundError, NotADirectoryError):
            found = [_STEP.fullmatch(entry.name) for entry in folder.iterdir()]
            return max((int(match[1]) for match in found if match), default=0)
        return 0

    def drop_checkpoints(self, name: str) -> None:
        """Removes a finished run's checkpoints; policy, metrics and summary stay."""
        path = self.run_path(name) / "checkpoints"
        with disk_errors(path), suppress(FileNotFoundError):
            shutil.rmtree(path)

    def newest_metrics(self, name: str) -> dict[str, Any]:
        """The last whole line of the run's metrics; empty before the first."""
        try:
            with (self.run_path(name) / "metrics.jsonl").open("rb") as file:
                file.seek(max(0, file.seek(0, os.SEEK_END) - 16_384))
                lines = file.read().split(b"\n")[:-1]
        except (FileNotFoundError, NotADirectoryError):
            return {}
        for line in reversed(lines):
            with suppress(ValueError):
                found = json.loads(line)
                if isinstance(found, dict):
                    return found
        return {}
