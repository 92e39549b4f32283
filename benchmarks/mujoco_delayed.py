"""MuJoCo with delayed rewards: PPO, PPO+OPR and PPO+SIL, mean return of the last 100 training episodes.

    python benchmarks/mujoco_delayed.py --delay 20 --seeds 5 --jobs 2 --out results/mujoco

Raw data goes to runs.jsonl, one line a run, its curve included; runs that stand there with the same delay and steps are
not run again.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import multiprocessing
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from classic import half_width

METHODS = ["ppo", "ppo-opr", "ppo-sil"]
CURVE_POINTS = 100


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--envs", nargs="+", default=["Hopper-v5", "HalfCheetah-v5"])
    parser.add_argument("--presets", nargs="+", default=METHODS, help="names behind mujoco/")
    parser.add_argument("--delay", type=int, default=20)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--total-steps", type=int, default=1_000_000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    raw = args.out / "runs.jsonl"
    rows = [json.loads(line) for line in raw.read_text().splitlines()] if raw.exists() else []
    done = {(row["env"], row["method"], row["delay"], row["seed"], row["budget"]) for row in rows}
    seeds = range(args.first_seed, args.first_seed + args.seeds)
    jobs = [
        (env, method, args.delay, seed, args.total_steps)
        for seed in seeds
        for env in args.envs
        for method in args.presets
    ]
    todo = [job for job in jobs if job not in done]
    with ProcessPoolExecutor(args.jobs, multiprocessing.get_context("spawn")) as pool, raw.open("a") as file:
        futures = [pool.submit(run_one, *job) for job in todo]
        for number, future in enumerate(as_completed(futures), 1):
            rows.append(future.result())
            file.write(json.dumps(rows[-1], sort_keys=True) + "\n")
            file.flush()
            shown = {name: value for name, value in rows[-1].items() if name != "curve"}
            print(f"{number}/{len(todo)}", json.dumps(shown), file=sys.stderr)
    rows.sort(key=lambda row: (row["env"], row["delay"], row["budget"], row["method"], row["seed"]))
    raw.write_text("".join(json.dumps(row, sort_keys=True) + "\n" for row in rows))
    table = render(rows)
    (args.out / "table.md").write_text(f"Command: `python {' '.join(sys.argv)}`\n\n{table}")
    print(table)


def run_one(env: str, method: str, delay: int, seed: int, total_steps: int) -> dict[str, Any]:
    """One training run, in a process of its own."""
    from optimist.presets import get_preset
    from optimist.tracking.metrics_log import read_metrics
    from optimist.training.loop import train

    config = get_preset(f"mujoco/{method}")(env=env, delay=delay)
    config = dataclasses.replace(config, seed=seed, total_steps=total_steps, tensorboard=False)
    with tempfile.TemporaryDirectory() as folder:
        summary = train(config, Path(folder) / "run", progress=False)
        lines = read_metrics(Path(folder) / "run" / "metrics.jsonl")
    curve = [[line["step"], line["rollout/raw_return"]] for line in lines if line.get("rollout/raw_return") is not None]
    return {
        "env": env,
        "method": method,
        "delay": delay,
        "seed": seed,
        "budget": total_steps,
        "steps": summary["steps"],
        "episodes": summary["episodes"],
        "last_100_return": summary["last_100_return"],
        "seconds": round(summary["time/seconds"], 1),
        "steps_per_second": round(summary["time/steps_per_second"]),
        "curve": curve[:: max(1, len(curve) // CURVE_POINTS)],
    }


def render(rows: list[dict[str, Any]]) -> str:
    """Mean over seeds with a 95 % interval (Student's t)."""
    lines = [
        "Mean raw return of the last 100 training episodes (sampled actions; fewer where fewer ended, nan where none "
        "did), mean over seeds with a 95 % t-interval.",
        "",
        "| environment | delay | steps | method | seeds | return | 95 % interval | steps/s |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for key in dict.fromkeys((row["env"], row["delay"], row["budget"], row["method"]) for row in rows):
        runs = [row for row in rows if (row["env"], row["delay"], row["budget"], row["method"]) == key]
        returns = [row["last_100_return"] for row in runs if row["last_100_return"] is not None]
        mean, half = sum(returns) / len(returns) if returns else float("nan"), half_width(returns)
        speed = sum(row["steps_per_second"] for row in runs) / len(runs)
        env, delay, budget, method = key
        lines.append(
            f"| {env} | {delay} | {budget:,} | {method} | {len(runs)} | {mean:.0f} "
            f"| {mean - half:.0f} – {mean + half:.0f} | {speed:,.0f} |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
