"""Learners and anchors of other packages, declared by entry points.

An entry point of the group `optimist.learners` or `optimist.anchors` names a class. Its attribute `settings_class` is a
class made by `optimist.core.settings.settings`, whose instances are part of a RunConfig.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Mapping
from importlib import metadata
from typing import Any

from optimist.errors import ConfigError, unknown_name

LEARNERS, ANCHORS = "optimist.learners", "optimist.anchors"


def plugin_names(group: str) -> list[str]:
    """The names that installed packages declare in a group."""
    return _names_on(group, tuple(sys.path))


@functools.cache
def _names_on(group: str, path: tuple[str, ...]) -> list[str]:
    """Reading the installed packages takes milliseconds, and every RunConfig asks."""
    return sorted(entry.name for entry in metadata.entry_points(group=group))


@functools.cache
def load_plugin(group: str, name: str) -> Any:
    """The class declared under `name`."""
    found = {entry.name: entry for entry in metadata.entry_points(group=group)}
    if name not in found:
        raise unknown_name(group.partition(".")[2].removesuffix("s"), name, found)
    try:
        loaded = found[name].load()
    except Exception as error:
        raise ConfigError(
            f"{found[name].value} cannot be loaded ({type(error).__name__}: {error}); "
            "update or uninstall the package that declares it"
        ) from error
    if not hasattr(loaded, "settings_class"):
        raise ConfigError(f"{found[name].value} lacks settings_class; set it to the class of its settings")
    return loaded


def learner_settings(value: Any, built_in: Any) -> Any:
    """Validate RunConfig.algorithm: `built_in` validates the learners of this package, plugins validate theirs."""
    name = value.get("name") if isinstance(value, Mapping) else getattr(value, "name", None)
    if name not in plugin_names(LEARNERS):
        return built_in(value)
    settings_class = load_plugin(LEARNERS, name).settings_class
    return settings_class(**value) if isinstance(value, Mapping) else value


def anchor_settings(value: Any) -> dict[str, Any]:
    """Validate RunConfig.anchors: a table of settings for each named anchor."""
    if not isinstance(value, Mapping):
        raise ConfigError(f"anchors must be a table of anchors by name, got {value!r}")
    found = {}
    for name, own in value.items():
        settings_class = load_plugin(ANCHORS, name).settings_class
        found[name] = settings_class(**own) if isinstance(own, Mapping) else own
    return found
