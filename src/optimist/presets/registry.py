"""The registry: a preset is a function that returns a complete RunConfig; its keywords become flags of `train`."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from optimist.config import RunConfig
from optimist.errors import unknown_name
from optimist.tracking.config_io import changes, merge


class Parameter(NamedTuple):
    """A keyword of a preset: what it is called, takes, defaults to and means."""

    name: str
    kind: type
    default: Any
    meaning: str


@dataclass(frozen=True)
class Preset:
    """A named way to make a RunConfig."""

    name: str
    build: Callable[..., RunConfig]

    @property
    def description(self) -> str:
        """The first line of the function's docstring."""
        return (self.build.__doc__ or "").strip().splitlines()[0]

    @property
    def parameters(self) -> list[Parameter]:
        """The function's keywords; `Annotated[int, "meaning"]` gives type and meaning."""
        hints = typing.get_type_hints(self.build, include_extras=True)
        found = []
        for name, parameter in inspect.signature(self.build).parameters.items():
            kind, meaning = typing.get_args(hints[name])
            found.append(Parameter(name, kind, parameter.default, meaning))
        return found

    def __call__(self, **parameters: Any) -> RunConfig:
        """The config for these parameters, with the preset's name in it."""
        known = [parameter.name for parameter in self.parameters]
        for name in parameters:
            if name not in known:
                raise unknown_name(f"parameter of preset {self.name}", name, known)
        return replace(self.build(**parameters), preset=self.name)

    def decide(self, config: RunConfig, **parameters: Any) -> RunConfig:
        """`config` with these parameters' values where they stand: what bears their name, and what they change.

        What merely follows from them, such as a number of environments that suits a horizon, is left as it is.
        """
        chosen = self(**parameters)
        named: dict[str, Any] = {name: value for name, value in chosen.env.kwargs.items() if name in parameters}
        place = {"id": chosen.env.id} if chosen.env.id in parameters.values() else {}
        changed = _only(changes(self(), chosen), list(parameters.values()))
        return merge(merge(config, changed), {"env": {"kwargs": named, **place}})


def _only(settings: Mapping[str, Any], values: Sequence[Any]) -> dict[str, Any]:
    """The settings that have one of the values, nested as they are."""
    tables = {name: _only(item, values) for name, item in settings.items() if isinstance(item, dict)}
    single = {name: item for name, item in settings.items() if not isinstance(item, dict) and item in values}
    return single | {name: table for name, table in tables.items() if table}


_PRESETS: dict[str, Preset] = {}


def preset(name: str) -> Callable[[Callable[..., RunConfig]], Callable[..., RunConfig]]:
    """Registers the function under `name`, `family/method`."""

    def register(build: Callable[..., RunConfig]) -> Callable[..., RunConfig]:
        if name in _PRESETS:
            raise ValueError(f"preset {name} is registered twice")
        _PRESETS[name] = Preset(name, build)
        return build

    return register


def all_presets() -> list[Preset]:
    """Every preset, family by family, in the order of registration."""
    families = list(dict.fromkeys(name.partition("/")[0] for name in _PRESETS))
    return sorted(_PRESETS.values(), key=lambda preset: families.index(preset.name.partition("/")[0]))


def get_preset(name: str) -> Preset:
    """The preset called `name`; an unknown one gets a suggestion."""
    if name not in _PRESETS:
        raise unknown_name("preset", name, _PRESETS, otherwise="`optimist presets` lists them")
    return _PRESETS[name]
