"""OptimistError and its few children: one line each, saying what came, what was expected and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class OptimistError(Exception):
    """Everything this package raises on purpose; the command line shows it as one line and exits with 2."""


class ConfigError(OptimistError, ValueError):
    """A setting is out of range, unknown, or contradicts another."""


class UnknownName(ConfigError):
    """No such preset, environment, game or option."""


class ShapeMismatch(OptimistError, ValueError):
    """Two arrays that belong together have shapes that do not."""


class MissingExtra(OptimistError, ImportError):
    """An optional dependency is not installed; the message names the pip command."""


class NonFiniteLoss(OptimistError, ArithmeticError):
    """A loss or an observation became nan or infinite."""


class DeviceError(OptimistError):
    """The GPU is full or no longer answers."""


class ProcessEnded(OptimistError):
    """A process that plays for a run is gone, by no fault of the run's."""


class CheckpointError(OptimistError):
    """A checkpoint is missing, truncated, tampered with, or of another run."""


class RunFolderError(OptimistError):
    """A run folder is in use, not empty, incomplete, or cannot be written."""


class FolderInUse(RunFolderError):
    """Another process holds the folder's lock; it may be free a moment later."""


class ClusterError(OptimistError):
    """A Ray cluster is not there, or does not see what it needs."""


ALIKE = 0.65
"""Likeness (difflib's ratio) from which a name is worth suggesting."""


def unknown_name(kind: str, name: str, known: Iterable[str], otherwise: str | None = None) -> UnknownName:
    """The error for a name that is not known, with the most alike as a suggestion; without one `otherwise`, or all."""
    known = sorted(known)
    near = nearest(name, known)
    hint = f"did you mean '{near}'?" if near else otherwise or f"known: {', '.join(known)}"
    return UnknownName(f"no {kind} '{name}'; {hint}")


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name most like this one, if any is: as a whole or in its last part, `--gamma` for `--a.gamma`."""

    def likeness(other: str) -> float:
        whole, part = other.lstrip("-"), other.rpartition(".")[2]
        return max(difflib.SequenceMatcher(None, form, name.lstrip("-")).ratio() for form in (whole, part))

    best = max(sorted(known), key=lambda other: (likeness(other), -len(other)), default="")
    return best if best and likeness(best) >= ALIKE else None


def missing_extra(what: str, extra: str, package: str) -> MissingExtra:
    """The error for an optional dependency that is not installed."""
    return MissingExtra(f"{what} needs {package}: pip install 'optimist[{extra}]'")
