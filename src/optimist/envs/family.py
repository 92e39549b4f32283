"""Families of environments: each declares what the rest of the package must know of it."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import gymnasium

from optimist.errors import MissingExtra

GROUP = "optimist.envs"
"""Entry points of installed packages: each names a `Family`."""
Keywords = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Family:
    """A family of environments: its ids, and how runs, reports and error messages treat them."""

    name: str
    """Heading in reports."""
    envs: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Gymnasium id → `entry_point` and `vector_entry_point` as `gymnasium.register` takes them."""
    label: Callable[[str, Keywords], str]
    """Name of a task in reports, from its id and the keywords of its constructor."""
    label_kwargs: tuple[str, ...] = ()
    """Keywords that are part of the task's name, so that they make no other method."""
    performance_kwargs: tuple[str, ...] = ()
    """Keywords that affect speed only, never results."""
    task_seed: str = ""
    """Keyword through which a run's seed fixes the task itself, apart from what happens in it."""
    check: Callable[[Keywords], None] | None = None
    """Raises if the keywords name no task, without making an environment."""
    resolve: Callable[[Keywords], dict[str, Any]] | None = None
    """Replaces keywords that leave a choice to this machine by what it chooses, as a run's config stores it."""
    normalized_score: Callable[[str, Any], Any] | None = None
    """(label, return) → score on a scale that all tasks of the family share, for aggregates in reports."""
    install: str = ""
    """The command that installs what is missing, if it is not `pip install` of the missing package."""

    def register(self) -> None:
        """Register the ids with Gymnasium; the environments' code is loaded when one is made."""
        for env_id, entries in self.envs.items():
            if env_id not in gymnasium.registry:
                gymnasium.register(env_id, **entries)  # type: ignore[arg-type]


def _gymnasium_label(env_id: str, kwargs: Keywords) -> str:
    words = ", ".join(f"{key}={value}" for key, value in kwargs.items())
    return f"{env_id} ({words})" if words else env_id


GYMNASIUM = Family(name="Gymnasium", label=_gymnasium_label)
"""Every environment that no family declares."""


@functools.cache
def own_families() -> tuple[Family, ...]:
    """The families of this package: each package in `envs` lists its own in `FAMILIES`."""
    found = pkgutil.iter_modules([str(Path(__file__).parent)], f"{__package__}.")
    modules = [importlib.import_module(module.name) for module in found if module.ispkg]  # in alphabetical order
    return tuple(family for module in modules for family in module.FAMILIES)


@functools.cache
def families() -> tuple[Family, ...]:
    """All families, those of installed packages included, in the order of reports; Gymnasium's is last."""
    found = list(own_families())
    for entry in entry_points(group=GROUP):
        try:
            family: Family = entry.load()
        except (ImportError, AttributeError) as error:
            raise MissingExtra(f"cannot load the environments '{entry.name}' from {entry.value}: {error}") from error
        family.register()
        found.append(family)
    return (*found, GYMNASIUM)


def family_of(env_id: str) -> Family:
    """The family that declares this id, or Gymnasium's; `module:id` is allowed."""
    name = env_id.rpartition(":")[2]
    return next((family for family in families() if name in family.envs), GYMNASIUM)
