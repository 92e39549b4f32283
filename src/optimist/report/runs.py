"""Run folders → Run records: config, curves and scores; whatever is missing or damaged is said, not raised."""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optimist.report.identify import Identity, identify
from optimist.report.scores import Score, Statistic, counted

FLOAT = NDArray[np.float64]
CONFIG, METRICS, SUMMARY = "config.toml", "metrics.jsonl", "summary.json"
RETURN = "rollout/raw_return"
MOST_POINTS = 500  # of a curve; more than a page can show


Kind = Literal["unfinished", "repeated", "other"]


class Problem(NamedTuple):
    """Something the report could not use, and why."""

    where: str
    what: str
    kind: Kind = "other"


class Curve(NamedTuple):
    """A metric over training: [S] environment steps, [S] values."""

    steps: FLOAT
    values: FLOAT


@dataclass(frozen=True)
class Run:
    """One training run, as far as it got."""

    name: str
    """Its folder or row, below what was asked for."""
    identity: Identity
    seed: int | None
    budget: int
    sticky: float | None
    finished: bool
    steps: int
    """Environment steps that were done."""
    scores: Mapping[Statistic, Score]
    curves: Mapping[str, Curve] = field(default_factory=dict)
    config: Mapping[str, Any] = field(default_factory=dict)
    summary: Mapping[str, Any] = field(default_factory=dict)
    source: str = "run folder"

    @property
    def method(self) -> str:
        """The name its column has."""
        return self.identity.method

    @property
    def env(self) -> str:
        """The name its row has."""
        return self.identity.env

    def last(self, metric: str) -> float | None:
        """The metric's last value; None if it was never logged."""
        return float(self.curves[metric].values[-1]) if metric in self.curves else None


def count_seeds(runs: Iterable[Run]) -> int:
    """How many seeds stand behind runs; one that names none counts by itself."""
    return len({run.name if run.seed is None else run.seed for run in runs})


def read_run(path: Path, name: str) -> tuple[Run | None, list[Problem]]:
    """The run in a folder; None if its config cannot be read."""
    problems: list[Problem] = []
    try:
        config = tomllib.loads((path / CONFIG).read_text(encoding="utf-8"))
        identity = identify(config)
        seed, budget = int(config["seed"]), int(config["total_steps"])
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
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
        problems.append(Problem(name, f"{METRICS} holds nothing; no curves"))
    if summary and summary.get("changes"):
        problems.append(Problem(name, f"its config was changed on the way ({'; '.join(map(str, summary['changes']))})"))
    sticky = _number((config.get("env", {}).get("kwargs") or {}).get("sticky"))
    budget = int(_number((summary or {}).get("steps")) or budget)  # whole updates: a little less than was asked for
    run = Run(
        name, identity, seed, budget, sticky, summary is not None, steps, {}, curves, config, summary or {}
    )  # fmt: skip
    scores = scores_of(run, summary or {}, str(name))
    if summary is not None and not scores:
        problems.append(Problem(name, f"{SUMMARY} holds no score; the run is in no table"))
    return replace(run, scores=scores), problems


def scores_of(run: Run, summary: Mapping[str, Any], source: str) -> dict[Statistic, Score]:
    """Every statistic that a summary holds."""
    found: dict[Statistic, Score] = {}

    def add(statistic: Statistic, value: Any, episodes: Any) -> None:
        number = _number(value)
        if number is not None:
            found[statistic] = Score(
                value=number, method=run.method, env=run.env, statistic=statistic, budget=run.budget,
                sticky=run.sticky, seed=run.seed, episodes=int(episodes) if _number(episodes) else None, source=source,
            )  # fmt: skip

    add("last-100", summary.get("last_100_return"), summary.get("episodes_in_statistic"))
    final = summary.get("final_evaluation")
    if isinstance(final, Mapping):
        greedy = final.get("actions") == "greedy"
        add("final-greedy" if greedy else "final", final.get("mean_return"), final.get("episodes"))
    best = summary.get("best_evaluation")
    if isinstance(best, Mapping):
        add("best-epoch", best.get("mean_return"), run.config.get("evaluate_episodes"))
    return found


def _read_curves(path: Path, name: str, problems: list[Problem]) -> dict[str, Curve]:
    """Metric → curve; lines that are no JSON object with a step are counted and left out."""
    try:
        text = path.read_bytes().decode(errors="replace")
    except OSError as error:
        problems.append(Problem(name, f"{METRICS} cannot be read: {_reason(error)}; no curves"))
        return {}
    lines = text.splitlines()
    if text and not text.endswith("\n"):
        lines = lines[:-1]  # being written just now
    points: dict[str, list[tuple[float, float]]] = {}
    bad = 0
    for line in lines:
        try:
            row = json.loads(line)
            step = float(row.pop("step"))
        except (ValueError, KeyError, TypeError, AttributeError):
            bad += 1
            continue
        tested = _number(row.get("evaluation/step"))  # one beside the training is logged when the next begins
        for metric, value in row.items():
            number, of = _number(value), tested if metric == "evaluation/mean_return" else None
            if number is not None:
                points.setdefault(metric, []).append((step if of is None else of, number))
    if bad:
        problems.append(Problem(name, f"{METRICS}: {bad} of {counted(len(lines), 'line')} left out: damaged"))
    return {metric: make_curve(found) for metric, found in points.items()}


def make_curve(points: list[tuple[float, float]]) -> Curve:
    """In the order of steps, the last of equal ones; of many points evenly many are kept, the last among them."""
    array = np.array(sorted(dict(points).items()), float)
    if len(array) > MOST_POINTS:
        array = array[np.linspace(0, len(array) - 1, MOST_POINTS).round().astype(int)]
    return Curve(array[:, 0].copy(), array[:, 1].copy())


def _read_summary(path: Path, name: str, problems: list[Problem]) -> dict[str, Any] | None:
    if not path.exists():
        return None
    try:
        summary = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        problems.append(Problem(name, f"{SUMMARY} is damaged: {_reason(error)}"))
        return None
    if not isinstance(summary, dict):
        problems.append(Problem(name, f"{SUMMARY} is damaged: it is no table of results"))
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
