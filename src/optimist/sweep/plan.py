"""Sweep files: TOML → Plan, with every run the file describes in the order they start. Unknown keys are errors."""

from __future__ import annotations

import itertools
import json
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal

from optimist.config import RunConfig
from optimist.config.toml import differences, flat, merge, nested, overlay, read_toml, to_dict
from optimist.core.settings import AtLeastOne, AtLeastZero, OrNone, Positive, settings
from optimist.envs.make import check_env
from optimist.errors import ConfigError, UnknownName, nearest, unknown_name
from optimist.presets import Preset, get_preset

_RUN_SETTINGS = frozenset(part.name for part in fields(RunConfig))
_OTHER_KEYS = {"seed": "seeds", "preset": "presets"}
"""Settings that a sweep file sets by a key of its own."""


@settings("")
class SweepGroup:
    """Keys of a [[groups]] table; at the top of a file they count for all of its groups."""

    presets: list[str] = field(default_factory=list)
    flags: dict[str, Any] = field(default_factory=dict)
    """Keywords of the presets; of a list of values each one is run."""
    settings: dict[str, Any] = field(default_factory=dict)
    """As in a config file."""
    variants: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Name → further settings."""
    seeds: Any = None
    """A number of seeds, or a list of them."""
    first_seed: AtLeastZero = 0
    cpus: OrNone[Positive] = None
    """Cores of a run; None for its `threads`."""
    runs_per_gpu: AtLeastOne = 4
    score_episodes: AtLeastZero = 0
    """Fresh episodes that the final policy of each CAGE 2 run plays, by argmax and sampled; 0: none."""

    def seed_list(self) -> list[int]:
        """The seeds themselves."""
        seeds: Any = self.seeds
        if type(seeds) is int and seeds >= 1:
            return list(range(self.first_seed, self.first_seed + seeds))
        if isinstance(seeds, list) and seeds and all(type(seed) is int and seed >= 0 for seed in seeds):
            if self.first_seed:
                raise ConfigError("first_seed goes with a number of seeds, not with a list; remove one of them")
            return seeds
        raise ConfigError(f"seeds must be a number of seeds or a list of them, as in seeds = 5, got {seeds!r}")


@settings("")
class SweepFile(SweepGroup):
    """A sweep file: what is run, what is done with the runs, and the columns of the table."""

    groups: list[dict[str, Any]] = field(default_factory=lambda: [{}])
    statistic: Literal["auto", "final", "last-100", "best-epoch"] = "auto"
    """`auto` is `final` where the run plays final episodes, else `last-100`."""
    last_third: list[str] = field(default_factory=list)
    """Metrics of metrics.jsonl of which a row keeps the mean over the last third of the run."""
    curve_points: AtLeastOne = 200
    """Most points of the learning curve in each row of runs.jsonl."""
    retries: AtLeastZero = 2
    keep_checkpoints: bool = True
    """Whether finished runs keep their checkpoints, which hold the memory: hundreds of megabytes for Atari."""
    out: str = ""
    """The folder, relative to the file."""
    measures: list[str] = field(default_factory=lambda: ["value", "solved"])
    """Metrics of a row; `a/b`: the share of the runs with b for which a holds; `steps/s`: the median speed."""
    baseline: str = ""
    """The method that others are compared with, by the first measure."""
    average_over: str = ""
    """A flag: adds rows with the mean over its values, of the seeds that have all of them."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run: name of its folder, labels for tables, config, and the cores and GPU share it needs."""

    name: str
    method: str
    env: str
    config: RunConfig
    origin: Mapping[str, Any] = field(default_factory=dict)
    """Preset, flags, variant, settings and seed that the config was made from."""
    score_episodes: int = 0
    cpus: float = 1.0
    gpus: float = 0.0

    @property
    def budget(self) -> int:
        """Environment steps of the run: whole updates."""
        return self.config.total_updates * self.config.batch_size

    @property
    def record(self) -> dict[str, Any]:
        """What plan.json and runs.jsonl hold about the run before it starts."""
        return {"run": self.name, "method": self.method, "env": self.env, "budget": self.budget, **self.origin}


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The runs of a sweep, and what its file says about them."""

    runs: tuple[Run, ...]
    file: SweepFile = field(default_factory=SweepFile)
    out: Path | None = None


def read_plan(path: Path) -> Plan:
    """The plan a sweep file describes; its `out` is relative to the file."""
    document = read_toml(path)
    try:
        plan = make_plan(document)
        for env in {run.env: run.config.env for run in plan.runs}.values():
            check_env(env)
    except ConfigError as error:
        raise type(error)(f"{path}: {error}") from error
    return replace(plan, out=Path(os.path.normpath(path.parent / plan.file.out))) if plan.file.out else plan


def make_plan(document: Mapping[str, Any]) -> Plan:
    """The product of presets, flags, variants and seeds; seeds outermost, so that all methods advance together."""
    _check_keys(document)
    file = SweepFile(**document)
    runs = [run for group in file.groups for run in _runs_of_group(_inherit(document, group))]
    runs.sort(key=lambda run: run.config.seed)  # stable: within a seed, the order of the file
    for run in runs:
        _check_measured(run, file.statistic)
    _check_unique_names(runs)
    _check_table(file, runs)
    return Plan(runs=tuple(runs), file=file)


def shard_of(plan: Plan, shard: str) -> Plan:
    """The k-th of n parts of a plan, `k/n`: every n-th run, so that parts take about as long."""
    part, slash, parts = shard.partition("/")
    if not (slash and part.isdigit() and parts.isdigit() and 1 <= int(part) <= int(parts)):
        raise ConfigError(f"--shard must be K/N with K from 1 to N, as in 2/4, got {shard}")
    return replace(plan, runs=plan.runs[int(part) - 1 :: int(parts)])


def _inherit(document: Mapping[str, Any], group: Mapping[str, Any]) -> SweepGroup:
    """A group with the keys it inherits from the file; settings are merged, other keys are replaced."""
    shared = {field.name: document[field.name] for field in fields(SweepGroup) if field.name in document}
    _check_keys(group)
    own = SweepGroup(**group)
    return SweepGroup(
        **{**shared, **group, "settings": overlay(nested(shared.get("settings", {})), nested(own.settings))}
    )


def _check_keys(table: Mapping[str, Any]) -> None:
    """Raise if a key of the file is a setting of the runs, with the line to write."""
    for name, value in table.items():
        if name not in _OTHER_KEYS and name.partition(".")[0] in _RUN_SETTINGS:
            raise UnknownName(f"no key '{name}' in a sweep file; {_line(name, value)}")


def _runs_of_group(group: SweepGroup) -> Iterator[Run]:
    if not group.presets:
        raise ConfigError('presets must be a list of at least one name, as in presets = ["deepsea/opr"]')
    presets, flags, variants = [get_preset(name) for name in group.presets], group.flags, group.variants or {"": {}}
    values = [value if isinstance(value, list) else [value] for value in flags.values()]
    for name, choice in zip(flags, values, strict=True):
        if not choice:
            raise ConfigError(f"flags.{name} is an empty list; give at least one value or leave it out")
    for preset, (name, value) in itertools.product(presets, flags.items()):
        _check_flag(preset, name, value)
    choices = [dict(zip(flags, chosen, strict=True)) for chosen in itertools.product(*values)]
    for seed, preset, chosen, variant in itertools.product(group.seed_list(), presets, choices, variants):
        settings = overlay(group.settings, nested(variants[variant]))
        for key, right in _OTHER_KEYS.items():
            if key in settings:
                raise ConfigError(f"settings cannot hold {key}; use {right} = …")
        config = _make_config(preset, chosen, settings, seed)
        words = [preset.name.replace("/", "-"), *(f"{name}-{value}" for name, value in chosen.items()), variant]
        folder = "_".join(re.sub(r"[^\w.+-]+", "-", word) for word in words if word)
        yield Run(
            name=f"{folder}/seed-{seed}",
            method=f"{preset.name} · {variant}" if variant else preset.name,
            env=env_label(config, chosen),
            config=config,
            origin={"preset": preset.name, "flags": chosen, "variant": variant, "settings": settings, "seed": seed},
            score_episodes=group.score_episodes,
            cpus=group.cpus or float(config.threads),
            gpus=1.0 / group.runs_per_gpu if config.device.startswith("cuda") else 0.0,
        )


def _check_flag(preset: Preset, name: str, value: Any) -> None:
    """Raise unless the preset has the flag; a setting is shown as the line to write."""
    flags = [parameter.name for parameter in preset.parameters]
    if name in flags:
        return
    name, value = next(flat({name: value}), (name, value))  # opr.percentile
    setting = nearest(name, [known for known, _ in flat(to_dict(preset()))])
    if nearest(name, flags) or setting is None:
        raise unknown_name(f"flag of {preset.name} called", name, flags)
    raise UnknownName(f"no flag of {preset.name} called '{name}'; {_line(setting, value)}")


def _line(setting: str, value: Any) -> str:
    """The line of a sweep file that sets the setting; several values need a variant each."""
    setting, value = next(flat({setting: value}), (setting, value))
    if isinstance(value, list):
        return f"write [variants.NAME] for each value, with {setting} = {json.dumps(value[0])} below it"
    return f"write settings.{setting} = {json.dumps(value)}"


def _make_config(preset: Preset, flags: Mapping[str, Any], settings: Mapping[str, Any], seed: int) -> RunConfig:
    """The preset with its flags, the settings over it, and the seed."""
    kinds = {parameter.name: parameter.kind for parameter in preset.parameters}
    for name, value in flags.items():
        if type(value) is not kinds[name] and not (kinds[name] is float and type(value) is int):
            raise ConfigError(f"flags.{name} of {preset.name} must be {kinds[name].__name__}, got {value!r}")
    for name in kinds.keys() & settings.keys() - _RUN_SETTINGS:
        raise UnknownName(f"no setting '{name}'; write flags.{name} = {json.dumps(settings[name])}")
    config = merge(preset(**flags), settings)
    overridden = differences(preset.reapply(config, **flags), config)
    if overridden:
        raise ConfigError(
            f"settings contradict flags of {preset.name} ({', '.join(overridden)}); set each in one place"
        )
    return replace(config, seed=seed)


def env_label(config: RunConfig, flags: Mapping[str, Any]) -> str:
    """The environment in tables: its id, and the flags that choose more than the id."""
    chosen = " ".join(f"{name}={value}" for name, value in flags.items() if value != config.env.id)
    return f"{config.env.id.removeprefix('optimist/')} {chosen}".strip()


def _check_measured(run: Run, statistic: str) -> None:
    """Raise if the run will not have the statistic or the score that the file asks for."""
    preset, config = run.config.preset, run.config
    if statistic == "final" and not config.final_episodes:
        raise ConfigError(f"statistic 'final' needs final episodes, {preset} plays none: set final_episodes")
    if statistic == "best-epoch" and not config.evaluate_every:
        raise ConfigError(f"statistic 'best-epoch' needs evaluations, {preset} makes none: set evaluate_every")
    if run.score_episodes and not config.env.id.startswith("optimist/CAGE2"):
        raise ConfigError(f"score_episodes works with CAGE 2 only, {preset} has {config.env.id}: remove one of them")


def _check_table(file: SweepFile, runs: list[Run]) -> None:
    """Raise if the columns of the table name what no run has."""
    if not file.measures:
        raise ConfigError('measures must be a list of at least one name, as in measures = ["goal_seen", "solved"]')
    if file.baseline and file.baseline not in (methods := {run.method for run in runs}):
        raise unknown_name("method for baseline", file.baseline, methods)
    if file.average_over and file.average_over not in (flags := {name for run in runs for name in run.origin["flags"]}):
        raise unknown_name("flag for average_over", file.average_over, flags)


def _check_unique_names(runs: list[Run]) -> None:
    name, count = Counter(run.name for run in runs).most_common(1)[0]
    if count > 1:
        raise ConfigError(
            f"two runs of the file are called {name}: list each preset, flag and seed once, or give each "
            "group a name as [variants.NAME]"
        )
