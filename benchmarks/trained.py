"""One training run of a benchmark, in a folder that is gone afterwards."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

CURVE_POINTS = 100


def train_away(config: Any) -> tuple[dict[str, Any], list[list[float]]]:
    """The run's summary, and its curve: step and mean return of the last 100 episodes, one point an update."""
    from optimist.tracking.metrics_log import read_metrics
    from optimist.training.loop import train

    with tempfile.TemporaryDirectory() as folder:
        summary = train(config, Path(folder) / "run", progress=False)
        lines = read_metrics(Path(folder) / "run" / "metrics.jsonl")
    return summary, [
        [line["step"], line["rollout/raw_return"]] for line in lines if line.get("rollout/raw_return") is not None
    ]


def thinned(curve: list[list[float]]) -> list[list[float]]:
    """About a hundred points of it."""
    return curve[:: max(1, len(curve) // CURVE_POINTS)]
