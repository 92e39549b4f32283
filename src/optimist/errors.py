"""OptimistError and its subclasses; a message says what is wrong, what was expected and what to do, in one line."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class OptimistError(Exception):
    """Base class of the errors this package raises; the command line prints them as one line and exits with 2."""


class ConfigError(OptimistError, ValueError):
    """A setting is out of range, unknown, or contradicts another."""


class UnknownName(ConfigError):
    """A preset, environment, game or option does not exist."""


class ShapeMismatch(OptimistError, ValueError):
    """The shapes of two arrays do not match."""


class MissingExtra(OptimistError, ImportError):
    """An optional dependency is not installed; the message names the pip command."""


class NonFiniteLoss(OptimistError, ArithmeticError):
    """A loss or an observation became nan or infinite."""


class DeviceError(OptimistError):
    """The GPU is out of memory or failed."""


class WorkerDied(OptimistError):
    """An environment worker exited unexpectedly."""


class CheckpointError(OptimistError):
    """A checkpoint is missing, truncated, tampered with, or of another run."""


class RunFolderError(OptimistError):
    """A run folder is in use, not empty, incomplete, or cannot be written."""


class FolderInUse(RunFolderError):
    """Another process holds the folder's lock; it may be free a moment later."""


class ClusterError(OptimistError):
    """A Ray cluster is absent, or lacks a file or package that a sweep needs."""


MIN_SIMILARITY = 0.65
"""Smallest difflib ratio at which a name is suggested."""


def unknown_name(kind: str, name: str, known: Iterable[str], otherwise: str | None = None) -> UnknownName:
    """The error for an unknown name, with the most similar known one; without a similar one, `otherwise` or all."""
    known = sorted(known)
    near = nearest(name, known)
    hint = f"did you mean '{near}'?" if near else otherwise or f"known: {', '.join(known)}"
    return UnknownName(f"no {kind} '{name}'; {hint}")


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name most similar to this one, if any is: as a whole or in its last part, `--gamma` for `--a.gamma`."""

    def similarity(other: str) -> float:
        whole, part = other.lstrip("-"), other.rpartition(".")[2]
        return max(difflib.SequenceMatcher(None, form, name.lstrip("-")).ratio() for form in (whole, part))

    best = max(sorted(known), key=lambda other: (similarity(other), -len(other)), default="")
    return best if best and similarity(best) >= MIN_SIMILARITY else None


def missing_extra(what: str, extra: str, package: str) -> MissingExtra:
    """The error for an optional dependency that is not installed."""
    return MissingExtra(f"{what} needs {package}: {install_command(extra)}")


def install_command(extra: str) -> str:
    """The pip command that installs an extra, and where to run it: no release is on a package index yet."""
    package = {"cage2": "./packages/cage2 ", "console": "./packages/a2600 "}.get(extra, "")
    return f"pip install {package}'.[{extra}]' in the clone of optimist"
