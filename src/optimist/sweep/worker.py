"""One run of a sweep in its own process: train or resume it, then score it; errors are returned as an Outcome."""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import optimist
from optimist.config import RunConfig
from optimist.config.toml import from_dict, to_dict
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
from optimist.sweep.folder import SCORE, SweepFolder
from optimist.sweep.plan import Run
from optimist.tracking.files import write_json

LOCK_TIMEOUT = 120.0
"""Seconds to wait for a run folder in use: the lock of a lost node may outlive it."""
PERMANENT = (ConfigError, CheckpointError, MissingExtra, NonFiniteLoss, ClusterError)
"""Errors that every further attempt repeats, because runs are deterministic."""


@dataclass(frozen=True)
class Outcome:
    """How an attempt ended."""

    run: str
    error: str | None = None
    """None if the run finished."""
    permanent: bool = False
    """Whether another attempt would end the same way."""


@dataclass(frozen=True)
class Report:
    """What follows from an attempt: the run finished if there is no error, else it failed or will be retried."""

    run: str
    error: str | None = None
    retried: bool = False
    found: bool = False
    """Whether the run was finished before the sweep started."""


def make_task(folder: SweepFolder, run: Run) -> dict[str, Any]:
    """Everything a worker process needs to do the run, as plain values."""
    return {
        "folder": str(folder.path),
        "token": folder.token,
        "name": run.name,
        "config": to_dict(run.config),
        "score_episodes": run.score_episodes,
        "version": optimist.__version__,
    }


def execute(task: Mapping[str, Any], lock_timeout: float = LOCK_TIMEOUT) -> Outcome:
    """Do the run to its end. An error is returned, and its traceback is added to the run's log."""
    folder, name = SweepFolder(Path(task["folder"])), task["name"]
    try:
        _check_node(folder, task)
        config = from_dict(RunConfig, task["config"])
        _train_or_resume(folder.run_path(name), config, lock_timeout)
        if task["score_episodes"] and folder.read_json(name, SCORE) is None:
            write_json(folder.run_path(name) / SCORE, score_cage2(folder.run_path(name), task["score_episodes"]))
    except Exception as error:
        text = " ".join(str(error).split())
        if not isinstance(error, ClusterError):
            folder.log(name, traceback.format_exc())
        message = text if isinstance(error, OptimistError) else f"{type(error).__name__}: {text}"
        return Outcome(name, message, isinstance(error, PERMANENT))
    return Outcome(name)


def score_cage2(run: Path, episodes: int) -> dict[str, float]:
    """Mean and standard deviation of a CAGE 2 run's return over fresh episodes, actions by argmax and sampled."""
    from cage2.scoring import play
    from optimist.deploy.cage2_runs import TrainedRun, make_defender

    trained = TrainedRun.load(str(run))
    defender, config = make_defender([trained]), trained.agent.config
    found: dict[str, float] = {"score_episodes": episodes}
    for mode in ("argmax", "sampled"):
        returns = play(
            defender,
            episodes,
            red=trained.red,
            horizon=config.env.kwargs["horizon"],
            rules=trained.rules,
            table=defender.table,
            greedy=mode == "argmax",
            seed=10_000 + config.seed,
        )
        found |= {
            f"{mode}_return": round(float(returns.mean()), 4),
            f"{mode}_std": round(float(returns.std(ddof=1)), 4),
        }
    return found


def _check_node(folder: SweepFolder, task: Mapping[str, Any]) -> None:
    """Raise unless this node sees the sweep's folder and has the driver's version."""
    node = os.uname().nodename
    if folder.token != task["token"]:
        raise ClusterError(f"node {node} does not see {folder.path}; use a path that all nodes share")
    if optimist.__version__ != task["version"]:
        raise ClusterError(
            f"node {node} has optimist {optimist.__version__}, the driver has {task['version']}; "
            "install the same version"
        )


def _train_or_resume(path: Path, config: RunConfig, lock_timeout: float) -> None:
    from optimist.envs.make import resolved
    from optimist.tracking.run_dir import RunDir
    from optimist.training.resume import resume
    from optimist.training.trainer import train

    config = replace(config, env=resolved(config.env))
    until = time.monotonic() + lock_timeout
    while True:
        try:
            if (path / "config.toml").exists():
                named = config.env.id if ":" in config.env.id else ""  # the sweep file, which the user named, names it
                if RunDir.read(path, named).config != config:
                    raise ConfigError(f"{path} has other settings than the sweep file; move it away or change the file")
                resume(path, env=named, wandb=config.wandb, progress=False)
            else:
                _remove_empty_run(path)
                train(config, path, progress=False)
            return
        except FolderInUse:
            if time.monotonic() > until:
                raise
            time.sleep(1.0)


def _remove_empty_run(path: Path) -> None:
    """Remove what a process leaves that was killed before it wrote its config; raise if there is anything else."""
    leftovers = {entry.name for entry in path.iterdir()} if path.is_dir() else set()
    if leftovers - {".lock", ".tmp-config.toml"}:
        raise RunFolderError(f"{path} has files but no config.toml; move it away and run the sweep again")
    (path / ".tmp-config.toml").unlink(missing_ok=True)
