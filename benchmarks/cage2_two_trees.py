"""Speed of the CAGE 2 environments in two work trees of this repository, alternated in one run.

    python benchmarks/cage2_two_trees.py OLD NEW --pairs 9 --out rows.jsonl

Each tree has one process, which steps the environment of a pair for `--seconds` of processor time on one thread, with
random actions: whole episodes of 100 steps. A pair measures both trees, in turn first and second, and adds one line to
`--out`. `plain`, `cardiff` and `expert` are vector environments with `--games` games; `one` is a single game through
`gymnasium.make`. The table shows median ratios, above 1 where NEW is faster. The exit code is 1 if one is below
`--least`.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

IDS = {"plain": "CAGE2", "cardiff": "CAGE2Cardiff", "expert": "CAGE2Expert", "one": "CAGE2"}
REDS = ("B_line", "Meander", "Sleep")
WORKER = """
import json, sys, time, warnings
warnings.simplefilter("ignore")
import gymnasium, numpy as np
import optimist.envs
HORIZON, ONE_GAME = 100, 20
environments = {}

def measure(env_id, red, games, seconds):
    key = env_id, red, games
    if key not in environments:
        keywords = {"num_envs": games, "threads": 1} if games else {}
        make = gymnasium.make_vec if games else gymnasium.make
        env = make(f"optimist/{env_id}-v0", red=red, horizon=HORIZON, **keywords)
        space = env.single_action_space if games else env.action_space
        actions = np.random.default_rng(0).integers(0, space.n, (HORIZON, games) if games else HORIZON)
        environments[key] = env, actions if games else actions.tolist()
        episodes(*environments[key], games, 2)
    rounds = 1 if games else ONE_GAME
    steps, start = 0, time.process_time()
    while time.process_time() - start < seconds:
        episodes(*environments[key], games, rounds)
        steps += rounds * HORIZON * max(1, games)
    return steps / (time.process_time() - start)

def episodes(env, actions, games, rounds):
    for number in range(rounds):
        if not games or number == 0:
            env.reset(seed=number)
        for row in actions:
            env.step(row)

for line in sys.stdin:
    print(json.dumps(measure(*json.loads(line))), flush=True)
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trees", nargs=2, type=Path, metavar="TREE", help="work trees: the old one, then the new one")
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=0.4, help="processor time of each measurement (default 0.4)")
    parser.add_argument("--games", type=int, default=4096)
    parser.add_argument("--least", type=float, default=0.97, help="the lowest median ratio that passes")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    workers = [start(tree) for tree in args.trees]
    lowest = float("inf")
    for interface, env_id in IDS.items():
        games = 0 if interface == "one" else args.games
        for red in REDS:
            pairs = []
            for number in range(args.pairs):
                order = workers if number % 2 == 0 else workers[::-1]
                found = {id(worker): measure(worker, [env_id, red, games, args.seconds]) for worker in order}
                old, new = (found[id(worker)] for worker in workers)
                pairs.append(new / old)
                row = {"interface": interface, "red": red, "pair": number, "old": round(old), "new": round(new)}
                with args.out.open("a") as file:
                    file.write(json.dumps(row) + "\n")
            middle = statistics.median(pairs)
            lowest = min(lowest, middle)
            spread = f"from {min(pairs):.3f} to {max(pairs):.3f}"
            print(
                f"{interface:8} {red:8} {middle:.3f}, {spread}; last pair {old:,.0f} and {new:,.0f} steps/s", flush=True
            )
    for worker in workers:
        worker.communicate()
    return int(lowest < args.least)


def start(tree: Path) -> subprocess.Popen[str]:
    """A process with the code of a work tree."""
    paths = [tree.resolve() / "src", tree.resolve() / "packages" / "cage2" / "src"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, paths)), "OMP_NUM_THREADS": "1"}
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    return subprocess.Popen([sys.executable, "-c", WORKER], env=environment, **pipes)


def measure(worker: subprocess.Popen[str], what: list[Any]) -> float:
    """Steps per second of processor time."""
    assert worker.stdin is not None
    assert worker.stdout is not None
    worker.stdin.write(json.dumps(what) + "\n")
    worker.stdin.flush()
    return float(worker.stdout.readline())


if __name__ == "__main__":
    sys.exit(main())
