"""Shared by the demos: their flags, their runs as a sweep, and its table."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from rich.console import Console

from optimist.cli.arguments import Parser, show_table
from optimist.cores import available_cores
from optimist.errors import ConfigError, OptimistError, RunFolderError
from optimist.sweep.driver import run_sweep
from optimist.sweep.plan import Plan, make_plan
from optimist.sweep.results import table_cells
from optimist.tracking.files import disk_errors


def parse_demo(argv: Sequence[str], name: str, description: str, *, seeds: int, total_steps: int) -> Namespace:
    """Parse and check the flags that every demo has."""
    parser = Parser(prog=f"optimist demo {name}", description=description)
    parser.add_argument("--seeds", type=int, default=seeds, help=f"seeds per method (default: {seeds})")
    parser.add_argument("--total-steps", type=int, default=total_steps, help=f"per run (default: {total_steps:,})")
    parser.add_argument("--jobs", type=int, default=available_cores(), help="parallel runs (default: one per core)")
    parser.add_argument("--out", type=Path, metavar="DIR", help="output folder (default: demo/<time>)")
    parser.add_argument("--json", action="store_true", help="print one JSON object as the last line")
    options = parser.parse_all(list(argv))
    for flag in ("seeds", "total_steps", "jobs"):
        if getattr(options, flag) < 1:
            raise ConfigError(f"--{flag.replace('_', '-')} must be at least 1, got {getattr(options, flag)}")
    options.out = options.out or Path("demo") / f"{datetime.now():%Y%m%d-%H%M%S}"
    if options.out.is_dir() and any(options.out.iterdir()):
        raise RunFolderError(f"{options.out} is not empty; choose another --out")
    return options


def plan_demo(options: Namespace, **document: Any) -> Plan:
    """The plan of a sweep file with these keys, the seeds and the steps that were asked for."""
    settings = {"total_steps": options.total_steps, "tensorboard": False}
    return make_plan({"seeds": options.seeds, "settings": settings, "retries": 0, **document})


def train_demo(plan: Plan, options: Namespace, title: str) -> list[dict[str, Any]]:
    """Print what is trained, do all runs and return their rows; raise if one failed."""
    with disk_errors(options.out):
        options.out.mkdir(parents=True, exist_ok=True)
    line = f"{title}; {len(plan.runs)} runs, {min(options.jobs, len(plan.runs))} at a time"
    Console(stderr=True).print(line, highlight=False, soft_wrap=True)
    rows = run_sweep(plan, options.out, jobs=options.jobs)
    for row in rows:
        if row["state"] != "finished":
            raise OptimistError(f"{row['run']} failed: {row['error']}")
    return rows


def show_comparison(plan: Plan, rows: list[dict[str, Any]], title: str, caption: str = "") -> None:
    """Print the sweep's table without the columns that are the same for all methods."""
    show_table(
        *([method, *rest] for method, _env, _steps, *rest in table_cells(rows, plan.file)), title=title, caption=caption
    )


def best_run(rows: Sequence[Mapping[str, Any]], measures: Sequence[str]) -> str:
    """The run with the largest measures, the first of which counts most."""
    best: str = max(rows, key=lambda row: tuple(row["metrics"][name] for name in measures))["run"]
    return best


def show_next(commands: Sequence[str]) -> None:
    """Print what can be done next, a command a line."""
    print("\nNext:")
    for command in commands:
        print(f"  optimist {command}")
