"""MuJoCo with delayed rewards: PPO, PPO+OPR and PPO+SIL, mean return of the last 100 training episodes.

    python benchmarks/mujoco_delayed.py --delay 20 --seeds 5 --jobs 2 --out results/mujoco

Raw data goes to runs.jsonl, one line a run, its curve included; runs that stand there with the same delay and steps are
not run again.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from pathlib import Path
from typing import Any

from classic import half_width
from resumable import Runs
from trained import thinned, train_away
from variants import changed

METHODS = ["ppo", "ppo-opr", "ppo-sil"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--envs", nargs="+", default=["Hopper-v5", "HalfCheetah-v5"])
    parser.add_argument(
        "--presets",
        nargs="+",
        default=METHODS,
        help="names behind mujoco/, with settings changed if wanted: ppo-opr:bc_coef=0.01",
    )
    parser.add_argument("--delay", type=int, default=20)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--total-steps", type=int, default=1_000_000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    jobs = [
        (env, method, args.delay, seed, args.total_steps)
        for seed in range(args.first_seed, args.first_seed + args.seeds)
        for env in args.envs
        for method in args.presets
    ]
    runs = Runs(args.out / "runs.jsonl", ("env", "method", "delay", "seed", "budget"))
    runs.add(run_one, runs.missing(jobs), args.jobs)
    rows = runs.sort(lambda row: (row["env"], row["delay"], row["budget"], row["method"], row["seed"]))
    table = render(rows)
    (args.out / "table.md").write_text(f"Command: `python {' '.join(sys.argv)}`\n\n{table}")
    print(table)


def run_one(env: str, method: str, delay: int, seed: int, total_steps: int) -> dict[str, Any]:
    """One training run, in a process of its own."""
    from optimist.presets import get_preset

    name, _, changes = method.partition(":")
    config = changed(get_preset(f"mujoco/{name}")(env=env, delay=delay), changes)
    config = dataclasses.replace(config, seed=seed, total_steps=total_steps, tensorboard=False)
    summary, curve = train_away(config)
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
        "curve": thinned(curve),
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
