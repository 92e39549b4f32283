"""The check of a run folder, file by file, and the repair of what a crash or a damaged disk leaves."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from optimist.errors import CheckpointError, OptimistError
from optimist.reading import parse_json, read_lines
from optimist.tracking import checkpoint
from optimist.tracking.run_dir import FINAL, METRICS, RunDir


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong with a run folder."""

    what: str
    path: Path
    repairable: bool = False
    repaired: bool = False


def examine(path: Path, env: str = "") -> list[Finding]:
    """Everything that is wrong with the folder; nothing is changed."""
    run = RunDir.read(path, env)
    return [*_config(run), *_leftovers(run), *_metrics(run), *_checkpoints(run), *_results(run)]


def repair(path: Path, env: str = "") -> list[Finding]:
    """Repair what can be repaired, under the folder's lock; what was wrong, and which of it is repaired now."""
    findings = examine(path, env)
    with RunDir.open(path, env) as run:  # removes incomplete files
        if any(finding.repairable and finding.path.name == METRICS for finding in findings):
            run.metrics.sync()  # opened, it is cut to its last whole line
        for finding in findings:
            if finding.repairable and finding.path.parent == run.checkpoints and finding.path.exists():
                checkpoint.set_aside(finding.path)
    return [replace(finding, repaired=finding.repairable) for finding in findings]


def _config(run: RunDir) -> Iterator[Finding]:
    try:
        _ = run.config
    except OptimistError as error:
        yield Finding(str(error), run.path)


def _leftovers(run: RunDir) -> Iterator[Finding]:
    for path in sorted([*run.path.glob(".tmp-*"), *run.checkpoints.glob(".tmp-*"), *run.checkpoints.glob(".old-*")]):
        yield Finding(f"{path} is left by a process that was killed", path, repairable=True)


def _metrics(run: RunDir) -> Iterator[Finding]:
    path = run.path / METRICS
    if not path.exists():
        return
    try:
        lines, whole = sum(1 for _ in read_lines(path)), 0
        for whole, line in enumerate(read_lines(path, complete=True), 1):
            with suppress(ValueError):
                if isinstance(parse_json(line), dict):
                    continue
            yield Finding(f"{path}, line {whole}: not a JSON object; reports leave it out", path)
        if whole < lines:
            yield Finding(f"{path} ends with an incomplete line", path, repairable=True)
    except OSError as error:
        yield Finding(f"{path} cannot be read: {error.strerror}", path)


def _checkpoints(run: RunDir) -> Iterator[Finding]:
    found = checkpoint.all_checkpoints(run.checkpoints)
    for path in found:
        try:
            checkpoint.load_checkpoint(path)
        except CheckpointError as error:
            yield Finding(str(error), path, repairable=True)
    others = {entry.name for entry in os.scandir(run.checkpoints)} if run.checkpoints.exists() else set()
    strange = sorted(name for name in others - {path.name for path in found} if not name.startswith((".", "damaged-")))
    for name in strange:
        yield Finding(f"{run.checkpoints / name} is no checkpoint and is not used", run.checkpoints / name)


def _results(run: RunDir) -> Iterator[Finding]:
    for path, check in ((run.path / FINAL, run.read_final), (run.path / "summary.json", run.read_summary)):
        if path.exists():
            try:
                check()
            except OptimistError as error:
                yield Finding(str(error), path)
