"""A sweep file (TOML) → Plan: every run it describes, in the order they start; strict about what it does not know."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from optimist.config import RunConfig
from optimist.envs.make import check_env
from optimist.errors import ConfigError, unknown_name
from optimist.presets import Preset, get_preset
from optimist.sweep.statistic import check_statistic
from optimist.tracking.config_io import differences, merge, read_toml

GROUP_KEYS = ("presets", "flags", "settings", "variants", "seeds", "cpus", "runs_per_gpu")
KEYS = (*GROUP_KEYS, "groups", "statistic", "retries", "keep_checkpoints")
RUNS_PER_GPU = 4
RETRIES = 2
_OWN = {"seed": "seeds", "preset": "presets"}


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run: its folder's name, what it is called in tables, its config and what it needs."""

    name: str
    method: str
    env: str
    config: RunConfig
    origin: Mapping[str, Any] = field(default_factory=dict)
    """Preset, flags, variant, settings and seed: what the config was made of."""
    cpus: float = 1.0
    gpus: float = 0.0

    @property
    def budget(self) -> int:
        """Environment steps it will really do: whole updates."""
        return self.config.total_updates * self.config.batch_size


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The runs of a sweep, the statistic they are compared by, and how often a failed one is tried again."""

    runs: tuple[Run, ...]
    statistic: str = "auto"
    retries: int = RETRIES
    keep_checkpoints: bool = True
    """Whether finished runs keep their checkpoints; an Atari run's hold its memory of frames, hundreds of megabytes."""


def read_plan(path: Path) -> Plan:
    """The plan a sweep file describes."""
    document = read_toml(path)
    with _named(path):
        plan = make_plan(document)
        for env in {run.env: run.config.env for run in plan.runs}.values():
            check_env(env)  # rather now than when its turn comes, hours later
    return plan


def make_plan(document: Mapping[str, Any]) -> Plan:
    """The product of presets, flags, variants and seeds; seeds outermost, so that all methods advance together."""
    _check_keys(document, KEYS, "sweep key")
    groups = document.get("groups", [{}])
    if not isinstance(groups, list) or not all(isinstance(group, Mapping) for group in groups):
        raise ConfigError("groups must be tables written as [[groups]]")
    runs = list(itertools.chain.from_iterable(_runs_of(_inherit(document, group)) for group in groups))
    runs.sort(key=lambda run: run.config.seed)  # stable: within a seed, the order of the file
    statistic = document.get("statistic", "auto")
    for run in runs:
        check_statistic(statistic, run.config)
    _refuse_twins(runs)
    keep = document.get("keep_checkpoints", True)
    if type(keep) is not bool:
        raise ConfigError(f"keep_checkpoints must be true or false, got {keep!r}")
    retries = _whole(document, "retries", RETRIES, least=0)
    return Plan(runs=tuple(runs), statistic=statistic, retries=retries, keep_checkpoints=keep)


def _inherit(document: Mapping[str, Any], group: Mapping[str, Any]) -> dict[str, Any]:
    """A group with what the file says for all groups; settings are merged, the rest is replaced."""
    _check_keys(group, GROUP_KEYS, "key of [[groups]]")
    shared = {key: value for key, value in document.items() if key in GROUP_KEYS}
    settings = [_table(source, "settings") for source in (shared, group)]
    return {**shared, **group, "settings": _nest(*settings)}


def _runs_of(group: Mapping[str, Any]) -> Iterator[Run]:
    presets, flags = _presets(group), _table(group, "flags")
    variants = _table(group, "variants") or {"": {}}
    values = [value if isinstance(value, list) else [value] for value in flags.values()]
    for name, choice in zip(flags, values, strict=True):
        if not choice:
            raise ConfigError(f"flags.{name} is an empty list; give at least one value or leave it out")
    for seed, preset, chosen, variant in itertools.product(
        _seeds(group), presets, itertools.product(*values), variants
    ):
        own = _table(variants, variant)
        settings = _nest(group["settings"], own)
        yield _run(group, preset, dict(zip(flags, chosen, strict=True)), variant, settings, seed)


