"""The same sweep on this machine and on a Ray cluster of two nodes, one of which is killed: the tables are equal.

    python benchmarks/sweep_on_ray.py experiments/ray.toml --out DIR

runs the sweep into OUT/local and OUT/cluster, kills the second node once a quarter of the cluster's runs are finished
and two active ones have checkpoints, and compares table.md and runs.jsonl byte for byte. Finished runs are left alone.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from ray.cluster_utils import Cluster

RESULTS = ("table.md", "runs.jsonl")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--cpus", type=int, default=1, help="cores of each node (default: 1)")
    options = parser.parse_args()
    seconds = {"local": timed(sweep(options.file, options.out / "local"))}
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": options.cpus, "include_dashboard": False})
    lost_node = cluster.add_node(num_cpus=options.cpus)
    killed: dict[str, Any] = {}
    watcher = threading.Thread(
        target=kill_later, args=(cluster, lost_node, options.out / "cluster", killed), daemon=True
    )
    watcher.start()
    try:
        seconds["cluster"] = timed([*sweep(options.file, options.out / "cluster"), "--ray", cluster.address])
    finally:
        cluster.shutdown()
    same = all(read(options.out / "local", name) == read(options.out / "cluster", name) for name in RESULTS)
    report = {"seconds": seconds, "killed": killed, "resumed": retries(options.out / "cluster"), "same_tables": same}
    (options.out / "comparison.json").write_text(json.dumps(report, indent=2) + "\n")
    print(json.dumps(report, indent=2))
    return 0 if same else 1


def sweep(file: Path, out: Path) -> list[str]:
    return [sys.executable, "-m", "optimist", "sweep", str(file), "-o", str(out)]


def timed(command: list[str]) -> float:
    begin = time.perf_counter()
    subprocess.run(command, check=True)
    return round(time.perf_counter() - begin, 1)


def read(folder: Path, name: str) -> bytes:
    return (folder / name).read_bytes()


def kill_later(cluster: Cluster, node: Any, folder: Path, killed: dict[str, Any]) -> None:
    """Kill the node once every core of the cluster has a run with a checkpoint, so that some work is lost."""
    while True:
        time.sleep(0.2)
        finished = list(folder.glob("runs/*/*/summary.json"))
        total = len(json.loads(read(folder, "plan.json"))["runs"]) if (folder / "plan.json").exists() else 0
        saved = {path.parents[1] for path in folder.glob("runs/*/*/checkpoints/step-*")}
        active = [run for run in saved if not (run / "summary.json").exists()]
        if total and 4 * len(finished) >= total and len(active) >= 2:
            cluster.remove_node(node, allow_graceful=False)
            killed |= {"after_finished": len(finished), "of": total}
            print(f"killed one of two nodes after {len(finished)} of {total} runs", flush=True)
            return


def retries(folder: Path) -> list[dict[str, Any]]:
    """Runs that were lost with the node, and the step from which they resumed."""
    events = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    return [{"run": event["run"], "from_step": event["step"]} for event in events if event["event"] == "retry"]


if __name__ == "__main__":
    sys.exit(main())
