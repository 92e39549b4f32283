"""Where a step of Atari goes: the collector alone, without updates, for several divisions of the games.

    python benchmarks/atari_lanes.py --game Pong --divisions 64,8,4,idle,threads 64,8,4,idle,processes --out lanes.jsonl

A division is games,lanes,workers of a lane,their priority,their kind. A row has steps/s, the cores in use, and the
mean milliseconds of the parts of a lane's step: deciding, sending, receiving. `--decide nothing` plays random moves
instead of the policy's: the gap to the emulators alone (`optimist bench atari`) is then what waiting for the last lane
costs, the gap to a row with decisions what they cost.
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

from optimist.envs.atari.lane import Lane
from optimist.presets import get_preset
from optimist.rollout.decider import Decider
from optimist.rollout.lanes import LaneCollector
from optimist.tracking.run_dir import RunDir
from optimist.training.loop import Trainer

PARTS = {"decide": (Decider, "decide"), "send": (Lane, "send"), "receive": (Lane, "receive_unread")}
DIVISIONS = ["8,4,2,normal,threads", "8,4,2,normal,processes", "64,8,4,idle,threads", "64,8,4,idle,processes"]
WARM_UP = 3
"""Rollouts that do not count: graphs are recorded, first games end."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--game", default="Alien")
    parser.add_argument("--divisions", nargs="+", default=DIVISIONS)
    parser.add_argument("--decide", choices=["policy", "nothing"], default="policy")
    parser.add_argument("--seconds", type=float, default=5.0, help="time per division, at least 4 rollouts")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--out", type=Path, help="a file to append the rows to")
    args = parser.parse_args()
    times = watch_parts()
    if args.decide == "nothing":
        random, (owner, method) = np.random.default_rng(0), PARTS["decide"]
        setattr(owner, method, lambda decider, games, rows: random.integers(0, 2, len(games)))
    for division in args.divisions:
        games, lanes, threads, priority, workers = division.split(",")
        kwargs = {"lanes": int(lanes), "threads": int(threads), "priority": priority, "workers": workers}
        row = {"game": args.game, "decide": args.decide, "games": int(games), **kwargs}
        row |= measure(args.game, int(games), kwargs, args.device, args.seconds, times)
        print(json.dumps(row), flush=True)
        if args.out:
            with args.out.open("a") as file:
                file.write(json.dumps(row) + "\n")


def watch_parts() -> dict[str, list[float]]:
    """From here on the seconds of every part of every lane's step are written down."""
    times: dict[str, list[float]] = defaultdict(list)

    def timed(work: Callable[..., Any], name: str) -> Callable[..., Any]:
        def measured(*arguments: Any) -> Any:
            begin = time.perf_counter()
            result = work(*arguments)
            times[name].append(time.perf_counter() - begin)
            return result

        return measured

    for name, (owner, method) in PARTS.items():
        setattr(owner, method, timed(getattr(owner, method), name))
    return times


def measure(
    game: str, games: int, division: dict[str, Any], device: str, seconds: float, times: dict[str, list[float]]
) -> dict[str, float]:
    """Rollouts of `atari/fast-ppo` (`atari/ppo` up to 16 games), one after the other without an update between."""
    config = get_preset("atari/fast-ppo" if games > 16 else "atari/ppo")(game=game)
    env = replace(config.env, num_envs=games, kwargs={**config.env.kwargs, **division})
    config = replace(config, device=device, tensorboard=False, env=env)
    with tempfile.TemporaryDirectory() as folder, RunDir.create(Path(folder) / "run", config) as run:
        trainer = Trainer(config, run)
        collector = trainer.collector
        assert isinstance(collector, LaneCollector)
        for _ in range(WARM_UP):
            collector.collect()
        times.clear()
        before, begin, rollouts = busy(), time.perf_counter(), 0
        while rollouts < 4 or time.perf_counter() - begin < seconds:
            collector.collect()
            rollouts += 1
        elapsed, used = time.perf_counter() - begin, busy() - before
        trainer.close()
    found = {name: 1e3 * statistics.fmean(spans) for name, spans in times.items()}
    return {
        "steps_per_second": rollouts * games * collector.num_steps / elapsed,
        "cores": used / elapsed,
        "lane_step_ms": 1e3 * elapsed / rollouts / collector.num_steps,
        **{f"{name}_ms": found[name] for name in PARTS if name in found},
    }


def busy() -> float:
    """Seconds that all cores have worked, whoever for: the workers are no part of this process."""
    with Path("/proc/stat").open() as file:
        user, nice, system, *_ = map(float, file.readline().split()[1:])
    return (user + nice + system) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
