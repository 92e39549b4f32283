"""Progress displays: `Progress` for a run, `counting` for work of a known number of parts."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bar
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

SHOWN = {
    "return": ("rollout/raw_return", "{:.3g}"),
    "eval": ("evaluation/mean_return", "{:.3g}"),
    "goal": ("rollout/goal_rate", "{:.0%}"),
    "entropy": ("policy/entropy", "{:.3f}"),
    "τ": ("opr/threshold", "{:.3g}"),
    "memory": ("opr/memory_fill", "{:.0%}"),
}
RATE_WINDOW = 20  # updates over which steps/s is measured


class Progress:
    """The display of a run while it trains, on stderr; nothing with `enabled=False`."""

    def __init__(
        self,
        title: str,
        total_steps: int,
        enabled: bool = True,
        *,
        start: int = 0,
        notes: Iterable[str] = (),
        console: Console | None = None,
        every: float = 5.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`start`: steps done before; `notes`: lines under the title; `every`: seconds between plain lines."""
        self.title, self.total_steps, self.enabled, self.start = title, total_steps, enabled, start
        self.notes, self.every = list(notes), every
        self.console = console or Console(stderr=True)
        self._clock = clock
        self._marks: deque[tuple[float, int]] = deque([(clock(), start)], maxlen=RATE_WINDOW)
        self._last_line = clock()
        self._live: Live | None = None
        self._known: dict[str, float] = {}  # newest values: an update in which no episode ends has no τ

    def __enter__(self) -> Progress:
        if not self.enabled:
            return self
        for line in (self.title, *self.notes):
            self.console.print(line, style="dim", markup=False, highlight=False, soft_wrap=True)
        if self.console.is_terminal:
            self._live = Live(self._draw(self.start), console=self.console, refresh_per_second=4)
            self._live.start()
        return self

    def update(self, step: int, metrics: Mapping[str, float]) -> None:
        """Show the step and the newest metrics; cheap enough for every update."""
        now = self._clock()
        self._marks.append((now, step))
        self._known |= {
            name: metrics[name] for name, _ in SHOWN.values() if not math.isnan(metrics.get(name, math.nan))
        }
        if not self.enabled:
            return
        if self._live is not None:
            self._live.update(self._draw(step))
        elif now - self._last_line >= self.every or step >= self.total_steps:
            self._last_line = now
            self._print(f"{step:>9,}/{self.total_steps:,}  {self.line(step)}")

    def message(self, text: str) -> None:
        """Print one line above the live display."""
        if self.enabled:
            self._print(text)

    @property
    def steps_per_second(self) -> float:
        """Environment steps per second over the last updates; 0 before the second."""
        (started, first), (now, last) = self._marks[0], self._marks[-1]
        return (last - first) / (now - started) if now > started else 0.0

    def line(self, step: int) -> str:
        """Speed and newest numbers on one line."""
        return " · ".join([*self._speed(step), *self._numbers()])

    def _speed(self, step: int) -> list[str]:
        rate = self.steps_per_second
        left = max(self.total_steps - step, 0)
        return [f"{rate:,.0f} steps/s", f"{duration(left / rate)} left" if rate else "– left"]

    def _numbers(self) -> list[str]:
        return [
            f"{label} {form.format(self._known[name])}" for label, (name, form) in SHOWN.items() if name in self._known
        ]

    def _draw(self, step: int) -> Group:
        """Two rows of 80 columns: progress and speed, then the newest numbers."""
        row = Table.grid(padding=(0, 1))
        bar = ProgressBar(total=self.total_steps, completed=step, width=24)
        row.add_row(bar, f"{step / self.total_steps:>4.0%}", " · ".join([f"{step:,} steps", *self._speed(step)]))
        return Group(row, Text(" · ".join(self._numbers())))

    def __exit__(self, *error: object) -> None:
        if self._live is not None:
            self._live.stop()

    def _print(self, text: str) -> None:
        self.console.print(text, markup=False, highlight=False, soft_wrap=True)


@contextmanager
def counting(
    what: str, total: int, enabled: bool = True, console: Console | None = None
) -> Iterator[Callable[[], Any]]:
    """Show work of `total` parts on stderr, a bar on a terminal and one line elsewhere; call the result once a part."""
    console = console or Console(stderr=True, quiet=not enabled)
    if not console.is_terminal:
        console.print(f"{what} ...", highlight=False, soft_wrap=True)
        yield lambda: None
        return
    times = (TimeElapsedColumn(), TextColumn("·"), TimeRemainingColumn(), TextColumn("left"))
    columns = (TextColumn("{task.description}"), BarColumn(16), MofNCompleteColumn(), *times)
    with Bar(*columns, console=console, transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda: bar.advance(task)


def duration(seconds: float) -> str:
    """1:05, or 2:46:39."""
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
