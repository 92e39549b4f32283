"""Time of the Atari collector alone, without updates, for both emulators and several numbers of workers.

    python benchmarks/atari_collector.py --game Pong --workers 64,8,0,idle,ale 64,8,4,idle,a2600 --out x.jsonl

Each value is num_envs,num_workers,threads,priority,emulator. A row has steps/s, busy cores, batches per rollout and
slots per batch, and the mean microseconds of the Python code in between: submitting a batch, sending actions, storing
results. `--actions random` replaces the policy: the gap to the emulators alone (`optimist bench atari`) is then the
time spent waiting for the last slot, and the gap to a row with the policy is the time of its batches. Between rollouts
the script waits for `--pause` seconds, which are not measured: as long as an update, in which episodes are prepared.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from optimist.cuda.acting import BatchActor
from optimist.envs.atari.collector import AtariCollector, AtariColumns
from optimist.envs.atari.vector import AtariVectorEnv
from optimist.presets import get_preset
from optimist.tracking.run_dir import RunDir
from optimist.training.trainer import Trainer

PARTS = {"submit": (BatchActor, "submit"), "send": (AtariVectorEnv, "send"), "store": (AtariColumns, "add_results")}
WORKERS = ["8,4,0,normal,ale", "8,4,0,normal,a2600", "64,8,0,idle,ale", "64,8,0,idle,a2600"]
WARM_UP = 3
"""Rollouts that are not measured: graphs are captured, first episodes end."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--game", default="Alien")
    parser.add_argument("--workers", nargs="+", default=WORKERS)
    parser.add_argument("--actions", choices=["policy", "random"], default="policy")
    parser.add_argument("--seconds", type=float, default=5.0, help="time per row, at least 4 rollouts")
    parser.add_argument("--pause", type=float, default=0.05, help="seconds between two rollouts")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--out", type=Path, help="a file to append the rows to")
    args = parser.parse_args()
    if args.actions == "random":
        act_at_random()
    times = time_parts()
    for workers in args.workers:
        num_envs, num_workers, threads, priority, emulator = workers.split(",")
        kwargs = {
            "num_workers": int(num_workers),
            "threads": int(threads),
            "priority": priority,
            "emulator": emulator,
        }
        row = {"game": args.game, "actions": args.actions, "num_envs": int(num_envs), **kwargs}
        row |= measure(args.game, int(num_envs), kwargs, args.device, args.seconds, args.pause, times)
        print(json.dumps(row), flush=True)
        if args.out:
            with args.out.open("a") as file:
                file.write(json.dumps(row) + "\n")


def act_at_random() -> None:
    """Replace the policy by random actions."""
    random = np.random.default_rng(0)

    def submit(actor: BatchActor, slots: Any, rows: Any) -> None:
        actor.count = len(slots)

    BatchActor.submit = submit  # type: ignore[method-assign]
    BatchActor.is_ready = lambda actor: True  # type: ignore[method-assign]
    BatchActor.result = lambda actor: random.integers(0, 2, actor.count)  # type: ignore[method-assign]


def time_parts() -> dict[str, list[float]]:
    """Record the seconds of every call of each part."""
    times: dict[str, list[float]] = defaultdict(list)

    def timed(work: Callable[..., Any], name: str) -> Callable[..., Any]:
        def measured(*arguments: Any) -> Any:
            start = time.perf_counter()
            result = work(*arguments)
            times[name].append(time.perf_counter() - start)
            return result

        return measured

    for name, (owner, method) in PARTS.items():
        setattr(owner, method, timed(getattr(owner, method), name))
    return times


def measure(
    game: str,
    num_envs: int,
    kwargs: dict[str, Any],
    device: str,
    seconds: float,
    pause: float,
    times: dict[str, list[float]],
) -> dict[str, float]:
    """Collect rollouts of `atari/fast-ppo` (`atari/ppo` up to 16 environments) without updates."""
    config = get_preset("atari/fast-ppo" if num_envs > 16 else "atari/ppo")(game=game)
    env = replace(config.env, num_envs=num_envs, kwargs={**config.env.kwargs, **kwargs})
    config = replace(config, device=device, tensorboard=False, env=env)
    elapsed = used = 0.0
    with tempfile.TemporaryDirectory() as folder, RunDir.create(Path(folder) / "run", config) as run:
        trainer = Trainer(config, run)
        collector, rollouts = trainer.collector, -WARM_UP
        assert isinstance(collector, AtariCollector)
        while rollouts < 4 or elapsed < seconds:
            if rollouts == 0:
                times.clear()
            before, start = busy_seconds(), time.perf_counter()
            collector.collect()
            rollouts += 1
            if rollouts > 0:
                elapsed, used = elapsed + time.perf_counter() - start, used + busy_seconds() - before
            collector.on_update_start()
            time.sleep(pause)
        trainer.close()
    steps = rollouts * num_envs * collector.num_steps
    return {
        "steps_per_second": steps / elapsed,
        "cores": used / elapsed,
        "batches": len(times["submit"]) / rollouts,
        "slots_per_batch": steps / len(times["submit"]),
        **{f"{name}_us": 1e6 * statistics.fmean(times[name]) for name in PARTS},
    }


def busy_seconds() -> float:
    """Busy seconds of all cores of the machine, which include those of worker processes."""
    with Path("/proc/stat").open() as file:
        user, nice, system, *_ = map(float, file.readline().split()[1:])
    return (user + nice + system) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
