"""What the demos share: their flags, and many runs at once behind a live table, or plain lines without a terminal."""

from __future__ import annotations

import math
import time
from argparse import Namespace
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table

from optimist.cli.arguments import Parser
from optimist.cores import available_cores
from optimist.errors import ConfigError, RunFolderError
from optimist.tracking.atomic import disk_errors
from optimist.tracking.progress import duration
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


def expected_time(jobs: Sequence[Job], workers: int, core_seconds: float) -> str:
    """About how long the jobs take, given the measured seconds of one core for a million steps."""
    steps, cores = sum(map(_budget, jobs)), min(workers, available_cores(), len(jobs))
    minutes = math.ceil(steps / 1e6 * core_seconds / cores / 60)
    return f"about {minutes} minute{'s' * (minutes > 1)} of training on {cores} free core{'s' * (cores > 1)}"


def run_live(jobs: Sequence[Job], workers: int, columns: dict[str, Column]) -> list[dict[str, Any]]:
    """Train all jobs while a table shows, for each method, how far its runs are; their summaries in order."""
    console = Console(stderr=True)
    try:
        return _run_shown(jobs, workers, columns, console)
    except KeyboardInterrupt:
        console.print(f"stopped; {_done(jobs)} of {len(jobs)} runs were done", highlight=False)
        raise


def _run_shown(jobs: Sequence[Job], workers: int, columns: dict[str, Column], console: Console) -> list[dict[str, Any]]:
    left = TimeLeft(jobs)
    if not console.is_terminal:
        return run_all(jobs, workers, _Lines(jobs, left, console), every=2.0)
    with Live(console=console, refresh_per_second=4) as live:
        summaries = run_all(jobs, workers, lambda: live.update(Group(_progress(jobs, columns), left.words())))
        live.update(_progress(jobs, columns))
    return summaries


class TimeLeft:
    """How long the jobs will still take, if they go on as fast as they have since their first steps."""

    def __init__(self, jobs: Sequence[Job], clock: Callable[[], float] = time.monotonic) -> None:
        self.jobs, self.clock = jobs, clock
        self.budget, self.first = sum(map(_budget, jobs)), (0.0, 0)  # when steps were first seen, and how many

    def words(self) -> str:
        """`about 1:40 left`; empty while there is nothing to go by, and nothing left."""
        now, done = self.clock(), sum(latest["step"] for job in self.jobs if (latest := job.latest()))
        if not self.first[1]:
            self.first = now, done
        begin, before = self.first
        if not before < done < self.budget:
            return ""
        return f"about {duration((now - begin) * (self.budget - done) / (done - before))} left"


def _budget(job: Job) -> int:
    return job.config.total_updates * job.config.batch_size


def _progress(jobs: Sequence[Job], columns: dict[str, Column]) -> Table:
    """A row per method: progress over all its runs, then the columns."""
    table = Table("method", "progress", "runs done", *columns, box=None)
    for label in dict.fromkeys(job.label for job in jobs):
        own = [(job, job.latest()) for job in jobs if job.label == label]
        newest = [latest for _, latest in own if latest]
        bar = ProgressBar(sum(_budget(job) for job, _ in own), sum(latest["step"] for latest in newest), width=30)
        shown = [column(newest) if newest else "" for column in columns.values()]
        table.add_row(label, bar, f"{_done(job for job, _ in own)}/{len(own)}", *shown)
    return table


def _done(jobs: Any) -> int:
    return sum((job.out / "summary.json").exists() for job in jobs)


class _Lines:
    """Plain lines where there is no terminal: one whenever a run has ended."""

    def __init__(self, jobs: Sequence[Job], left: TimeLeft, console: Console) -> None:
        self.jobs, self.left, self.console, self.last = jobs, left, console, -1

    def __call__(self) -> None:
        done, left = _done(self.jobs), self.left.words()
        if done != self.last:
            self.last = done
            self.console.print(", ".join(filter(None, (f"{done}/{len(self.jobs)} runs done", left))), highlight=False)
