"""Frozen config dataclasses ↔ dicts ↔ TOML, strictly: an unknown key or a value of another type is an error."""

from __future__ import annotations

import dataclasses
import functools
import tomllib
import types
import typing
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar, Union

import optimist
from optimist.errors import ConfigError, unknown_name

Config = TypeVar("Config")
NONE = "none"  # TOML has no null


def to_dict(config: Any) -> dict[str, Any]:
    """The config as nested plain values: dataclasses become dicts, tuples lists."""
    return {field.name: _plain(getattr(config, field.name), field.name) for field in dataclasses.fields(config)}


def from_dict(cls: type[Config], values: Mapping[str, Any]) -> Config:
    """The config with `values` over its defaults."""
    return _build(cls, None, values, "")


def merge(config: Config, values: Mapping[str, Any]) -> Config:
    """`config` with some fields replaced, nested ones too; another algorithm `name` starts from its defaults."""
    return _build(type(config), config, values, "")


def differences(before: Any, after: Any) -> list[str]:
    """The fields in which two configs differ, as `algorithm.epochs 4 → 3`."""
    old, new = (dict(_fields(to_dict(config))) for config in (before, after))
    names = [name for name in {**old, **new} if old.get(name, ...) != new.get(name, ...)]
    return [f"{name} {old.get(name, '(none)')} → {new.get(name, '(none)')}" for name in names]


def changes(before: Any, after: Any) -> dict[str, Any]:
    """What has to be merged into `before` to make it `after`, as nested plain values."""
    return _changes(to_dict(before), to_dict(after))


def to_toml(config: Any) -> str:
    """The config as TOML, every field; None is written as the word "none"."""
    import tomli_w

    return f"# optimist {optimist.__version__}\n" + tomli_w.dumps(_without_none(to_dict(config), ""))


def from_toml(cls: type[Config], text: str, source: str = "TOML") -> Config:
    """The config that `to_toml` wrote; fields left out keep their defaults."""
    return from_dict(cls, parse_toml(text, source))


def parse_toml(text: str, source: str = "TOML") -> dict[str, Any]:
    """The document as nested dicts; `source` names it in the error."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{source} is not valid TOML: {error}") from error


def read_toml(path: Path) -> dict[str, Any]:
    """The document in a file, as nested dicts."""
    try:
        return parse_toml(path.read_text(encoding="utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read config file {path}: {getattr(error, 'strerror', None) or error}") from error


@functools.cache
def _hints(cls: Any) -> dict[str, Any]:
    return typing.get_type_hints(cls)


def _build(cls: type[Config], base: Config | None, values: Mapping[str, Any], path: str) -> Config:
    if not isinstance(values, Mapping):
        raise ConfigError(f"{path.rstrip('.') or 'the config'} must be a table of settings, got {values!r}")
    hints = _hints(cls)  # type: ignore[arg-type]
    changes = {}
    for name, value in values.items():
        if name not in hints:
            raise unknown_name("setting", f"{path}{name}", [f"{path}{known}" for known in hints])
        changes[name] = _convert(hints[name], getattr(base, name, None), value, f"{path}{name}")
    if base is None:
        return cls(**changes)
    return dataclasses.replace(base, **changes)  # type: ignore[type-var]


def _convert(hint: Any, base: Any, value: Any, path: str) -> Any:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if dataclasses.is_dataclass(hint):
        return _build(hint, base, value, f"{path}.")  # type: ignore[arg-type]
    if origin in (Union, types.UnionType):
        return _convert_union(arguments, base, value, path)
    if origin is Literal:
        if value not in arguments:
            raise unknown_name(f"{path} called", str(value), [str(known) for known in arguments])
        return value
    if origin is tuple:
        return _convert_tuple(arguments, value, path)
    if origin is dict:
        if not isinstance(value, Mapping):
            raise _wrong_type(path, "a table", value)
        return {**(base or {}), **value}  # single keywords of an environment can be overridden
    return _convert_scalar(hint, value, path)


def _convert_union(arguments: tuple[Any, ...], base: Any, value: Any, path: str) -> Any:
    kinds: dict[str, Any] = {_tag(kind): kind for kind in arguments if dataclasses.is_dataclass(kind)}
    if kinds:
        if not isinstance(value, Mapping):
            raise _wrong_type(path, "a table of settings", value)
        name = value.get("name", getattr(base, "name", next(iter(kinds))))
        if name not in kinds:
            raise unknown_name(f"{path} called", str(name), kinds)
        return _build(kinds[name], base if isinstance(base, kinds[name]) else None, value, f"{path}.")
    (kind,) = (kind for kind in arguments if kind is not type(None))
    if value is None or value == NONE:
        return None
    return _convert(kind, base, value, path)


def _tag(kind: Any) -> str:
    """The one value that the `name` of an algorithm's config can have."""
    (name,) = typing.get_args(_hints(kind)["name"])
    return str(name)


def _convert_tuple(arguments: tuple[Any, ...], value: Any, path: str) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise _wrong_type(path, "a list", value)
    if arguments[-1] is Ellipsis:
        arguments = (arguments[0],) * len(value)
    if len(arguments) != len(value):
        raise _wrong_type(path, f"a list of {len(arguments)}", value)
    return tuple(_convert(kind, None, item, path) for kind, item in zip(arguments, value, strict=True))


def _convert_scalar(kind: type, value: Any, path: str) -> Any:
    words = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}
    if kind is float and type(value) is int:
        return float(value)
    if type(value) is not kind:
        raise _wrong_type(path, words[kind], value)
    return value


def _wrong_type(path: str, expected: str, value: Any) -> ConfigError:
    return ConfigError(f"{path} must be {expected}, got {value!r}")


def _fields(values: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """Every field with its full name."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _fields(value, f"{path}{name}.")
        else:
            yield f"{path}{name}", value


def _changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    changed = {name: value for name, value in new.items() if name not in old or old[name] != value}
    both = {name for name, value in changed.items() if isinstance(value, dict) and isinstance(old.get(name), dict)}
    return {name: _changes(old[name], value) if name in both else value for name, value in changed.items()}


def _plain(value: Any, path: str) -> Any:
    if dataclasses.is_dataclass(value):
        return to_dict(value)
    if isinstance(value, dict):
        return {str(key): _plain(item, f"{path}.{key}") for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item, path) for item in value]
    if value is None or type(value) in (bool, int, float, str):
        return value
    raise ConfigError(f"{path} is {value!r}; a config holds numbers, text, true or false, lists and tables")


def _without_none(value: Any, path: str) -> Any:
    if isinstance(value, dict):
        if path.startswith("env.kwargs") and None in value.values():
            raise ConfigError(f"{path} holds None, which a TOML file cannot; leave that keyword out")
        return {key: _without_none(item, f"{path}.{key}".lstrip(".")) for key, item in value.items()}
    return NONE if value is None else value
