"""Presets: named rows of tables. A family declares its keywords once and its methods as rows of values.

Other packages add presets by an entry point of the group `optimist.presets` that names a module calling `register`.
"""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from typing import Any, NamedTuple

from optimist.config import AlgorithmConfig, OPRConfig, RunConfig, SILConfig, whole_number
from optimist.config.toml import changes, merge
from optimist.errors import ConfigError, unknown_name

ENTRY_POINTS = "optimist.presets"

NO_OPR = OPRConfig(enabled=False)
NO_SIL = SILConfig()
VALUE_BASED_OPR = OPRConfig(bc_batch_size=64)
"""The default, with as many cloned rows as a minibatch of DQN has: its gradient steps are many and small."""


class Method(NamedTuple):
    """A row of a preset table."""

    description: str
    """One sentence for `optimist presets`."""
    algorithm: AlgorithmConfig
    opr: OPRConfig = NO_OPR
    sil: SILConfig = NO_SIL
    settings: Mapping[str, Any] = {}
    """Other settings in which this method differs from its family, nested as in a config file."""


class Parameter(NamedTuple):
    """A keyword of a preset, which is a flag of `optimist train` too."""

    name: str
    kind: type
    default: Any
    meaning: str


@dataclass(frozen=True)
class Preset:
    """A named method of a family: keywords → RunConfig."""

    name: str
    method: Method
    build: Callable[..., RunConfig]

    @property
    def family(self) -> str:
        """The part of the name before the slash."""
        return self.name.partition("/")[0]

    @property
    def description(self) -> str:
        """The method in one sentence."""
        return self.method.description

    @property
    def parameters(self) -> list[Parameter]:
        """The keywords of `build`, whose types are written `Annotated[int, "meaning"]`."""
        hints = typing.get_type_hints(self.build, include_extras=True)
        keywords = list(inspect.signature(self.build).parameters.values())[1:]  # without the method
        return [Parameter(word.name, hints[word.name].__origin__, word.default, *hints[word.name].__metadata__)
                for word in keywords]  # fmt: skip

    def __call__(self, **parameters: Any) -> RunConfig:
        """The settings for these keywords, with the preset's name in them."""
        known = [parameter.name for parameter in self.parameters]
        for name in parameters:
            if name not in known:
                raise unknown_name(f"parameter of preset {self.name}", name, known)
        whole = {parameter.name for parameter in self.parameters if parameter.kind is int}
        parameters = {name: whole_number(value) if name in whole else value for name, value in parameters.items()}
        config = self.build(self.method, **parameters)
        config = replace(config, preset=self.name, opr=self.method.opr, sil=self.method.sil)
        return merge(config, self.method.settings) if self.method.settings else config

    def reapply(self, config: RunConfig, **parameters: Any) -> RunConfig:
        """`config` with these keywords set again, where a config file may have changed what they set.

        What follows from a keyword indirectly, such as a number of environments that suits a horizon, is left as it is.
        """
        chosen = self(**parameters)
        kwargs = {name: value for name, value in chosen.env.kwargs.items() if name in parameters}
        place = {"id": chosen.env.id} if chosen.env.id in parameters.values() else {}
        direct = _with_values(changes(self(), chosen), list(parameters.values()))
        return merge(merge(config, direct), {"env": {"kwargs": kwargs, **place}})


def _with_values(settings: Mapping[str, Any], values: Sequence[Any]) -> dict[str, Any]:
    """The settings that have one of the values, nested as they are."""
    tables = {name: _with_values(item, values) for name, item in settings.items() if isinstance(item, dict)}
    single = {name: item for name, item in settings.items() if not isinstance(item, dict) and item in values}
    return single | {name: table for name, table in tables.items() if table}


_PRESETS: dict[str, Preset] = {}


def register(family: str, methods: Mapping[str, Method], build: Callable[..., RunConfig]) -> None:
    """Add a table of methods as presets `family/method`.

    `build(method, **keywords)` returns the settings that all methods of the family share, with the method's algorithm.
    """
    for method, row in methods.items():
        name = f"{family}/{method}"
        if name in _PRESETS:
            raise ConfigError(f"preset {name} is registered twice; choose another name for one of them")
        _PRESETS[name] = Preset(name, row, build)


def all_presets() -> list[Preset]:
    """Every preset, family by family, in the order of registration."""
    _load_entry_points()
    families = list(dict.fromkeys(preset.family for preset in _PRESETS.values()))
    return sorted(_PRESETS.values(), key=lambda preset: families.index(preset.family))


def get_preset(name: str) -> Preset:
    """The preset called `name`; an unknown name gets a suggestion."""
    if name not in _PRESETS:
        _load_entry_points()
    if name not in _PRESETS:
        raise unknown_name("preset", name, _PRESETS, otherwise="`optimist presets` lists them")
    return _PRESETS[name]


@functools.cache
def _load_entry_points() -> None:
    """Import the modules in which other packages register presets."""
    for entry in metadata.entry_points(group=ENTRY_POINTS):
        try:
            entry.load()
        except Exception as error:
            raise ConfigError(
                f"presets of {entry.value} cannot be loaded ({type(error).__name__}: {error}); "
                "update or uninstall the package that declares them"
            ) from error
