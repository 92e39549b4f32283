"""Training speed on this machine: environment steps per second of collecting and updating together."""

from __future__ import annotations

import gc
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import torch

from optimist.config import RunConfig, ValueBasedConfig
from optimist.tracking.run_dir import RunDir
from optimist.training.trainer import Trainer

WARM_UP_UPDATES = 2
"""Updates that are not measured: compilation, first allocations."""
WARM_UP_STEPS = 768
"""Steps of each environment before `sustained_speed` measures: the first episodes end, and resets are included."""
MAX_WARM_UP_STEPS = 4_096
"""Steps of each environment after which `sustained_speed` no longer waits for a first good episode."""
ENDLESS = 10**12
"""Total steps of a run that is stopped by the clock: its schedules stay at their initial values."""


def training_speed(config: RunConfig, threads: int, updates: int) -> dict[str, float]:
    """Steps per second over `updates` updates after a warm-up, and the mean seconds of collecting and updating."""
    with _started(replace(config, threads=threads)) as trainer:
        lines = [trainer.one_update() for _ in range(WARM_UP_UPDATES + updates)]
    seconds = _mean_seconds(lines[WARM_UP_UPDATES:])
    return {"steps_per_second": config.batch_size / sum(seconds.values()), **seconds}


def sustained_speed(config: RunConfig, seconds: float) -> dict[str, float]:
    """Steps per second of a run, measured for about `seconds` after a warm-up.

    Also the seconds from the start to the end of the first update, the mean seconds of collecting and updating, and on
    a GPU the most memory that was reserved.
    """
    warm_up, max_warm_up = (steps * config.env.num_envs for steps in (WARM_UP_STEPS, MAX_WARM_UP_STEPS))
    if isinstance(config.algorithm, ValueBasedConfig):
        warm_up = max(warm_up, config.algorithm.learning_starts)  # there are no gradient steps before
    on_gpu = torch.device(config.device).type == "cuda"
    gc.collect()  # a learner and its graphs form a cycle: memory of an earlier run would be counted
    if on_gpu:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(config.device)
    started = time.perf_counter()
    with _started(config) as trainer:
        line = trainer.one_update()
        start_up = time.perf_counter() - started
        # With the first rows of M a second graph is captured, once in a run.
        while trainer.step < warm_up or (line.get("opr/memory_episodes") == 0.0 and trainer.step < max_warm_up):
            line = trainer.one_update()
        first, measured_from, lines = trainer.step, time.perf_counter(), []
        while time.perf_counter() - measured_from < seconds:
            lines.append(trainer.one_update())
        elapsed = time.perf_counter() - measured_from
    figures = {
        "steps_per_second": (trainer.step - first) / elapsed,
        **_mean_seconds(lines),
        "start_up_seconds": start_up,
        "memory_episodes": lines[-1].get("opr/memory_episodes", 0.0),
    }
    if on_gpu:
        figures["gpu_bytes"] = float(torch.cuda.max_memory_reserved(config.device))
    return figures


@contextmanager
def _started(config: RunConfig) -> Iterator[Trainer]:
    """A trainer of a run that is stopped by the clock, in a temporary folder."""
    config = replace(config, total_steps=ENDLESS, tensorboard=False, evaluate_every=0, final_episodes=0)
    with (
        tempfile.TemporaryDirectory() as folder,
        RunDir.create(Path(folder) / "run", config) as run,
        closing(Trainer(config, run)) as trainer,
    ):
        yield trainer


def _mean_seconds(lines: list[dict[str, float]]) -> dict[str, float]:
    return {f"{part}_seconds": fmean(line[f"time/{part}"] for line in lines) for part in ("collect", "update")}
