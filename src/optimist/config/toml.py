"""Settings ↔ nested dicts ↔ TOML, strictly: an unknown key or a value of another type is an error."""

from __future__ import annotations

import dataclasses
import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

import optimist
from optimist.config.run import RunConfig
from optimist.core.settings import NONE, REMOVED, RemovedSetting, parse_json
from optimist.errors import ConfigError
from optimist.reading import MIB, read_text, require_plain

Config = TypeVar("Config")
TOML_BYTES = MIB
"""Largest config or sweep file."""


def to_dict(config: Any) -> dict[str, Any]:
    """The config as nested plain values: dataclasses become dicts, tuples lists."""
    return {field.name: _plain(getattr(config, field.name), field.name) for field in dataclasses.fields(config)}


def from_dict(cls: type[Config], values: Mapping[str, Any]) -> Config:
    """The config with `values` over its defaults."""
    return merge(cls(), values)


def merge(config: Config, values: Mapping[str, Any]) -> Config:
    """`config` with some fields replaced, by tables or by full names; another algorithm `name` starts from defaults."""
    base, values = to_dict(config), nested(_plain(values, ""))
    learner = values.get("algorithm")
    if isinstance(learner, dict) and learner.get("name", base["algorithm"]["name"]) != base["algorithm"]["name"]:
        del base["algorithm"]
    return parse_json(type(config), json.dumps(overlay(base, values)))


def overlay(*tables: Mapping[str, Any]) -> dict[str, Any]:
    """Nested tables merged; where several have a value, the last one counts."""
    merged: dict[str, Any] = {}
    for table in tables:
        for name, value in table.items():
            both = isinstance(value, Mapping) and isinstance(merged.get(name), Mapping)
            merged[name] = overlay(merged[name], value) if both else value
    return merged


def nested(values: Mapping[str, Any], path: str = "") -> dict[str, Any]:
    """`{"opr": {"percentile": 90}}` for `{"opr.percentile": 90}`; keywords of environments keep their names."""
    tables = []
    for name, value in values.items():
        first, _, rest = name.partition(".")
        item = {rest: value} if rest else value
        inner = f"{path}{first}."
        tables.append({first: nested(item, inner) if isinstance(item, Mapping) and inner != "env.kwargs." else item})
    return overlay(*tables)


def differences(before: Any, after: Any) -> list[str]:
    """The fields in which two configs differ, as `algorithm.epochs 4 → 3`."""
    old, new = (dict(flat(to_dict(config))) for config in (before, after))
    names = [name for name in {**old, **new} if old.get(name, ...) != new.get(name, ...)]
    return [f"{name} {old.get(name, '(none)')} → {new.get(name, '(none)')}" for name in names]


def changes(before: Any, after: Any) -> dict[str, Any]:
    """The nested plain values that, merged into `before`, give `after`."""
    return _changes(to_dict(before), to_dict(after))


def to_toml(config: Any) -> str:
    """The config as TOML: every setting that has an effect; None is written as the word "none"."""
    import tomli_w

    return f"# optimist {optimist.__version__}\n" + tomli_w.dumps(_without_none(effective(config), ""))


def effective(config: Any) -> dict[str, Any]:
    """`to_dict` without the defaults of settings that have no effect, given the others."""
    values = to_dict(config)
    for part, own in values.items():
        settings = getattr(config, part)
        if hasattr(settings, "inactive"):
            defaults = to_dict(type(settings)())
            idle = {name for name in settings.inactive if own[name] == defaults[name]}
            values[part] = {name: value for name, value in own.items() if name not in idle}
    return {name: value for name, value in values.items() if value != {}}


def from_toml(cls: type[Config], text: str, source: str = "TOML") -> Config:
    """The config that `to_toml` wrote; fields left out keep their defaults."""
    return from_dict(cls, parse_toml(text, source))


def from_saved(text: str, source: str, *, to_resume: bool) -> RunConfig:
    """The settings in a run folder.

    Settings that no longer exist affect training alone: a run that has some cannot be resumed, but its policy can be
    used, without them.
    """
    version = re.match(r"# optimist (\S+)", text)
    saved = f"{source}, saved by optimist {version[1] if version else '(unknown version)'}"
    document = parse_toml(text, source)
    try:
        return from_dict(RunConfig, document if to_resume else _without_removed(document))
    except RemovedSetting as error:
        raise ConfigError(f"{saved}, cannot be resumed: {error}; its weights can still be used") from error
    except ConfigError as error:
        raise type(error)(f"{saved}: {error}") from error


def _without_removed(values: Mapping[str, Any], path: str = "", of: str = "") -> dict[str, Any]:
    """A document without the settings, values and keywords that no longer exist; `of`: of which environment."""
    kept = {
        name: value
        for name, value in values.items()
        if not {f"{path}{name}{of}", f"{path}{name} = {value}"} & set(REMOVED)
    }
    of = f" of {values.get('id')}" if path == "env." else ""
    return {
        name: _without_removed(value, f"{path}{name}.", of) if isinstance(value, dict) else value
        for name, value in kept.items()
    }


def parse_toml(text: str, source: str = "TOML") -> dict[str, Any]:
    """The document as nested dicts; `source` names it in the error."""
    try:
        document = tomllib.loads(text)
        require_plain(document)
        return document
    except RecursionError:
        raise ConfigError(f"{source} is nested too deeply; expected tables of settings") from None
    except ValueError as error:
        raise ConfigError(f"{source} is not valid TOML: {error}") from error


def read_toml(path: Path) -> dict[str, Any]:
    """The document in a file that the user named, which may be a link, as nested dicts."""
    try:
        return parse_toml(read_text(path.resolve(), TOML_BYTES), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read config file {path}: {getattr(error, 'strerror', None) or error}") from error


def flat(values: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """Every field with its full name."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{path}{name}.")
        else:
            yield f"{path}{name}", value


def _changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    changed = {name: value for name, value in new.items() if name not in old or old[name] != value}
    both = {name for name, value in changed.items() if isinstance(value, dict) and isinstance(old.get(name), dict)}
    return {name: _changes(old[name], value) if name in both else value for name, value in changed.items()}


def _plain(value: Any, path: str) -> Any:
    if dataclasses.is_dataclass(value):
        return to_dict(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(item, f"{path}.{key}".lstrip(".")) for key, item in value.items()}
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
