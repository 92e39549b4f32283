"""The Python API: `train(preset, …)`, `resume(RUN)`, `agent = load(RUN)`, `agent.act(obs)`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from optimist.config.toml import flat, merge, nested, to_dict
from optimist.core.settings import refuse_removed
from optimist.errors import UnknownName, nearest, unknown_name
from optimist.presets import get_preset
from optimist.training import resume as resuming
from optimist.training import trainer
from optimist.training.agent import Agent, load

__all__ = ["Agent", "load", "resume", "train"]


def train(
    preset: str,
    settings: Mapping[str, Any] | None = None,
    *,
    out: str | Path | None = None,
    progress: bool = True,
    **keywords: Any,
) -> dict[str, Any]:
    """Train from a preset as `optimist train` does and return the summary, whose entry `run` is the run folder.

    Keywords are the preset's own (`size=8`), fields of RunConfig (`seed=1`, `total_steps=50_000`) or its parts, as
    dicts or configs: `opr={"percentile": 90}`, `algorithm=A2CConfig()`. `settings` holds the same with the names of
    config files and flags: `{"opr.percentile": 90}`; a keyword counts more.
    """
    chosen, settings = get_preset(preset), {**(settings or {}), **keywords}
    own = {parameter.name for parameter in chosen.parameters}
    config = chosen(**{name: value for name, value in settings.items() if name in own})
    rest = {name: value for name, value in settings.items() if name not in own}
    parts = [field.name for field in fields(config)]
    known = list(dict.fromkeys([*own, *parts, *(name for name, _ in flat(to_dict(config)))]))
    for name, value in rest.items():
        refuse_removed(name, value)
        if name.partition(".")[0] not in parts:
            raise _unknown_setting(name, value, known)
    for name in sorted(rest, key=lambda name: "." in name):  # whole parts first
        config = merge(config, {name: rest[name]})
    return trainer.train(config, None if out is None else Path(out), progress=progress)


def _unknown_setting(name: str, value: Any, known: list[str]) -> UnknownName:
    """The error for an unknown setting; one that is part of another is shown as the argument to write."""
    near = nearest(name, known)
    if near is None or "." not in near:
        return unknown_name("setting", name, [other for other in known if "." not in other])
    part, setting = near.split(".", 1)
    return UnknownName(f"no setting '{name}'; write {part}={nested({setting: value})}")


def resume(run: str | Path, *, env: str = "", wandb: bool = False, progress: bool = True) -> dict[str, Any]:
    """Resume a stopped run as `optimist resume` does and return the summary.

    `env`: the run's environment again, where its id names a module; `wandb`: log to Weights & Biases.
    """
    return resuming.resume(Path(run), env=env, wandb=wandb, progress=progress)
