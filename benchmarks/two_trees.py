"""Training speed of two work trees of this repository, alternated in one run.

    python benchmarks/two_trees.py OLD NEW --runs deepsea/opr:size=12 gym/ppo --steps 200000 --pairs 7 --out rows.jsonl

A run is a preset, and after a colon its flags. Each pair trains the run once in either tree, in turn first and second,
and adds one line to `--out`: environment steps per second of both, without start-up, and the processor seconds of both
processes, start-up included. The table shows median ratios, above 1 where NEW is faster. The exit code is 1 if a median
ratio of steps per second is below `--least`.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trees", nargs=2, type=Path, metavar="TREE", help="work trees: the old one, then the new one")
    parser.add_argument("--runs", nargs="+", required=True, help="PRESET or PRESET:FLAG=VALUE,…")
    parser.add_argument("--steps", type=int, nargs="+", default=[100_000], help="of each run; the last serves the rest")
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--least", type=float, default=0.97, help="the lowest median ratio that passes")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    args.out.parent.mkdir(parents=True, exist_ok=True)
    lowest = float("inf")
    for position, run in enumerate(args.runs):
        steps = args.steps[min(position, len(args.steps) - 1)]
        ratios, processor = [], []
        for pair in range(args.pairs):
            order = args.trees if pair % 2 == 0 else args.trees[::-1]
            measured = {tree: measure(tree, run, steps) for tree in order}
            old, new = (measured[tree] for tree in args.trees)
            ratios.append(new["steps_per_second"] / old["steps_per_second"])
            processor.append(old["processor_seconds"] / new["processor_seconds"])
            row = {"run": run, "steps": steps, "pair": pair, "old": old, "new": new}
            with args.out.open("a") as file:
                file.write(json.dumps(row) + "\n")
        middle = statistics.median(ratios)
        lowest = min(lowest, middle)
        spread = f"from {min(ratios):.3f} to {max(ratios):.3f}"
        print(f"{run:28} steps/s {middle:.3f}, {spread}; processor {statistics.median(processor):.3f}", flush=True)
    return int(lowest < args.least)


def measure(tree: Path, run: str, steps: int) -> dict[str, float]:
    """Speed of one training with the code of a work tree."""
    preset, _, settings = run.partition(":")
    flags = [part for setting in settings.split(",") if setting for part in f"--{setting}".split("=")]
    environment = os.environ | {"PYTHONPATH": str(tree.resolve() / "src"), "OMP_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        command = [sys.executable, "-m", "optimist", "train", preset, *flags, "--total-steps", str(steps)]
        command += ["--final-episodes", "0", "--checkpoint-every", str(10**9), "--out", str(out)]
        before = processor_seconds()
        subprocess.run(command, check=True, env=environment, cwd=folder, capture_output=True)
        seconds = processor_seconds() - before
        speed = json.loads((out / "summary.json").read_text())["time/steps_per_second"]
    return {"steps_per_second": round(speed, 1), "processor_seconds": round(seconds, 2)}


def processor_seconds() -> float:
    """Processor time of all finished child processes."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    sys.exit(main())
