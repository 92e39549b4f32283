"""Checkpoints: atomically written folders `step-<N>` of safetensors, JSON and checksums; no pickle."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import safetensors.numpy
import safetensors.torch
import torch
from safetensors import SafetensorError

import optimist
from optimist.errors import CheckpointError, OptimistError
from optimist.reading import open_regular, read_json
from optimist.tracking.files import disk_errors, sync
from optimist.tracking.nested import Nested, Packed, pack, unpack

FORMAT = 1
TENSORS, ARRAYS, STATE, MANIFEST = "tensors.safetensors", "arrays.safetensors", "state.json", "manifest.json"
_STEP = re.compile(r"step-(\d+)")
_TEMPORARY, _REPLACED = ".tmp-", ".old-"


def save_checkpoint(folder: Path, step: int, state: Nested, keep: int = 2) -> Path:
    """Write `folder/step-<step>` and delete all but the newest `keep`; one writer per folder at a time.

    The files are written to a temporary folder, synced and renamed: a kill at any moment leaves either the new
    checkpoint or the earlier ones. A full disk raises RunFolderError and changes nothing.
    """
    target = folder / f"step-{step}"
    temporary = folder / f"{_TEMPORARY}{target.name}"
    packed = pack(state)
    with disk_errors(target):
        folder.mkdir(parents=True, exist_ok=True)
        clean_leftovers(folder)
        try:
            temporary.mkdir()
            _write_files(temporary, step, packed)
            _swap_in(temporary, target)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
        for old in all_checkpoints(folder)[:-keep]:
            shutil.rmtree(old)
    return target


def load_checkpoint(path: Path) -> Nested:
    """The state saved at `path`, with tensors on the CPU; checks every checksum first."""
    manifest = _read_manifest(path)
    for name, record in manifest["files"].items():
        _verify(path, name, record)
    try:
        structure = read_json(path / STATE)
        # clone: safetensors maps the file, which may be deleted while the run continues
        tensors = {name: value.clone() for name, value in safetensors.torch.load_file(path / TENSORS).items()}
        arrays = safetensors.numpy.load_file(path / ARRAYS)
        return unpack(Packed(structure, tensors, arrays))
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RuntimeError, SafetensorError) as error:
        raise _broken(path, f"it cannot be read ({error})") from error


@contextmanager
def restoring(origin: str) -> Iterator[None]:
    """Raise CheckpointError where a saved state does not fit what it is loaded into."""
    try:
        yield
    except OptimistError:
        raise
    except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
        if isinstance(error, torch.OutOfMemoryError) or "CUDA" in str(error):  # the GPU's fault, not the state's
            raise
        reason = " ".join(f"{type(error).__name__} {error}".split())[:300]
        raise CheckpointError(f"{origin} does not fit its config: {reason}") from error


def latest_checkpoint(folder: Path) -> Path | None:
    """The checkpoint with the most steps, or None."""
    found = all_checkpoints(folder)
    return found[-1] if found else None


def checkpoint_step(path: Path) -> int:
    """The N of a folder `step-<N>`."""
    match = _STEP.fullmatch(path.name)
    if match is None:
        raise CheckpointError(f"{path} is not a checkpoint; expected a folder named step-<N>")
    return int(match[1])


def clean_leftovers(folder: Path) -> None:
    """Remove incomplete files of a killed writer, and restore a checkpoint that it was replacing."""
    for old in folder.glob(f"{_REPLACED}step-*"):
        target = folder / old.name.removeprefix(_REPLACED)
        if target.exists():
            shutil.rmtree(old)
        else:
            os.replace(old, target)
    for temporary in folder.glob(f"{_TEMPORARY}step-*"):
        shutil.rmtree(temporary)


def set_aside(path: Path) -> Path:
    """Rename a damaged checkpoint, so that it is not used again; return its new name."""
    for number in itertools.count(1):
        target = path.with_name(f"damaged-{path.name}" + f"-{number}" * (number > 1))
        if not os.path.lexists(target):
            with disk_errors(path):
                os.replace(path, target)
            return target
    raise AssertionError("unreachable")


def all_checkpoints(folder: Path) -> list[Path]:
    """The checkpoints in a folder, the newest last."""
    found = [
        path for path in folder.glob("step-*") if _STEP.fullmatch(path.name) and path.is_dir() and not path.is_symlink()
    ]
    return sorted(found, key=checkpoint_step)


def _write_files(folder: Path, step: int, packed: Packed) -> None:
    safetensors.torch.save_file(packed.tensors, folder / TENSORS)
    safetensors.numpy.save_file(packed.arrays, folder / ARRAYS)
    (folder / STATE).write_text(json.dumps(packed.structure, allow_nan=False), encoding="utf-8")
    for name in (TENSORS, ARRAYS):  # safetensors makes files readable by their owner only
        shutil.copymode(folder / STATE, folder / name)
    files = {name: _record(folder / name) for name in (TENSORS, ARRAYS, STATE)}
    manifest: dict[str, Any] = {"format": FORMAT, "optimist": optimist.__version__, "step": step, "files": files}
    manifest["sha256"] = _digest_of(manifest)
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
    for name in (*files, MANIFEST):
        sync(folder / name)
    sync(folder)


def _swap_in(temporary: Path, target: Path) -> None:
    replaced = target.with_name(f"{_REPLACED}{target.name}")
    if target.exists():  # the same step again: a folder cannot replace a non-empty one
        os.replace(target, replaced)
    os.replace(temporary, target)
    sync(target.parent)
    if replaced.exists():
        shutil.rmtree(replaced)


def _record(path: Path) -> dict[str, Any]:
    with open_regular(path) as file:
        return {"bytes": path.stat().st_size, "sha256": hashlib.file_digest(file, "sha256").hexdigest()}


def _digest_of(manifest: dict[str, Any]) -> str:
    body = {key: value for key, value in manifest.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def _read_manifest(path: Path) -> dict[str, Any]:
    step = checkpoint_step(path)
    if path.is_symlink() or not path.is_dir():
        raise CheckpointError(f"no checkpoint at {path}; expected a folder")
    try:
        manifest = read_json(path / MANIFEST)
        intact = manifest["sha256"] == _digest_of(manifest)
        format_, recorded_step, names = manifest["format"], manifest["step"], set(manifest["files"])
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise _broken(path, f"{MANIFEST} is missing or unreadable") from error
    if format_ != FORMAT:
        raise CheckpointError(f"checkpoint {path} has format {format_}; this version of optimist reads {FORMAT}")
    if not intact or names != {TENSORS, ARRAYS, STATE}:
        raise _broken(path, f"{MANIFEST} was changed")
    if recorded_step != step:
        raise _broken(path, f"it was saved at step {recorded_step} but is named {path.name}")
    return manifest  # type: ignore[no-any-return]


def _verify(path: Path, name: str, record: dict[str, Any]) -> None:
    try:
        found = _record(path / name)
    except OSError as error:
        raise _broken(path, f"{name} is missing or unreadable") from error
    if found["bytes"] != record["bytes"]:
        raise _broken(path, f"{name} has {found['bytes']} bytes where {record['bytes']} were written")
    if found["sha256"] != record["sha256"]:
        raise _broken(path, f"{name} does not match its checksum")


def _broken(path: Path, reason: str) -> CheckpointError:
    return CheckpointError(f"checkpoint {path} is damaged: {reason}")
