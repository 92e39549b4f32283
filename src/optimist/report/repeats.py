"""Runs that are there more than once: which one is taken, and how the others' configs differ from its."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from optimist.report.runs import Problem, Run
from optimist.report.scores import same


def without_repeats(runs: list[Run]) -> tuple[list[Run], list[Problem]]:
    """Each seed of a method on an environment with a budget once: finished, rather unchanged; else the furthest."""
    kept: dict[tuple[Any, ...], list[Run]] = {}
    repeated: list[Problem] = []
    finished = sorted((run for run in runs if run.finished), key=lambda run: bool(run.summary.get("changes")))
    unfinished = sorted((run for run in runs if not run.finished), key=lambda run: -run.steps)
    for run in finished + unfinished:
        others = kept.setdefault((run.identity, run.seed, run.sticky), [])
        taken = next((other for other in others if same("budget", other.budget, run.budget)), None)
        if run.seed is not None and taken is not None:
            what = f"{taken.name} is taken instead; {differences(run.config, taken.config)}"
            repeated.append(Problem(run.name, what, "repeated"))
        else:
            others.append(run)
    chosen = {id(run) for others in kept.values() for run in others}
    return [run for run in runs if id(run) in chosen], repeated


def differences(config: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    """The settings in which two runs of one experiment differ, in words: checkpoints, logging, devices."""
    if not config or not other:
        return "rows of results files hold no config to compare"
    ours, theirs = _flat(config), _flat(other)
    found = [
        f"{key} is {ours.get(key, 'not set')}, there {theirs.get(key, 'not set')}"
        for key in sorted({*ours, *theirs})
        if ours.get(key) != theirs.get(key)
    ]
    return "; ".join(found) or "their configs are equal"


def _flat(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Settings by their names, `env.kwargs.game`."""
    found: dict[str, Any] = {}
    for key, value in config.items():
        found |= _flat(value, f"{prefix}{key}.") if isinstance(value, Mapping) else {f"{prefix}{key}": value}
    return found
