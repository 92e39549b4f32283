"""Curves of the selected runs as one figure per environment: mean and band over seeds, thinned for the screen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np

from optimist.report.runs import RETURN
from optimist.ui.folders import RunInfo
from optimist.ui.metrics import FLOAT, read_points, seconds_at

XAxis = Literal["steps", "frames", "time"]
GRID: Final = 240
"""Points of a curve."""
MOST_LINES: Final = 24_000
"""Lines read for one request."""
FEWEST: Final = 80
MOST: Final = 400
"""Lines read of a run."""
BAND_SEEDS: Final = 3
UNITS: Final = {"steps": "environment steps", "frames": "frames", "time": "seconds of training"}
OPR_COLOR: Final = 1
OTHERS: Final = (2, 3, 5, 6, 4)


@dataclass(frozen=True)
class View:
    """What is drawn of the runs."""

    metric: str = RETURN
    xaxis: XAxis = "steps"
    half: bool = False
    smooth: int = 0
    """Share of a curve over which it is smoothed, in percent."""


def colors(runs: Sequence[RunInfo]) -> dict[str, int]:
    """Method → number of its colour: base methods 0, the same with OPR 1; others where an environment has several."""
    envs: dict[str, set[str]] = {}
    for run in runs:
        if run.status != "broken":
            envs.setdefault(run.method, set()).add(run.env)
    found: dict[str, int] = {}
    for method in sorted(envs, key=lambda name: (name.count("·"), len(name), name)):
        taken = {color for other, color in found.items() if envs[other] & envs[method]}
        usual = OPR_COLOR if "OPR" in method else 0
        found[method] = next((color for color in (usual, *OTHERS) if color not in taken), usual)
    return found


def figures(runs: Sequence[RunInfo], view: View, palette: Mapping[str, int]) -> list[dict[str, Any]]:
    """A figure for each environment of the runs, as JSON values; runs without the metric are left out."""
    count = int(np.clip(MOST_LINES // max(len(runs), 1), FEWEST, MOST))
    groups: dict[str, dict[str, list[tuple[RunInfo, FLOAT, FLOAT]]]] = {}
    for run in runs:
        x, y = _points(run, view, count)
        if len(x):
            groups.setdefault(run.env, {}).setdefault(run.method, []).append((run, x, y))
    return [_figure(env, methods, view, palette) for env, methods in sorted(groups.items())]


def _points(run: RunInfo, view: View, count: int) -> tuple[FLOAT, FLOAT]:
    if run.curve is not None:
        steps, values = run.curve if view.metric == RETURN else (np.zeros(0), np.zeros(0))
        speeds = np.full(len(steps), np.nan)
    else:
        steps, values, speeds = read_points(run.path / "metrics.jsonl", view.metric, count)
    if view.xaxis == "time":
        steps = seconds_at(steps, speeds)
        return steps[np.isfinite(steps)], values[np.isfinite(steps)]
    return steps * (run.frames if view.xaxis == "frames" else 1), values


def _figure(
    env: str, methods: Mapping[str, list[tuple[RunInfo, FLOAT, FLOAT]]], view: View, palette: Mapping[str, int]
) -> dict[str, Any]:
    ends = [float(x[-1]) for lines in methods.values() for _, x, _ in lines]
    last = max(ends)
    grid = np.unique(np.concatenate([np.linspace(last / 2 if view.half else 0.0, last, GRID), ends]))
    series = [_series(method, lines, grid, view, palette.get(method, 0)) for method, lines in sorted(methods.items())]
    words = " · ".join(f"{one['method']} {one['count']} run{'s' * (one['count'] != 1)}" for one in series)
    return {"env": env, "metric": short_metric(view.metric), "note": words, "unit": UNITS[view.xaxis],
            "zero": not view.half, "x": _rounded(grid), "series": series}  # fmt: skip


def _series(
    method: str, lines: Sequence[tuple[RunInfo, FLOAT, FLOAT]], grid: FLOAT, view: View, color: int
) -> dict[str, Any]:
    """The lines of a method on the common grid; the mean ends where the shortest of them ends."""
    values = np.array([_on_grid(grid, x, _smoothed(y, view.smooth)) for _, x, y in lines])
    complete = np.isfinite(values).all(0)
    mean = np.where(complete, values.mean(0), np.nan)
    band = len(lines) >= BAND_SEEDS
    return {
        "method": method, "color": color, "count": len(lines), "mean": _rounded(mean),
        "low": _rounded(np.where(complete, values.min(0), np.nan)) if band else None,
        "high": _rounded(np.where(complete, values.max(0), np.nan)) if band else None,
        "seeds": [_rounded(row) for row in values] if len(lines) > 1 else [],
        "runs": [run.name for run, _, _ in lines],
    }  # fmt: skip


def _on_grid(grid: FLOAT, x: FLOAT, y: FLOAT) -> FLOAT:
    """The curve at the grid's points, nan before its first and after its last."""
    values: FLOAT = np.interp(grid, x, y)
    near = (grid[1] - grid[0]) / 2 if len(grid) > 1 else 0.0
    values[(grid < x[0] - near) | (grid > x[-1])] = np.nan
    return values


def _smoothed(y: FLOAT, percent: int) -> FLOAT:
    """A centred moving mean over a share of the curve."""
    half = len(y) * percent // 200
    if half < 1:
        return y
    sums = np.concatenate([[0.0], np.cumsum(y)])
    start, stop = np.maximum(np.arange(len(y)) - half, 0), np.minimum(np.arange(len(y)) + half + 1, len(y))
    means: FLOAT = (sums[stop] - sums[start]) / (stop - start)
    return means


def _rounded(values: FLOAT) -> list[float | None]:
    return [None if value != value else value for value in map(_five_digits, values.tolist())]


def _five_digits(value: float) -> float:
    return float(f"{value:.6g}")


def short_metric(metric: str) -> str:
    """A metric's name for a person."""
    return "return" if metric == RETURN else metric
