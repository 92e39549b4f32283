"""Scores relative to a baseline's run of the same seed, over all tasks: `python tools/paired_ratio.py BASELINE RUNS…`.

The geometric mean of the ratios over every task of the file, with the 95 % interval of the bootstrap that resamples
pairs within each task. No task is chosen by its outcome; a method that lacks a pair is left out.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from optimist.errors import OptimistError
from optimist.stats.aggregate import paired_ratio


def main(baseline: str, *files: str) -> None:
    """Print one line for each method that has all pairs."""
    scores: dict[str, dict[tuple[str, int], float]] = {}
    budgets = {}
    lines = [line for file in files for line in Path(file).read_text("utf-8").splitlines()]
    for row in map(json.loads, lines):
        scores.setdefault(row["method"], {})[row["env"], row["seed"]] = row["value"]
        budgets[row["method"]] = row["budget"]
    if baseline not in scores:
        raise SystemExit(f"no method {baseline} in {', '.join(files)}; expected one of {', '.join(scores)}")
    base = scores.pop(baseline)
    tasks = sorted({task for task, _ in base})
    for method, own in scores.items():
        seeds = sorted({seed for task, seed in own if task in tasks})
        pairs = [[(task, seed) for task in tasks] for seed in seeds]
        missing = not seeds or any(pair not in own or pair not in base for row in pairs for pair in row)
        if missing or budgets[method] != budgets[baseline]:
            continue
        first, second = ([[side[pair] for pair in row] for row in pairs] for side in (own, base))
        ratio = paired_ratio(first, second)
        print(f"{method}: {ratio.value:.2f} ({ratio.low:.2f} to {ratio.high:.2f}), {len(seeds) * len(tasks)} pairs")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except (OptimistError, OSError) as error:
        raise SystemExit(str(error)) from error
