"""All methods side by side on DeepSea-12 and Key-Door-Treasure: goal seen, solved, conversion.

    python benchmarks/methods.py --seeds 8 --jobs 2 --out results/methods

`--presets` takes names behind the task (`ppo`, `a2c-sil`, `acper-opr`, …), optionally with OPR fields changed, as in
conversion.py; without it, every preset that both tasks have. Raw data goes to runs.jsonl, one line a run; runs that
stand there with the same number of steps are not run again, so an interrupted benchmark goes on where it was.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

from conversion import run_one
from resumable import Runs

from optimist.presets import all_presets
from optimist.report.proportions import wilson_interval

TASKS = {"deepsea": "DeepSea-12", "keydoor": "Key-Door-Treasure 6 × 9"}
SIZE = 12


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", choices=list(TASKS), default=list(TASKS))
    parser.add_argument("--presets", nargs="+", default=shared_presets())
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--total-steps", type=int, default=200_000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    seeds = range(args.first_seed, args.first_seed + args.seeds)
    jobs = [(task, method, seed, args.total_steps) for seed in seeds for task in args.tasks for method in args.presets]
    runs = Runs(args.out / "runs.jsonl", ("task", "method", "seed", "budget"))
    runs.add(timed_run, runs.missing(jobs), args.jobs)
    order = {method: place for place, method in enumerate(args.presets)}
    rows = runs.sort(lambda row: (row["task"], row["budget"], order.get(row["method"], 99), row["method"], row["seed"]))
    table = render(rows)
    (args.out / "table.md").write_text(f"Command: `python {' '.join(sys.argv)}`\n\n{table}")
    print(table)


def shared_presets() -> list[str]:
    """The methods that all tasks have presets for, in the order of registration."""
    names = [known.name.split("/") for known in all_presets()]
    methods = {task: [method for family, method in names if family == task] for task in TASKS}
    return [method for method in methods["deepsea"] if method in methods["keydoor"]]


def timed_run(task: str, method: str, seed: int, total_steps: int) -> dict[str, Any]:
    """One training run, in a process of its own."""
    begin = time.perf_counter()
    row = run_one(task, SIZE, total_steps, method, seed)
    return row | {"budget": total_steps, "seconds": round(time.perf_counter() - begin, 1)}


def render(rows: list[dict[str, Any]]) -> str:
    """A table for each task and budget."""
    lines = [
        "`goal seen`: some training episode reached the goal; `solved`: at least 90 % of the last 100 training "
        "episodes did (sampled actions); conversion: P(solved | goal seen); intervals: Wilson, 95 %.",
    ]
    for task, budget in dict.fromkeys((row["task"], row["budget"]) for row in rows):
        here = [row for row in rows if (row["task"], row["budget"]) == (task, budget)]
        seeds = len({row["seed"] for row in here})
        lines += [
            "",
            f"**{TASKS[task]}**, {budget:,} steps, up to {seeds} seeds",
            "",
            "| method | goal seen | 95 % | solved | 95 % | conversion | 95 % | s a run |",
            "|---|---|---|---|---|---|---|---|",
        ]
        for method in dict.fromkeys(row["method"] for row in here):
            lines.append(_line(method, [row for row in here if row["method"] == method]))
    return "\n".join(lines) + "\n"


def _line(method: str, runs: list[dict[str, Any]]) -> str:
    seen, solved = sum(row["goal_seen"] for row in runs), sum(row["solved"] for row in runs)
    shares = [f"{seen}/{len(runs)}", f"{solved}/{len(runs)}", f"{solved / seen:.2f}" if seen else "–"]
    bounds = [wilson_interval(seen, len(runs)), wilson_interval(solved, len(runs)), wilson_interval(solved, seen)]
    cells = [f"{share} | {low:.2f} – {high:.2f}" for share, (low, high) in zip(shares, bounds, strict=True)]
    seconds = sum(row["seconds"] for row in runs) / len(runs)
    return f"| {method} | {' | '.join(cells)} | {seconds:.0f} |"


if __name__ == "__main__":
    main()
