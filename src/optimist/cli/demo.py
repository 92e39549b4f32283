"""`optimist demo`: PPO and PPO+OPR side by side on DeepSea-12; who keeps the treasure once it was seen?"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table

from optimist.cli.arguments import Parser, print_result
from optimist.presets import get_preset
from optimist.report.proportions import wilson_interval

if TYPE_CHECKING:
    from optimist.training.parallel import Job

METHODS = {"PPO": "deepsea/ppo", "PPO+OPR": "deepsea/opr"}


def main(argv: Sequence[str]) -> int:
    """Trains all seeds of both methods, shows the conversion table and says where everything is."""
    options = _parser().parse_all(list(argv))
    from optimist.training.parallel import Job, run_all

    out = options.out or Path("demo") / f"{datetime.now():%Y%m%d-%H%M%S}"
    jobs = []
    for seed in range(options.seeds):
        for label, preset in METHODS.items():
            config = replace(get_preset(preset)(), seed=seed, total_steps=options.total_steps, tensorboard=False)
            jobs.append(Job(label, config, out / f"{preset.replace('/', '-')}-{seed}"))
    console = Console(stderr=True)
    console.print(
        f"DeepSea-12, {options.total_steps:,} steps, {options.seeds} seeds of {' and '.join(METHODS)}, "
        f"{options.jobs} runs at a time. The treasure lies at the end of one of 4,096 paths."
    )
    if console.is_terminal:
        with Live(console=console, refresh_per_second=4) as live:
            summaries = run_all(jobs, options.jobs, lambda: live.update(_progress(jobs)))
    else:
        summaries = run_all(jobs, options.jobs, _Lines(jobs, console), every=5.0)
    rows = [
        conversion(label, [s for j, s in zip(jobs, summaries, strict=True) if j.label == label]) for label in METHODS
    ]
    table = _table(rows, options)
    (out / "table.md").write_text(_markdown(rows), encoding="utf-8")
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
    return {
        "method": label,
        "runs": len(summaries),
        "seen": seen,
        "solved": solved,
        "conversion": share,
        "low": low,
        "high": high,
    }


def _parser() -> Parser:
    parser = Parser(prog="optimist demo", description=__doc__)
    parser.add_argument("--seeds", type=int, default=16, help="seeds of each method (default: 16)")
    parser.add_argument("--total-steps", type=int, default=100_000, help="steps of each run (default: 100,000)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="runs at a time (default: one a core)")
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder for the runs (default: demo/<time>)")
    parser.add_argument("--json", action="store_true", help="one JSON object on the last line")
    return parser


def _progress(jobs: Sequence[Job]) -> Group:
    """A bar per method, over all its runs."""
    table = Table("method", "progress", "runs done", "saw the goal", "have it now", box=None)
    for label in METHODS:
        own = [(job, job.latest()) for job in jobs if job.label == label]
        steps = sum(latest["step"] for _, latest in own if latest)
        budget = sum(job.config.total_updates * job.config.batch_size for job, _ in own)
        rates = [latest.get("rollout/goal_rate", 0.0) for _, latest in own if latest]
        seen = sum(bool(latest and latest.get("rollout/goal_seen")) for _, latest in own)
        done = sum((job.out / "summary.json").exists() for job, _ in own)
        kept = sum(rate >= 0.9 for rate in rates)
        table.add_row(label, ProgressBar(budget, steps, width=40), f"{done}/{len(own)}", str(seen), str(kept))
    return Group(table)


class _Lines:
    """Plain lines where there is no terminal."""

    def __init__(self, jobs: Sequence[Job], console: Console) -> None:
        self.jobs, self.console, self.last = jobs, console, -1

    def __call__(self) -> None:
        done = sum((job.out / "summary.json").exists() for job in self.jobs)
        if done != self.last:
            self.last = done
            self.console.print(f"{done}/{len(self.jobs)} runs done")
            sys.stderr.flush()


def _table(rows: list[dict[str, Any]], options: Any) -> Table:
    title = f"DeepSea-12, {options.total_steps:,} steps: conversion = P(solved | goal seen)"
    table = Table("method", "goal seen", "solved in the end", "conversion", "95 % interval", title=title)
    for row in rows:
        share = "–" if row["conversion"] is None else f"{row['conversion']:.2f}"
        interval = f"{row['low']:.2f} – {row['high']:.2f}"
        table.add_row(row["method"], f"{row['seen']}/{row['runs']}", f"{row['solved']}/{row['runs']}", share, interval)
    return table


def _markdown(rows: list[dict[str, Any]]) -> str:
    lines = ["| method | runs | goal seen | solved | conversion | 95 % interval |", "|---|---|---|---|---|---|"]
    for row in rows:
        share = "–" if row["conversion"] is None else f"{row['conversion']:.2f}"
        lines.append(
            f"| {row['method']} | {row['runs']} | {row['seen']} | {row['solved']} | {share} "
            f"| {row['low']:.2f} – {row['high']:.2f} |"
        )
    return "\n".join(lines) + "\n"
