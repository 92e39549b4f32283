"""Cage2Error and its subclasses; a message says what is wrong, what was expected and what to do, in one line."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class Cage2Error(Exception):
    """Base class of the errors this package raises; the command line prints them as one line and exits with 2."""


class ConfigError(Cage2Error, ValueError):
    """A setting is out of range, unknown, or contradicts another."""


class UnknownName(ConfigError):
    """A name that does not exist."""


class ShapeMismatch(Cage2Error, ValueError):
    """The shapes of two arrays do not match."""


class TraceError(Cage2Error):
    """A file of recorded episodes is damaged or has a missing field."""


class AgentError(Cage2Error):
    """An agent cannot be loaded, raises, or returns something that is no action."""


def unknown_name(kind: str, name: str, known: Iterable[str]) -> UnknownName:
    """The error for an unknown name, with the most similar known one, or all of them."""
    known = sorted(known)
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.65)
    hint = f"did you mean '{near[0]}'?" if near else f"known: {', '.join(known)}"
    return UnknownName(f"no {kind} '{name}'; {hint}")
