"""Run records from run folders: config, curves and scores; missing and damaged files become problems, not errors."""

from __future__ import annotations

import math
import os
from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optimist.config.toml import TOML_BYTES, parse_toml
from optimist.errors import ConfigError
from optimist.reading import parse_json, read_json, read_lines, read_text
from optimist.report.formatting import counted
from optimist.report.identify import Identity, identify

FLOAT = NDArray[np.float64]
CONFIG, METRICS, SUMMARY = "config.toml", "metrics.jsonl", "summary.json"
RETURN = "rollout/raw_return"
MAX_POINTS = 500  # of a curve; a page cannot show more
KEPT_POINTS = 8_192  # of a curve while its file is read
MAX_METRICS = 500  # of a run


Statistic = Literal["last-100", "final", "final-greedy", "best-epoch", "not stated"]
STATISTICS: dict[Statistic, str] = {
    "last-100": "mean raw return of the last 100 training episodes, sampled actions",
    "final": "mean raw return of the final policy on fresh episodes, sampled actions",
    "final-greedy": "mean raw return of the final policy on fresh episodes, most likely actions",
    "best-epoch": "highest mean of the evaluations during training: a maximum, biased upwards",
    "not stated": "the source does not say",
}
"""The meaning of each statistic; they are not comparable with each other."""
BUDGET_TOLERANCE = 0.02


class Problem(NamedTuple):
    """Something the report could not use, and why."""

    where: str
    what: str
    kind: Literal["unfinished", "repeated", "other"] = "other"
    path: Path | None = None
    """The run folder or results file."""


class Curve(NamedTuple):
    """A metric over training: [S] environment steps, [S] values."""

    steps: FLOAT
    values: FLOAT


class Score(NamedTuple):
    """A statistic of a run, and the number of episodes in it, if known."""

    value: float
    episodes: int | None = None


@dataclass(frozen=True)
class Run:
    """One training run, finished or not."""

    name: str
    """Its folder or row, relative to the folder given to the report."""
    identity: Identity
    seed: int
    budget: int
    """Environment steps of training; an Atari step is 4 frames."""
    sticky: float | None
    """Probability that the console repeats an action; None outside Atari."""
    finished: bool
    steps: int
    """Environment steps done."""
    scores: Mapping[Statistic, Score] = field(default_factory=dict)
    curves: Mapping[str, Curve] = field(default_factory=dict)
    config: Mapping[str, Any] = field(default_factory=dict)
    """Empty for a row of a results file."""
    summary: Mapping[str, Any] = field(default_factory=dict)
    path: Path | None = None
    """Its folder, or the results file of its row."""

    @property
    def method(self) -> str:
        """The name of its column."""
        return self.identity.method

    @property
    def env(self) -> str:
        """The name of its row."""
        return self.identity.env

    def last(self, metric: str) -> float | None:
        """The metric's last value; None if it was never logged."""
        return float(self.curves[metric].values[-1]) if metric in self.curves else None


def same(field: str, value: Any, other: Any) -> bool:
    """Whether two values of a run's field are of one kind; budgets may differ by 2 %, less than one whole update."""
    if field == "budget":
        return bool(abs(value - other) <= BUDGET_TOLERANCE * max(value, other))
    return bool(value == other)


def count_seeds(runs: Iterable[Run]) -> int:
    """Number of different seeds."""
    return len({run.seed for run in runs})


def read_run(path: Path, name: str) -> tuple[Run | None, list[Problem]]:
    """The run in a folder; None if its config cannot be read."""
    problems: list[Problem] = []
    try:
        config = parse_toml(read_text(path / CONFIG, TOML_BYTES), CONFIG)
        identity = identify(config)
        seed, budget = int(config["seed"]), int(config["total_steps"])
    except (OSError, UnicodeDecodeError, ConfigError) as error:
        return None, [Problem(name, f"{CONFIG} cannot be read: {_reason(error)}; the run is left out")]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        return None, [Problem(name, f"{CONFIG} is not that of a run ({_reason(error)}); the run is left out")]
    curves = _read_curves(path / METRICS, name, problems)
    summary = _read_summary(path / SUMMARY, name, problems)
    steps = max((int(curve.steps[-1]) for curve in curves.values()), default=0)
    if summary is None:
        share = f"{steps:,} of {budget:,} steps" if curves else "no step logged"
        problems.append(Problem(name, f"not finished ({share})", "unfinished"))
    elif not curves and (path / METRICS).exists():
        problems.append(Problem(name, f"{METRICS} is empty; no curves"))
    if summary and summary.get("changes"):
        changes = "; ".join(map(str, summary["changes"]))
        problems.append(Problem(name, f"its config was changed during the run ({changes})"))
    sticky = _number((config.get("env", {}).get("kwargs") or {}).get("sticky"))
    budget = int(_number((summary or {}).get("steps")) or budget)  # whole updates: slightly below what was asked for
    scores = read_scores(summary or {}, config)
    if summary is not None and not scores:
        problems.append(Problem(name, f"{SUMMARY} has no score; the run is in no table"))
    run = Run(
        name, identity, seed, budget, sticky, summary is not None, steps, scores, curves, config, summary or {}
    )  # fmt: skip
    return run, problems


