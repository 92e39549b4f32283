"""RunDir: the folder of one run with its config, metrics, checkpoints, final policy and summary."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import safetensors.torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from optimist.config import RunConfig
from optimist.config.toml import TOML_BYTES, from_saved, to_toml
from optimist.errors import CheckpointError, ConfigError, OptimistError, RunFolderError
from optimist.reading import parse_json, read_json, read_text, require_folder, require_regular
from optimist.tracking import checkpoint
from optimist.tracking.files import LOCK, FolderLock, disk_errors, write_json, write_text, write_whole
from optimist.tracking.nested import Nested
from optimist.tracking.writers import MetricsLog

CONFIG, METRICS, SUMMARY, FINAL = "config.toml", "metrics.jsonl", "summary.json", "final.safetensors"
FILES = (CONFIG, METRICS, SUMMARY, FINAL, LOCK)
FOLDERS = ("checkpoints", "tensorboard", "wandb")
WORDS = "optimist"
IMPORTS_BY_KEYWORD = ("GymV21Environment-v0", "GymV26Environment-v0")
"""Ids of Gymnasium whose keyword `env_id` can name a module to import."""


class RunDir:
    """One run's folder: `create` a new one, `open` an existing one to resume it, `read` one without the lock."""

    def __init__(self, path: Path, lock: FolderLock | None, env: str = "") -> None:
        self.path = path
        self._lock = lock
        self._env = env  # `module:id` that the user named
        self._fresh = self._made = False  # whether this object started the run; and made the folder

    @classmethod
    def create(cls, path: Path | None, config: RunConfig) -> RunDir:
        """A new, locked folder with `config`, by default at `default_path(config)`; raise if it has content."""
        made = path is None or not Path(path).exists()
        path = _claim_default(config) if path is None else Path(path)
        content = _content(path)
        if content and LOCK not in content:  # not a run folder: leave no file in it
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
    def open(cls, path: Path, env: str = "") -> RunDir:
        """An existing run, locked; incomplete files of a killed writer are removed. `env` as in `read`."""
        path = _existing(path)
        run = cls(path, FolderLock(path), env)
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
    def read(cls, path: Path, env: str = "") -> RunDir:
        """An existing run, read only; works while another process trains it.

        `env`: an id `module:id` that the user named; without it, a config that names a module is refused.
        """
        return cls(_existing(path), None, env)

    @property
    def checkpoints(self) -> Path:
        """The folder of the checkpoints `step-<N>`."""
        return self.path / "checkpoints"

    @cached_property
    def config(self) -> RunConfig:
        """The full config of the run."""
        path = self.path / CONFIG
        try:
            text = read_text(path, TOML_BYTES)
        except (OSError, UnicodeDecodeError) as error:
            raise RunFolderError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from error
        config = from_saved(text, str(path), to_resume=self._lock is not None)
        _check_named(config.env.id, self._env, path)
        return config

    @cached_property
    def metrics(self) -> MetricsLog:
        """metrics.jsonl, open for appending."""
        self._require_lock()
        return MetricsLog(self.path / METRICS)

    def save_checkpoint(self, step: int, state: Nested) -> Path:
        """Save `state` and the offset in metrics.jsonl as `checkpoints/step-<step>`; keep the newest two."""
        self._require_lock()
        return checkpoint.save_checkpoint(
            self.checkpoints, step, {"metrics_bytes": self.metrics.sync(), "state": state}
        )

    @property
    def last_saved(self) -> int | None:
        """The step of the newest checkpoint, or None."""
        newest = checkpoint.latest_checkpoint(self.checkpoints)
        return None if newest is None else checkpoint.checkpoint_step(newest)

    def resume_hint(self) -> str:
        """The command that resumes the run, and the step at which it continues."""
        env_id = self.config.env.id
        saved = self.last_saved
        command = f"`optimist resume {self.path}{f' --env {env_id}' if ':' in env_id else ''}`"
        if saved is None:
            return "nothing is saved yet" + f": {command} restarts at step 0" * self._has_lines
        return f"{command} continues at step {saved:,}"

    def load_checkpoint(self) -> Nested | None:
        """The state of the newest intact checkpoint, or None.

        A locked run's metrics.jsonl is cut back to that step, and damaged newer checkpoints are set aside.
        """
        saved = self._newest_intact()
        if self._lock is not None:
            self.metrics.truncate(saved["metrics_bytes"])
        return saved["state"]

    def _newest_intact(self) -> dict[str, Any]:
        """The newest checkpoint that is intact; newer ones that are damaged are named on stderr."""
        damaged: dict[Path, CheckpointError] = {}
        for path in reversed(checkpoint.all_checkpoints(self.checkpoints)):
            try:
                saved = checkpoint.load_checkpoint(path)
                if not isinstance(saved, dict) or saved.keys() != {"metrics_bytes", "state"}:
                    raise CheckpointError(f"checkpoint {path} was not saved by a training run")
            except CheckpointError as found:
                damaged[path] = found
                continue
            for broken, error in damaged.items():
                kept = checkpoint.set_aside(broken) if self._lock is not None else broken
                aside = f"; it is now {kept.name}" if kept != broken else ""
                print(f"optimist: {error}{aside}; {path.name} is used instead", file=sys.stderr)
            return saved
        for error in damaged.values():
            raise CheckpointError(f"{error}; there is no other to continue from")
        return {"metrics_bytes": 0, "state": None}

    def write_summary(self, summary: Mapping[str, Any]) -> None:
        """Write summary.json atomically."""
        self._require_lock()
        write_json(self.path / SUMMARY, dict(summary))

    def read_summary(self) -> dict[str, Any] | None:
        """summary.json, or None while the run is in progress."""
        path = self.path / SUMMARY
        if not os.path.lexists(path):
            return None
        try:
            summary = read_json(path)
            if not isinstance(summary, dict):
                raise ValueError("expected a JSON object")
        except (OSError, ValueError) as error:
            raise RunFolderError(
                f"{path} is damaged: {getattr(error, 'strerror', None) or error}; delete it, and `optimist resume` "
                "writes a new one"
            ) from error
        return summary

    def write_final(self, policy_state: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None) -> None:
        """Write final.safetensors atomically: the last policy's weights, and metadata."""
        self._require_lock()
        tensors = {name: value.detach().cpu().clone().contiguous() for name, value in policy_state.items()}
        words = {WORDS: json.dumps(dict(metadata or {}))}  # one entry: the file format does not keep their order

        def write(file: Path) -> None:
            safetensors.torch.save_file(tensors, file, metadata=words)
            shutil.copymode(self.path / CONFIG, file)  # safetensors makes files readable by their owner only

        write_whole(self.path / FINAL, write)

    @property
    def has_final(self) -> bool:
        """Whether the run is finished and was not trained further since."""
        if not (self.path / FINAL).exists():
            return False
        with self._opened_final() as (_, words):
            return _steps(words) >= (self.last_saved or 0)

    def read_final(self) -> tuple[dict[str, Tensor], dict[str, str]]:
        """The final policy's weights and metadata."""
        if not self.has_final:
            raise RunFolderError(
                f"{self.path} has no final policy: the run is not finished; finish it with `optimist resume "
                f"{self.path}`"
            )
        with self._opened_final() as (file, words):
            return {name: file.get_tensor(name).clone() for name in file.keys()}, words  # noqa: SIM118

    @contextmanager
    def _opened_final(self) -> Iterator[tuple[Any, dict[str, str]]]:
        path = self.path / FINAL
        try:
            with safe_open(path, framework="pt") as file:
                words = parse_json((file.metadata() or {}).get(WORDS, "{}"))
                if not isinstance(words, dict):
                    raise ValueError("its metadata is no JSON object")
                yield file, words
        except (SafetensorError, ValueError) as error:
            raise CheckpointError(f"{path} is damaged: {error}") from error

    def close(self) -> None:
        """Close the metrics and release the lock."""
        if "metrics" in self.__dict__:
            self.metrics.close()
        if self._lock is not None:
            self._lock.release()

    def __enter__(self) -> RunDir:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if self._fresh and isinstance(error, OptimistError):
            self._remove_empty_run()
        self.close()

    def _remove_empty_run(self) -> None:
        """Remove a run that failed before its first line of metrics, so that the next attempt can use the folder."""
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
            raise RunFolderError(f"{self.path} was opened read only")


