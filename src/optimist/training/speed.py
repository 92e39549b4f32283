"""How fast a preset trains on this machine: environment steps per second, everything included."""

from __future__ import annotations

import json
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from optimist.presets import get_preset
from optimist.training.loop import train

WARM_UP = 2
"""Updates that do not count: compilation, first allocations."""


def training_speed(preset: str, threads: int, updates: int) -> dict[str, float]:
    """Steps per second over so many updates after a warm-up, and the seconds of an update's two parts."""
    config = get_preset(preset)()
    config = replace(
        config,
        total_steps=config.batch_size * (updates + WARM_UP),
        threads=threads,
        tensorboard=False,
        checkpoint_every=10**9,
    )
    with tempfile.TemporaryDirectory() as folder:
        train(config, Path(folder) / "run", progress=False)
        lines = (Path(folder) / "run" / "metrics.jsonl").read_text().splitlines()
    measured: list[dict[str, Any]] = [json.loads(line) for line in lines[WARM_UP:]]
    collect, update = (sum(line[f"time/{part}"] for line in measured) / len(measured) for part in ("collect", "update"))
    return {
        "steps_per_second": config.batch_size / (collect + update),
        "collect_seconds": collect,
        "update_seconds": update,
    }
