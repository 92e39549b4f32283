"""How often a method sees the goal, and how often it keeps it: conversion = P(solved | goal seen).

    python benchmarks/conversion.py --task deepsea --methods ppo opr opr-paper --seeds 32 --out results/deepsea

A method is a preset's name behind the task (`ppo`, `opr`, `opr-paper`, `a2c`, …), optionally with OPR fields changed:
`opr:bc_coef=1.0,bc_weights=uniform`. Raw data goes to runs.jsonl, one line a run; runs that stand there are not run
again.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

from resumable import Runs
from variants import changed

from optimist.report.proportions import fisher_lower, wilson_interval


def parse_arguments(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--task", choices=["deepsea", "keydoor"], default="deepsea")
    parser.add_argument("--size", type=int, default=12, help="DeepSea's N")
    parser.add_argument("--methods", nargs="+", default=["ppo", "opr", "opr-paper"])
    parser.add_argument("--seeds", type=int, default=32)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--total-steps", type=int, default=200_000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, required=True)
    return parser.parse_args(argv)


def main() -> None:
    args = parse_arguments()
    seeds = range(args.first_seed, args.first_seed + args.seeds)
    runs = Runs(args.out / "runs.jsonl", ("method", "seed"))
    todo = runs.missing((method, seed) for seed in seeds for method in args.methods)
    started = time.perf_counter()
    runs.add(partial(run_one, args.task, args.size, args.total_steps), todo, args.jobs)
    order = {method: place for place, method in enumerate(args.methods)}
    rows = runs.sort(lambda row: (order.get(row["method"], 99), row["seed"]))
    table = render(rows, args)
    (args.out / "table.md").write_text(table)
    print(table)
    print(f"{len(todo)} runs in {time.perf_counter() - started:.0f} s; raw data: {runs.file}")


def run_one(task: str, size: int, total_steps: int, method: str, seed: int) -> dict[str, Any]:
    """One training run, in a process of its own."""
    from optimist.presets import get_preset
    from optimist.training.loop import train

    name, _, changes = method.partition(":")
    parameters = {"size": size} if task == "deepsea" else {}
    config = get_preset(f"{task}/{name}")(**parameters)
    config = dataclasses.replace(config, seed=seed, total_steps=total_steps, tensorboard=False, checkpoint_every=10**9)
    config = changed(config, changes)
    with tempfile.TemporaryDirectory() as folder:
        summary = train(config, Path(folder) / "run", progress=False)
    keep = ("seed", "steps", "episodes", "goal_seen", "first_goal_step", "goal_rate", "solved", "last_100_return")
    return {"method": method, "task": task, "size": size} | {key: summary[key] for key in keep}


def render(rows: list[dict[str, Any]], args: argparse.Namespace) -> str:
    """The table, with Wilson intervals and the one-sided test of seeing the goal less often than PPO."""
    seeds = len({row["seed"] for row in rows})
    lines = [
        f"Command: `python {' '.join(sys.argv)}`",
        "",
        f"{rows[0]['task']}, {rows[0]['steps']:,} steps, {seeds} seeds; intervals: Wilson, 95 %. `goal seen`: some "
        "training episode reached the goal; `solved`: at least 90 % of the last 100 training episodes did; "
        "p: one-sided Fisher test that the goal is seen less often than by PPO.",
        "",
        "| method | goal seen | solved | conversion P(solved given seen) | 95 % interval | p (seen < PPO's) |",
        "|---|---|---|---|---|---|",
    ]
    plain = [row for row in rows if row["method"] == "ppo"]
    for method in dict.fromkeys(row["method"] for row in rows):
        own = [row for row in rows if row["method"] == method]
        seen, solved = sum(row["goal_seen"] for row in own), sum(row["solved"] for row in own)
        low, high = wilson_interval(solved, seen)
        conversion = f"{solved / seen:.2f}" if seen else "–"
        p = fisher_lower(seen, len(own), sum(row["goal_seen"] for row in plain), len(plain)) if plain else float("nan")
        lines.append(
            f"| {method} | {seen}/{len(own)} | {solved}/{len(own)} | {conversion} | {low:.2f} – {high:.2f} | {p:.2f} |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
