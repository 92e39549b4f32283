"""What the demos share: their flags, and many runs at once behind a live table, or plain lines without a terminal."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table

from optimist.cli.arguments import Parser
from optimist.cores import available_cores
from optimist.errors import ConfigError, RunFolderError
from optimist.tracking.atomic import disk_errors
from optimist.training.parallel import Job, run_all

Column = Callable[[list[dict[str, Any]]], str]
"""The newest metrics of a method's runs → what its row shows."""


def demo_parser(name: str, description: str, *, seeds: int, total_steps: int) -> Parser:
    """The flags every demo has."""
    parser = Parser(prog=f"optimist demo {name}", description=description)
    parser.add_argument("--seeds", type=int, default=seeds, help=f"seeds of each method (default: {seeds})")
    parser.add_argument("--total-steps", type=int, default=total_steps, help=f"of each run (default: {total_steps:,})")
    cores = available_cores()
    parser.add_argument("--jobs", type=int, default=cores, help="runs at a time (default: one a core)")
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder for everything (default: demo/<time>)")
    parser.add_argument("--json", action="store_true", help="one JSON object on the last line")
    return parser


def check_demo(arguments: Namespace) -> None:
    """Raises for numbers that make no sense, and for a folder in which something stands, before anything is begun."""
    for name in ("seeds", "total_steps", "jobs"):
        if getattr(arguments, name) < 1:
            raise ConfigError(f"--{name.replace('_', '-')} must be at least 1, got {getattr(arguments, name)}")
    if arguments.out is not None and arguments.out.is_dir() and any(arguments.out.iterdir()):
        raise RunFolderError(f"{arguments.out} is not empty; choose another --out")


def demo_folder(out: Path | None) -> Path:
    """Where a demo puts everything, made so that it can."""
    folder = out or Path("demo") / f"{datetime.now():%Y%m%d-%H%M%S}"
    with disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    return folder


def run_live(jobs: Sequence[Job], workers: int, columns: dict[str, Column]) -> list[dict[str, Any]]:
    """Train all jobs while a table shows, for each method, how far its runs are; their summaries in order."""
    console = Console(stderr=True)
    try:
        return _run_shown(jobs, workers, columns, console)
    except KeyboardInterrupt:
        console.print(f"stopped; {_done(jobs)} of {len(jobs)} runs were done", highlight=False)
        raise


def _run_shown(jobs: Sequence[Job], workers: int, columns: dict[str, Column], console: Console) -> list[dict[str, Any]]:
    if not console.is_terminal:
        return run_all(jobs, workers, _Lines(jobs, columns, console), every=2.0)
    with Live(console=console, refresh_per_second=4) as live:
        summaries = run_all(jobs, workers, lambda: live.update(_progress(jobs, columns)))
        live.update(_progress(jobs, columns))
    return summaries


def _progress(jobs: Sequence[Job], columns: dict[str, Column]) -> Table:
    """A row per method: progress over all its runs, then the columns."""
    table = Table("method", "progress", "runs done", *columns, box=None)
    for label in dict.fromkeys(job.label for job in jobs):
        own = [(job, job.latest()) for job in jobs if job.label == label]
        newest = [latest for _, latest in own if latest]
        budget = sum(job.config.total_updates * job.config.batch_size for job, _ in own)
        bar = ProgressBar(budget, sum(latest["step"] for latest in newest), width=30)
        shown = [column(newest) if newest else "" for column in columns.values()]
        table.add_row(label, bar, f"{_done(job for job, _ in own)}/{len(own)}", *shown)
    return table


def _done(jobs: Any) -> int:
    return sum((job.out / "summary.json").exists() for job in jobs)


class _Lines:
    """Plain lines where there is no terminal: one whenever a run has ended."""

    def __init__(self, jobs: Sequence[Job], columns: dict[str, Column], console: Console) -> None:
        self.jobs, self.columns, self.console, self.last = jobs, columns, console, -1

    def __call__(self) -> None:
        done = _done(self.jobs)
        if done != self.last:
            self.last = done
            self.console.print(f"{done}/{len(self.jobs)} runs done", highlight=False)