def default_path(config: RunConfig, root: Path = Path("runs")) -> Path:
    """`runs/<preset>-<seed>-<date>-<time>`."""
    name = (config.preset or config.env.id).replace("/", "-")
    return root / f"{name}-{config.seed}-{datetime.now():%Y%m%d-%H%M%S}"


def _claim_default(config: RunConfig) -> Path:
    """Make a folder of the default name, with a number if another run started in the same second."""
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
    """The path, if a run is there that holds files and folders of its own and no links to others."""
    path = Path(path)
    if not os.path.lexists(path / CONFIG):
        raise RunFolderError(f"{path} is not a run folder; it has no {CONFIG}")
    for names, require in ((FILES, require_regular), (FOLDERS, require_folder)):
        for name in names:
            if os.path.lexists(path / name):
                try:
                    require(path / name)
                except OSError as error:
                    raise RunFolderError(f"cannot use {path / name}: {error.strerror}") from error
    return path


def _check_named(env_id: str, named: str, source: Path) -> None:
    """Raise if the saved id imports a module that the user has neither named nor imported."""
    if named and named != env_id:
        raise ConfigError(f"{source} names the environment '{env_id}'; got --env {named}")
    module = env_id.rpartition(":")[0]
    if not named and (env_id in IMPORTS_BY_KEYWORD or (module and module not in sys.modules)):
        raise ConfigError(
            f"{source} names the environment '{env_id}', whose module would be imported and run; if you trust it, "
            f"add --env {env_id}, in Python env='{env_id}'"
        )


def _steps(words: Mapping[str, Any]) -> int:
    """The number of steps in the metadata of final.safetensors."""
    try:
        return int(words.get("steps", 0))
    except (TypeError, ValueError):
        raise ValueError(f"its number of steps is {words['steps']!r}") from None


def _not_empty(path: Path) -> RunFolderError:
    advice = f"resume it with `optimist resume {path}`, or choose" if (path / CONFIG).exists() else "choose"
    return RunFolderError(f"{path} is not empty; {advice} another --out")