def read_scores(summary: Mapping[str, Any], config: Mapping[str, Any]) -> dict[Statistic, Score]:
    """Every statistic of a summary."""
    final, best = summary.get("final_evaluation"), summary.get("best_evaluation")
    final, best = (part if isinstance(part, Mapping) else {} for part in (final, best))
    found: dict[Statistic, tuple[Any, Any]] = {
        "last-100": (summary.get("last_100_return"), summary.get("episodes_in_statistic")),
        "final-greedy" if final.get("actions") == "greedy" else "final": (
            final.get("mean_return"),
            final.get("episodes"),
        ),
        "best-epoch": (best.get("mean_return"), config.get("evaluate_episodes")),
    }
    numbers = {name: (_number(value), _number(episodes)) for name, (value, episodes) in found.items()}
    return {
        name: Score(value, None if episodes is None else int(episodes))
        for name, (value, episodes) in numbers.items()
        if value is not None
    }


class Points:
    """The points of one metric, (step, value), read one by one; of very many, every second one is dropped."""

    def __init__(self) -> None:
        self.kept: array[float] = array("d")
        self.last = (0.0, 0.0)
        self.every, self.number = 1, 0

    def add(self, step: float, value: float) -> None:
        """Keep the point, unless so many are kept that every 2nd, 4th, … is enough."""
        if self.number % self.every == 0:
            self.kept.extend((step, value))
        self.number, self.last = self.number + 1, (step, value)
        if len(self.kept) >= 2 * KEPT_POINTS:
            pairs = list(self)[:-1:2]
            self.kept = array("d", [number for pair in pairs for number in pair])
            self.every *= 2

    def __iter__(self) -> Iterator[tuple[float, float]]:
        yield from zip(self.kept[::2], self.kept[1::2], strict=True)
        yield self.last


def make_curve(points: Iterable[tuple[float, float]]) -> Curve:
    """A curve sorted by step with the last value of equal steps; long curves are thinned evenly and keep their ends."""
    array = np.array(sorted(dict(points).items()), float)
    if len(array) > MAX_POINTS:
        array = array[np.linspace(0, len(array) - 1, MAX_POINTS).round().astype(int)]
    return Curve(array[:, 0].copy(), array[:, 1].copy())


def _read_curves(path: Path, name: str, problems: list[Problem]) -> dict[str, Curve]:
    """Metric → curve; lines that are no JSON object with a step are counted and skipped."""
    points: dict[str, Points] = {}
    lines = bad = 0
    try:
        for lines, line in enumerate(read_lines(path, complete=True), 1):  # noqa: B007 - counted
            try:
                row = parse_json(line)
                step = float(row.pop("step"))
            except (ValueError, KeyError, TypeError, AttributeError):
                bad += 1
                continue
            evaluated = _number(row.get("evaluation/step"))  # a concurrent evaluation is logged later than its policy
            for metric, value in row.items():
                number, at = _number(value), evaluated if metric == "evaluation/mean_return" else None
                if number is not None and (metric in points or len(points) < MAX_METRICS):
                    points.setdefault(metric, Points()).add(step if at is None else at, number)
    except OSError as error:
        problems.append(Problem(name, f"{METRICS} cannot be read: {_reason(error)}; no curves"))
        return {}
    if bad:
        problems.append(Problem(name, f"{METRICS}: {bad} of {counted(lines, 'line')} left out: damaged"))
    return {metric: make_curve(found) for metric, found in points.items()}


def _read_summary(path: Path, name: str, problems: list[Problem]) -> dict[str, Any] | None:
    if not os.path.lexists(path):
        return None
    try:
        summary = read_json(path)
        if not isinstance(summary, dict):
            raise ValueError("not a JSON object")
    except (OSError, ValueError) as error:
        problems.append(Problem(name, f"{SUMMARY} is damaged: {_reason(error)}"))
        return None
    return summary


def _number(value: Any) -> float | None:
    """A finite number, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def _reason(error: Exception) -> str:
    words = " ".join(str(getattr(error, "strerror", None) or error).split())
    return words[:160] or type(error).__name__
