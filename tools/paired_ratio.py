"""Scores relative to a baseline's run of the same seed, over all tasks: `python tools/paired_ratio.py RUNS BASELINE`.

The geometric mean of the ratios over every task of the file, with the 95 % interval of the bootstrap that resamples
pairs within each task. No task is chosen by its outcome; a method that lacks a pair is left out.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from optimist.errors import OptimistError
from optimist.stats.aggregate import paired_ratio


def main(runs: str, baseline: str) -> None:
    """Print one line for each method that has all pairs."""
    scores: dict[str, dict[tuple[str, int], float]] = {}
    budgets = {}
    for row in map(json.loads, Path(runs).read_text("utf-8").splitlines()):
        scores.setdefault(row["method"], {})[row["env"], row["seed"]] = row["value"]
        budgets[row["method"]] = row["budget"]
    if baseline not in scores:
        raise SystemExit(f"no method {baseline} in {runs}; it has {', '.join(scores)}")
    base = scores.pop(baseline)
    tasks = sorted({task for task, _ in base})
    for method, own in scores.items():
        seeds = sorted({seed for _, seed in own})
        pairs = [[(task, seed) for task in tasks] for seed in seeds]
        if budgets[method] != budgets[baseline] or not all(
            pair in own and pair in base for row in pairs for pair in row
        ):
            continue
        first, second = ([[side[pair] for pair in row] for row in pairs] for side in (own, base))
        ratio = paired_ratio(first, second)
        print(f"{method}: {ratio.value:.2f} ({ratio.low:.2f} to {ratio.high:.2f}), {len(seeds) * len(tasks)} pairs")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:3])
    except (OptimistError, OSError) as error:
        raise SystemExit(str(error)) from error
