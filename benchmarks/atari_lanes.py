"""Where a step of Atari goes: the collector alone, without updates, for several divisions of the games.

    python benchmarks/atari_lanes.py --game Pong --divisions 64,8,4,idle,threads 64,8,4,idle,processes --out lanes.jsonl

A division is games,lanes,workers of a lane,their priority,their kind. A row has steps/s, the cores in use, decisions a
rollout and games a decision, and the mean microseconds of what Python does between: asking for a decision, beginning
steps, noting what they gave. `--decide nothing` plays random moves instead of the policy's: the gap to the emulators
alone (`optimist bench atari`) is then what waiting for the last game costs, the gap to a row with decisions what they
cost. Between two rollouts nothing happens for `--rest` seconds, which do not count: as long as a learner would take, in
which beginnings of next games are prepared.
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

from optimist.envs.atari.vector import AtariVectorEnv
from optimist.presets import get_preset
from optimist.rollout.decider import Decider
from optimist.rollout.lanes import LaneCollector, LaneColumns
from optimist.tracking.run_dir import RunDir
from optimist.training.loop import Trainer

PARTS = {"ask": (Decider, "ask"), "begin": (AtariVectorEnv, "begin"), "note": (LaneColumns, "note_step")}
DIVISIONS = ["8,4,2,normal,threads", "8,4,2,normal,processes", "64,8,4,idle,threads", "64,8,4,idle,processes"]
WARM_UP = 3
"""Rollouts that do not count: graphs are recorded, first games end."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--game", default="Alien")
    parser.add_argument("--divisions", nargs="+", default=DIVISIONS)
    parser.add_argument("--decide", choices=["policy", "nothing"], default="policy")
    parser.add_argument("--seconds", type=float, default=5.0, help="time per division, at least 4 rollouts")
    parser.add_argument("--rest", type=float, default=0.05, help="seconds between two rollouts")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--out", type=Path, help="a file to append the rows to")
    args = parser.parse_args()
    if args.decide == "nothing":
        decide_nothing()
    times = watch_parts()
    for division in args.divisions:
        games, lanes, threads, priority, workers = division.split(",")
        kwargs = {"lanes": int(lanes), "threads": int(threads), "priority": priority, "workers": workers}
        row = {"game": args.game, "decide": args.decide, "games": int(games), **kwargs}
        row |= measure(args.game, int(games), kwargs, args.device, args.seconds, args.rest, times)
        print(json.dumps(row), flush=True)
        if args.out:
            with args.out.open("a") as file:
                file.write(json.dumps(row) + "\n")


def decide_nothing() -> None:
    """From here on every decision is a random one, made at once."""
    random = np.random.default_rng(0)

    def ask(decider: Decider, games: Any, rows: Any) -> None:
        decider.count = len(games)

    Decider.ask = ask  # type: ignore[method-assign]
    Decider.is_done = lambda decider: True  # type: ignore[method-assign]
    Decider.answer = lambda decider: random.integers(0, 2, decider.count)  # type: ignore[method-assign]


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
    game: str,
    games: int,
    division: dict[str, Any],
    device: str,
    seconds: float,
    rest: float,
    times: dict[str, list[float]],
) -> dict[str, float]:
    """Rollouts of `atari/fast-ppo` (`atari/ppo` up to 16 games), one after the other without an update between."""
    config = get_preset("atari/fast-ppo" if games > 16 else "atari/ppo")(game=game)
    env = replace(config.env, num_envs=games, kwargs={**config.env.kwargs, **division})
    config = replace(config, device=device, tensorboard=False, env=env)
    elapsed = used = 0.0
    with tempfile.TemporaryDirectory() as folder, RunDir.create(Path(folder) / "run", config) as run:
        trainer = Trainer(config, run)
        collector, rollouts = trainer.collector, -WARM_UP
        assert isinstance(collector, LaneCollector)
        while rollouts < 4 or elapsed < seconds:
            if rollouts == 0:
                times.clear()
            before, begin = busy(), time.perf_counter()
            collector.collect()
            rollouts += 1
            if rollouts > 0:
                elapsed, used = elapsed + time.perf_counter() - begin, used + busy() - before
            collector.begin()
            time.sleep(rest)
        trainer.close()
    steps = rollouts * games * collector.num_steps
    return {
        "steps_per_second": steps / elapsed,
        "cores": used / elapsed,
        "decisions": len(times["ask"]) / rollouts,
        "games_a_decision": steps / len(times["ask"]),
        **{f"{name}_us": 1e6 * statistics.fmean(times[name]) for name in PARTS},
    }


def busy() -> float:
    """Seconds that all cores have worked, whoever for: the workers are no part of this process."""
    with Path("/proc/stat").open() as file:
        user, nice, system, *_ = map(float, file.readline().split()[1:])
    return (user + nice + system) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