def _run(
    group: Mapping[str, Any],
    preset: Preset,
    flags: dict[str, Any],
    variant: str,
    settings: dict[str, Any],
    seed: int,
) -> Run:
    for key, right in _OWN.items():
        if key in settings:
            raise ConfigError(f"settings cannot hold {key}; use {right} = …")
    config = make_config(preset, flags, settings, seed)
    words = [preset.name.replace("/", "-"), *(f"{name}-{value}" for name, value in flags.items()), variant]
    folder = "_".join(re.sub(r"[^\w.+-]+", "-", word) for word in words if word)
    return Run(
        name=f"{folder}/seed-{seed}",
        method=f"{preset.name} · {variant}" if variant else preset.name,
        env=env_label(config, flags),
        config=config,
        origin={"preset": preset.name, "flags": flags, "variant": variant, "settings": settings, "seed": seed},
        cpus=_number(group, "cpus", float(config.threads)),
        gpus=gpu_share(config, _whole(group, "runs_per_gpu", RUNS_PER_GPU, least=1)),
    )


def gpu_share(config: RunConfig, runs_per_gpu: int = RUNS_PER_GPU) -> float:
    """The part of a GPU a run is given; none on the CPU."""
    return 1.0 / runs_per_gpu if config.device.startswith("cuda") else 0.0


def make_config(preset: Preset, flags: Mapping[str, Any], settings: Mapping[str, Any], seed: int) -> RunConfig:
    """The preset with its flags, the settings over it, and the seed."""
    kinds = {parameter.name: parameter.kind for parameter in preset.parameters}
    for name, value in flags.items():
        if name in kinds and type(value) is not kinds[name] and not (kinds[name] is float and type(value) is int):
            raise ConfigError(f"flags.{name} of {preset.name} must be {kinds[name].__name__}, got {value!r}")
    config = merge(preset(**flags), settings)
    overridden = differences(preset.decide(config, **flags), config)
    if overridden:
        raise ConfigError(
            f"settings contradict flags of {preset.name} ({', '.join(overridden)}); set each in one place"
        )
    return replace(config, seed=seed)


def env_label(config: RunConfig, flags: Mapping[str, Any]) -> str:
    """The environment as tables name it: its id, and what flags chose beyond that."""
    chosen = " ".join(f"{name}={value}" for name, value in flags.items() if value != config.env.id)
    return f"{config.env.id.removeprefix('optimist/')} {chosen}".strip()


def _presets(group: Mapping[str, Any]) -> list[Preset]:
    names = group.get("presets")
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        raise ConfigError(f'presets must be a list of names, as in presets = ["deepsea/opr"], got {names!r}')
    return [get_preset(name) for name in names]


def _seeds(group: Mapping[str, Any]) -> list[int]:
    seeds = group.get("seeds")
    if type(seeds) is int and seeds >= 1:
        return list(range(seeds))
    if isinstance(seeds, list) and seeds and all(type(seed) is int and seed >= 0 for seed in seeds):
        return seeds
    raise ConfigError(f"seeds must be a number of seeds or a list of them, as in seeds = 5, got {seeds!r}")


def _refuse_twins(runs: list[Run]) -> None:
    seen: set[str] = set()
    for run in runs:
        if run.name in seen:
            raise ConfigError(
                f"two runs of the file are called {run.name}: a preset, flag or seed is listed twice, or they need "
                "names of their own as [variants.NAME]"
            )
        seen.add(run.name)


def _nest(*tables: Mapping[str, Any]) -> dict[str, Any]:
    """Tables laid over one another, nested ones too; the last says."""
    found: dict[str, Any] = {}
    for table in tables:
        for key, value in table.items():
            both = isinstance(value, Mapping) and isinstance(found.get(key), Mapping)
            found[key] = _nest(found[key], value) if both else value
    return found


def _table(source: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = source.get(key, {})
    if not isinstance(value, Mapping):
        raise ConfigError(f"{key} must be a table, got {value!r}")
    return dict(value)


def _whole(source: Mapping[str, Any], key: str, default: int, *, least: int) -> int:
    value = source.get(key, default)
    if type(value) is not int or value < least:
        raise ConfigError(f"{key} must be a whole number of at least {least}, got {value!r}")
    return value


def _number(source: Mapping[str, Any], key: str, default: float) -> float:
    value = source.get(key, default)
    if type(value) not in (int, float) or not value > 0:
        raise ConfigError(f"{key} must be a number above 0, got {value!r}")
    return float(value)


def _check_keys(table: Mapping[str, Any], known: tuple[str, ...], kind: str) -> None:
    for key in table:
        if key not in known:
            raise unknown_name(kind, key, known)


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Errors about the content say which file it was."""
    try:
        yield
    except ConfigError as error:
        raise type(error)(f"{path}: {error}") from error
