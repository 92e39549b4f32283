"""How fast a preset trains on this machine: environment steps per second, everything included."""

from __future__ import annotations

import gc
import json
import tempfile
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from optimist.config import RunConfig, ValueBasedConfig
from optimist.presets import get_preset
from optimist.tracking.run_dir import RunDir
from optimist.training.loop import Trainer, train

WARM_UP = 2
"""Updates that do not count: compilation, first allocations."""

WARM_UP_STEPS = 768
"""Steps of each environment that do not count where a speed is to last: first games end, restarts come in."""

LONGEST_WARM_UP = 4_096
"""Steps of each environment after which nobody waits any longer for a first episode that is worth remembering."""

ENDLESS = 10**12
"""Steps of a run that is stopped by the clock: its schedules stand where they begin."""


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


def sustained_speed(config: RunConfig, seconds: float) -> dict[str, float]:
    """Steps per second of a run for about so many seconds, after it has warmed up.

    Beside it: seconds from nothing to the end of the first update, seconds of an update's two parts, and on a GPU the
    most memory that was reserved.
    """
    config = replace(config, total_steps=ENDLESS, tensorboard=False, evaluate_every=0, final_episodes=0)
    warm_up, longest = (steps * config.env.num_envs for steps in (WARM_UP_STEPS, LONGEST_WARM_UP))
    if isinstance(config.algorithm, ValueBasedConfig):
        warm_up = max(warm_up, config.algorithm.learning_starts)  # before, there are no gradient steps to measure
    on_gpu = torch.device(config.device).type == "cuda"
    gc.collect()  # a learner and its graphs know each other: memory of a run before would be counted as this one's
    if on_gpu:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(config.device)
    started = time.perf_counter()
    with (
        tempfile.TemporaryDirectory() as folder,
        RunDir.create(Path(folder) / "run", config) as run,
        closing(Trainer(config, run)) as trainer,
    ):
        line = trainer.one_update()
        start_up = time.perf_counter() - started
        # With the first rows of M another graph is recorded, which a run does once.
        while trainer.step < warm_up or (line.get("opr/memory_episodes") == 0.0 and trainer.step < longest):
            line = trainer.one_update()
        first, begin, lines = trainer.step, time.perf_counter(), []
        while time.perf_counter() - begin < seconds:
            lines.append(trainer.one_update())
        elapsed = time.perf_counter() - begin
    figures = {
        "steps_per_second": (trainer.step - first) / elapsed,
        "collect_seconds": sum(line["time/collect"] for line in lines) / len(lines),
        "update_seconds": sum(line["time/update"] for line in lines) / len(lines),
        "start_up_seconds": start_up,
        "memory_episodes": lines[-1].get("opr/memory_episodes", 0.0),
    }
    if on_gpu:
        figures["gpu_bytes"] = float(torch.cuda.max_memory_reserved(config.device))
    return figures
