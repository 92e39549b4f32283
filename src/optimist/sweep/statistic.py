"""The one number a run is compared by: of its final policy, its last 100 training episodes, or its best evaluation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from optimist.config import RunConfig
from optimist.errors import ConfigError, unknown_name

STATISTICS = ("auto", "final", "last-100", "best-epoch")
"""`auto` is `final` where the run plays final episodes, else `last-100`."""


class Score(NamedTuple):
    """A run's number and what it is the mean of; None where no episode ended."""

    value: float | None
    statistic: str


def check_statistic(name: Any, config: RunConfig) -> None:
    """Raises where a run will not have the statistic that is asked for."""
    if name not in STATISTICS:
        raise unknown_name("statistic", str(name), STATISTICS)
    if name == "final" and not config.final_episodes:
        raise ConfigError(f"statistic 'final' needs final episodes, {config.preset} plays none: set final_episodes")
    if name == "best-epoch" and not config.evaluate_every:
        raise ConfigError(f"statistic 'best-epoch' needs evaluations, {config.preset} makes none: set evaluate_every")


def score(summary: Mapping[str, Any], name: str) -> Score:
    """The statistic of a finished run, from its summary."""
    if name == "best-epoch":
        found = summary["best_evaluation"]
    elif name == "final" or (name == "auto" and "final_evaluation" in summary):
        found = summary["final_evaluation"]
    else:
        return Score(summary["last_100_return"], summary["statistic"])
    return Score(found["mean_return"], found["statistic"])
