"""PPO and PPO+OPR side by side on DeepSea-12: who keeps the treasure once it was seen?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from rich.console import Console
from rich.table import Table

from optimist.cli.arguments import print_result
from optimist.cli.demo.live import check_demo, demo_folder, demo_parser, expected_time, run_live
from optimist.presets import get_preset
from optimist.report.proportions import wilson_interval
from optimist.report.scores import counted
from optimist.training.parallel import Job

METHODS = {"PPO": "deepsea/ppo", "PPO+OPR": "deepsea/opr"}
CORE_SECONDS = 60.0
"""Of one core for a million steps, measured on two."""
COLUMNS = {
    "saw the goal": lambda newest: str(sum(bool(line.get("rollout/goal_seen")) for line in newest)),
    "have it now": lambda newest: str(sum(line.get("rollout/goal_rate", 0.0) >= 0.9 for line in newest)),
}
HEADER = ("method", "runs", "goal seen", "solved in the end", "conversion", "95 % interval")


def main(argv: Sequence[str]) -> int:
    """Trains all seeds of both methods, shows the conversion table and says where everything is."""
    options = demo_parser("deepsea", __doc__ or "", seeds=16, total_steps=100_000).parse_all(list(argv))
    check_demo(options)
    out, jobs = demo_folder(options.out), list[Job]()
    for seed in range(options.seeds):
        for label, preset in METHODS.items():
            config = replace(get_preset(preset)(), seed=seed, total_steps=options.total_steps, tensorboard=False)
            jobs.append(Job(label, config, out / f"{preset.replace('/', '-')}-{seed}"))
    Console(stderr=True).print(
        f"DeepSea-12, {options.total_steps:,} steps, {counted(options.seeds, 'seed')} of {' and '.join(METHODS)}, "
        f"{options.jobs} runs at a time, {expected_time(jobs, options.jobs, CORE_SECONDS)}. "
        "The treasure lies at the end of one of 4,096 paths.",
        highlight=False,
    )
    summaries = run_live(jobs, options.jobs, COLUMNS)
    rows = [
        conversion(label, [summary for job, summary in zip(jobs, summaries, strict=True) if job.label == label])
        for label in METHODS
    ]
    (out / "table.md").write_text(_markdown(rows), encoding="utf-8")
    table = Table(*HEADER, title=f"DeepSea-12, {options.total_steps:,} steps: conversion = P(solved | goal seen)")
    for row in rows:
        table.add_row(*_words(row))
    Console().print(table)
    print(f"Runs, metrics and the table are in {out}; try: optimist evaluate {jobs[1].out}")
    if options.json:
        print_result({"out": str(out), "rows": rows}, as_json=True)
    return 0


def conversion(label: str, summaries: list[dict[str, Any]]) -> dict[str, Any]:
    """How many runs saw the goal, how many of these had it in the end, and the 95 % interval of that share."""
    seen, solved = sum(s["goal_seen"] for s in summaries), sum(s["solved"] for s in summaries)
    low, high = wilson_interval(solved, seen)
    share = solved / seen if seen else None
    counts = {"method": label, "runs": len(summaries), "seen": seen, "solved": solved}
    return counts | {"conversion": share, "low": low, "high": high}


def _words(row: dict[str, Any]) -> list[str]:
    share = "–" if row["conversion"] is None else f"{row['conversion']:.2f}"
    counts = [str(row[name]) for name in ("runs", "seen", "solved")]
    return [row["method"], *counts, share, f"{row['low']:.2f} – {row['high']:.2f}"]


def _markdown(rows: list[dict[str, Any]]) -> str:
    lines = [HEADER, ["---"] * len(HEADER), *map(_words, rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
