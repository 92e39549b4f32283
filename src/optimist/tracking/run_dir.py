"""RunDir: the folder of one run, locked while somebody writes it; config, metrics, checkpoints, policy, summary."""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any

import safetensors.torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from optimist.config import RunConfig
from optimist.errors import CheckpointError, OptimistError, RunFolderError
from optimist.tracking import checkpoint
from optimist.tracking.atomic import disk_errors, write_json, write_text, write_whole
from optimist.tracking.config_io import from_toml, to_toml
from optimist.tracking.lock import LOCK, FolderLock
from optimist.tracking.metrics_log import MetricsLog
from optimist.tracking.nested import Nested

CONFIG, METRICS, SUMMARY, FINAL = "config.toml", "metrics.jsonl", "summary.json", "final.safetensors"
WORDS = "optimist"


class RunDir:
    """One run's folder: `create` starts it, `open` goes on with it, `read` looks at it without the lock."""

    def __init__(self, path: Path, lock: FolderLock | None) -> None:
        self.path = path
        self._lock = lock
        self._fresh = self._made = False  # written by nobody before; not even there before

    @classmethod
    def create(cls, path: Path | None, config: RunConfig) -> RunDir:
        """A new folder holding `config`, locked; `default_path(config)` without a path. Refuses one with content."""
        made = path is None or not Path(path).exists()
        path = _claim_default(config) if path is None else Path(path)
        content = _content(path)
        if content and LOCK not in content:  # somebody else's folder: leave no trace in it
            raise _not_empty(path)
        with disk_errors(path):
            path.mkdir(parents=True, exist_ok=True)
        run = cls(path, FolderLock(path))
        try:
            if _content(path) - {LOCK}:
                raise _not_empty(path)
            write_text(path / CONFIG, to_toml(config))
            run._fresh, run._made = True, made
        except BaseException:
            run.close()
            raise
        return run

    @classmethod
    def open(cls, path: Path) -> RunDir:
        """An existing run, locked, to go on with; what a killed writer left half done is removed."""
        path = _existing(path)
        run = cls(path, FolderLock(path))
        try:
            with disk_errors(path):
                checkpoint.clean_leftovers(run.checkpoints)
                for leftover in path.glob(".tmp-*"):
                    leftover.unlink()
        except BaseException:
            run.close()
            raise
        return run

    @classmethod
    def read(cls, path: Path) -> RunDir:
        """An existing run, to look at only; works while another process trains it."""
        return cls(_existing(path), None)

    @property
    def checkpoints(self) -> Path:
        """Where the folders `step-<N>` are."""
        return self.path / "checkpoints"

    @cached_property
    def config(self) -> RunConfig:
        """The full config the run was started with."""
        return from_toml(RunConfig, (self.path / CONFIG).read_text(encoding="utf-8"), str(self.path / CONFIG))

    @cached_property
    def metrics(self) -> MetricsLog:
        """metrics.jsonl, open for appending."""
        self._require_lock()
        return MetricsLog(self.path / METRICS)

    def save_checkpoint(self, step: int, state: Nested) -> Path:
        """`checkpoints/step-<step>` with `state` and the place in metrics.jsonl; the newest two are kept."""
        self._require_lock()
        return checkpoint.save_checkpoint(
            self.checkpoints, step, {"metrics_bytes": self.metrics.sync(), "state": state}
        )

    @property
    def last_saved(self) -> int | None:
        """The step of the newest checkpoint, if there is one."""
        newest = checkpoint.latest_checkpoint(self.checkpoints)
        return None if newest is None else checkpoint.checkpoint_step(newest)

    def how_to_go_on(self) -> str:
        """What whoever stopped has to know: the command that goes on, and from where; none for a run without a line."""
        saved, command = self.last_saved, f"`optimist resume {self.path}`"
        if saved is None:
            return "nothing is saved yet" + f": {command} begins at step 0" * self._has_lines
        return f"{command} goes on from step {saved:,}"

    def load_checkpoint(self) -> Nested | None:
        """The newest checkpoint's state, or None before the first; metrics.jsonl is cut back to that moment."""
        newest = checkpoint.latest_checkpoint(self.checkpoints)
        saved = {"metrics_bytes": 0, "state": None} if newest is None else checkpoint.load_checkpoint(newest)
        if not isinstance(saved, dict) or saved.keys() != {"metrics_bytes", "state"}:
            raise CheckpointError(f"checkpoint {newest} was not saved by a training run")
        if self._lock is not None:
            self.metrics.truncate(saved["metrics_bytes"])
        return saved["state"]

    def write_summary(self, summary: Mapping[str, Any]) -> None:
        """summary.json, whole or not at all."""
        self._require_lock()
        write_json(self.path / SUMMARY, dict(summary))

    def read_summary(self) -> dict[str, Any] | None:
        """summary.json, or None while the run has not ended."""
        path = self.path / SUMMARY
        if not path.exists():
            return None
        try:
            summary: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise RunFolderError(f"{path} is damaged: {error}; without it `optimist resume` writes it anew") from error
        return summary

    def write_final(self, policy_state: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None) -> None:
        """final.safetensors: the last policy's weights, and words about it, whole or not at all."""
        self._require_lock()
        tensors = {name: value.detach().cpu().clone().contiguous() for name, value in policy_state.items()}
        words = {WORDS: json.dumps(dict(metadata or {}))}  # one entry: of several the file format shuffles the order

        def write(file: Path) -> None:
            safetensors.torch.save_file(tensors, file, metadata=words)
            shutil.copymode(self.path / CONFIG, file)  # safetensors makes files that only their owner can read

        write_whole(self.path / FINAL, write)

    @property
    def has_final(self) -> bool:
        """Whether the run has come to its end, and was not trained further since."""
        if not (self.path / FINAL).exists():
            return False
        with self._opened_final() as (_, words):
            return int(words.get("steps", 0)) >= (self.last_saved or 0)

    def read_final(self) -> tuple[dict[str, Tensor], dict[str, str]]:
        """The last policy's weights and the words about it."""
        if not self.has_final:
            raise RunFolderError(f"{self.path} has no final policy; the run has not ended: optimist resume {self.path}")
        with self._opened_final() as (file, words):
            return {name: file.get_tensor(name).clone() for name in file.keys()}, words  # noqa: SIM118

    @contextmanager
    def _opened_final(self) -> Iterator[tuple[Any, dict[str, str]]]:
        path = self.path / FINAL
        try:
            with safe_open(path, framework="pt") as file:
                yield file, json.loads((file.metadata() or {}).get(WORDS, "{}"))
        except (SafetensorError, ValueError) as error:
            raise CheckpointError(f"{path} is damaged: {error}") from error

    def close(self) -> None:
        """Closes the metrics and frees the lock."""
        if "metrics" in self.__dict__:
            self.metrics.close()
        if self._lock is not None:
            self._lock.release()

    def __enter__(self) -> RunDir:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._fresh and kind is not None and issubclass(kind, OptimistError):
            self._remove_if_unused()
        self.close()

    def _remove_if_unused(self) -> None:
        """A run that was refused before its first line leaves nothing in the way of the next attempt."""
        if _content(self.path) <= {LOCK, CONFIG, METRICS} and not self._has_lines:
            for name in (CONFIG, METRICS, LOCK):
                (self.path / name).unlink(missing_ok=True)
            if self._made:
                self.path.rmdir()

    @property
    def _has_lines(self) -> bool:
        metrics = self.path / METRICS
        return metrics.exists() and metrics.stat().st_size > 0

    def _require_lock(self) -> None:
        if self._lock is None:
            raise RunFolderError(f"{self.path} was opened to read only")


