"""The space a search looks through: settings with a range or a list of values, from short flags or TOML."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from optimist.config import RunConfig
from optimist.errors import ConfigError, unknown_name
from optimist.tracking.config_io import merge, read_toml, to_dict

EXAMPLE = "--search algorithm.learning_rate=log:1e-4..1e-2, opr.percentile=50..95 or network.activation=tanh,relu"


@dataclass(frozen=True)
class Range:
    """All numbers between two; whole ones where the setting is whole."""

    low: float
    high: float
    log: bool = False
    whole: bool = False

    def __str__(self) -> str:
        return f"{'log:' if self.log else ''}{self.low:g}..{self.high:g}"


@dataclass(frozen=True)
class Choice:
    """One of several values."""

    values: tuple[Any, ...]

    def __str__(self) -> str:
        return ",".join(str(value) for value in self.values)


Space = dict[str, Range | Choice]
"""`algorithm.learning_rate` → where to look."""


def space_from_flags(flags: Iterable[str], config: RunConfig) -> Space:
    """`NAME=LOW..HIGH`, `NAME=log:LOW..HIGH` or `NAME=A,B,C`, each."""
    return check_space(dict(map(_read_flag, flags)), config)


def space_from_file(path: Path, config: RunConfig) -> Space:
    """A TOML file of settings, each `{low = …, high = …, log = true}` or a list of values."""
    return check_space(dict(_flatten(read_toml(path), "")), config)


def check_space(entries: Mapping[str, Any], config: RunConfig) -> Space:
    """The space, once every name is a setting and every end of a range is a value it can have."""
    if not entries:
        raise ConfigError(f"nothing to search for; as in {EXAMPLE}")
    known = dict(_leaves(to_dict(config), ""))
    space: Space = {}
    for name, entry in entries.items():
        if name not in known:
            raise unknown_name("setting", name, known)
        if name in ("seed", "preset", "total_steps", "device"):
            raise ConfigError(f"{name} is not to be searched for")
        space[name] = _dimension(name, entry, whole=type(known[name]) is int)
        for value in _ends(space[name]):
            merge(config, nested({name: value}))
    return space


def nested(settings: Mapping[str, Any]) -> dict[str, Any]:
    """`{"opr.bc_coef": 1}` → `{"opr": {"bc_coef": 1}}`."""
    found: dict[str, Any] = {}
    for name, value in settings.items():
        *path, last = name.split(".")
        table = found
        for part in path:
            table = table.setdefault(part, {})
        table[last] = value
    return found


def _read_flag(flag: str) -> tuple[str, Any]:
    name, equals, text = flag.partition("=")
    name = name.strip().removeprefix("--").replace("-", "_")
    if not equals or not text:
        raise ConfigError(f"--search {flag}: a setting and where to look, as in {EXAMPLE}")
    text, log = text.removeprefix("log:"), text.startswith("log:")
    low, dots, high = text.partition("..")
    if dots:
        return name, {"low": _literal(low), "high": _literal(high), "log": log}
    if log:
        raise ConfigError(f"--search {flag}: log: goes with a range LOW..HIGH")
    return name, [_literal(value) for value in text.split(",")]


def _dimension(name: str, entry: Any, *, whole: bool) -> Range | Choice:
    if isinstance(entry, list):
        if len(entry) < 2 or any(isinstance(value, list | dict) for value in entry):
            raise ConfigError(f"{name} must list at least two plain values, got {entry!r}")
        return Choice(tuple(entry))
    for key in entry:
        if key not in ("low", "high", "log"):
            raise unknown_name(f"key of {name}", key, ("low", "high", "log"))
    low, high, log = entry.get("low"), entry.get("high"), entry.get("log", False)
    kinds = (int,) if whole else (int, float)
    if type(low) not in kinds or type(high) not in kinds or type(log) is not bool:
        raise ConfigError(f"{name} must be searched between two {'whole ' if whole else ''}numbers, got {entry!r}")
    if not low < high or (log and not low > 0):
        raise ConfigError(f"{name} must be searched from low to high{', above 0' if log else ''}, got {low}..{high}")
    return Range(low, high, log, whole)


def _ends(dimension: Range | Choice) -> tuple[Any, ...]:
    if isinstance(dimension, Choice):
        return dimension.values
    return (dimension.low, dimension.high)


def _flatten(table: Mapping[str, Any], prefix: str) -> Iterable[tuple[str, Any]]:
    """Nested tables by dotted names, down to lists and to tables that give a range."""
    for key, value in table.items():
        if isinstance(value, list) or (isinstance(value, Mapping) and ("low" in value or "high" in value)):
            yield prefix + key, value
        elif isinstance(value, Mapping):
            yield from _flatten(value, f"{prefix}{key}.")
        else:
            raise ConfigError(f"{prefix}{key} must be a list of values or {{low = …, high = …}}, got {value!r}")


def _leaves(values: Mapping[str, Any], prefix: str) -> Iterable[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def _literal(text: str) -> Any:
    """A value as TOML writes it, or the text itself."""
    with suppress(tomllib.TOMLDecodeError):
        return tomllib.loads(f"value = {text.strip()}")["value"]
    return text.strip()
