"""One run of a sweep, in its process: start it, or go on from its checkpoint; an outcome comes back, never an error."""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import optimist
from optimist.config import RunConfig
from optimist.errors import (
    CheckpointError,
    ClusterError,
    ConfigError,
    FolderInUse,
    MissingExtra,
    NonFiniteLoss,
    OptimistError,
    RunFolderError,
)
from optimist.sweep.folder import WorkFolder
from optimist.tracking.config_io import from_dict, to_dict

PATIENCE = 120.0
"""Seconds to wait for a run folder that is in use: a lost node's lock may outlive it for a while."""
HOPELESS = (ConfigError, CheckpointError, MissingExtra, NonFiniteLoss, ClusterError)
"""Errors that come again however often a run is tried: everything random in it is fixed."""


@dataclass(frozen=True)
class Outcome:
    """How an attempt ended."""

    run: str
    error: str | None = None
    """None: the run has finished."""
    hopeless: bool = False
    """Another attempt would end the same way."""


def make_task(folder: WorkFolder, name: str, config: RunConfig) -> dict[str, Any]:
    """What a process needs to know to do the run, as plain values."""
    return {
        "folder": str(folder.path),
        "token": folder.token,
        "name": name,
        "config": to_dict(config),
        "version": optimist.__version__,
    }


def execute(task: Mapping[str, Any], patience: float = PATIENCE) -> Outcome:
    """Does the run to its end; whatever goes wrong is in the outcome and, with its traceback, in the run's log."""
    folder, name = WorkFolder(Path(task["folder"])), task["name"]
    try:
        _check_place(folder, task)
        _train_or_resume(folder.run_path(name), from_dict(RunConfig, task["config"]), patience)
    except Exception as error:
        text = " ".join(str(error).split())
        if not isinstance(error, ClusterError):
            folder.log(name, traceback.format_exc())
        message = text if isinstance(error, OptimistError) else f"{type(error).__name__}: {text}"
        return Outcome(name, message, isinstance(error, HOPELESS))
    return Outcome(name)


def _check_place(folder: WorkFolder, task: Mapping[str, Any]) -> None:
    """A node must see the sweep's folder and run the same version as the driver."""
    if folder.token != task["token"]:
        raise ClusterError(
            f"node {os.uname().nodename} does not see {folder.path}; put the sweep on a path all nodes share"
        )
    if optimist.__version__ != task["version"]:
        raise ClusterError(
            f"node {os.uname().nodename} has optimist {optimist.__version__}, the driver {task['version']}; "
            "install the same version"
        )


def _train_or_resume(path: Path, config: RunConfig, patience: float) -> None:
    from optimist.training.loop import resume, train

    patient_until = time.monotonic() + patience
    while True:
        try:
            if (path / "config.toml").exists():
                _check_same(path, config)
                resume(path, progress=False)
            else:
                _clear_stillborn(path)
                train(config, path, progress=False)
            return
        except FolderInUse:
            if time.monotonic() > patient_until:
                raise
            time.sleep(1.0)


def _check_same(path: Path, config: RunConfig) -> None:
    from optimist.tracking.run_dir import RunDir

    if RunDir.read(path).config != config:
        raise ConfigError(f"{path} was started with other settings than the sweep has; move it away or change the file")


def _clear_stillborn(path: Path) -> None:
    """A process killed before it had written the config leaves a folder that holds nothing worth keeping."""
    leftovers = {entry.name for entry in path.iterdir()} if path.is_dir() else set()
    if leftovers - {".lock", ".tmp-config.toml"}:
        raise RunFolderError(f"{path} holds files but no config.toml; move it away and run the sweep again")
    (path / ".tmp-config.toml").unlink(missing_ok=True)