def default_path(config: RunConfig, root: Path = Path("runs")) -> Path:
    """`runs/<preset>-<seed>-<date>-<time>`."""
    name = (config.preset or config.env.id).replace("/", "-")
    return root / f"{name}-{config.seed}-{datetime.now():%Y%m%d-%H%M%S}"


def _claim_default(config: RunConfig) -> Path:
    """A fresh folder of the default name, with a number behind it where another run began in the same second."""
    base = default_path(config)
    for number in itertools.count(1):
        path = base if number == 1 else base.with_name(f"{base.name}-{number}")
        with disk_errors(path), suppress(FileExistsError):
            path.mkdir(parents=True)
            return path
    raise AssertionError("unreachable")


def _content(path: Path) -> set[str]:
    if path.exists() and not path.is_dir():
        raise RunFolderError(f"{path} is a file; a run needs a folder of its own")
    return {entry.name for entry in path.iterdir()} if path.exists() else set()


def _existing(path: Path) -> Path:
    path = Path(path)
    if not (path / CONFIG).is_file():
        raise RunFolderError(f"{path} is not a run folder; it has no {CONFIG}")
    return path


def _not_empty(path: Path) -> RunFolderError:
    advice = f"go on with it by `optimist resume {path}`, or choose" if (path / CONFIG).exists() else "choose"
    return RunFolderError(f"{path} is not empty; {advice} another --out")
