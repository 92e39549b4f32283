"""Progress: a live bar on a terminal, plain lines elsewhere; speed, time left, return, entropy, τ, memory fill.

`counting` is the little one, for work that has parts to count and nothing to measure.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bar
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from optimist.config import DIVIDING, RunConfig

SHOWN = {
    "return": ("rollout/raw_return", "{:.3g}"),
    "goal": ("rollout/goal_rate", "{:.0%}"),
    "entropy": ("policy/entropy", "{:.3f}"),
    "τ": ("opr/threshold", "{:.3g}"),
    "memory": ("opr/memory_fill", "{:.0%}"),
}
RATE_WINDOW = 20  # updates over which steps/s is measured


class Progress:
    """What a run shows while it trains, on stderr; with `enabled=False`, nothing."""

    def __init__(
        self,
        config: RunConfig,
        enabled: bool = True,
        *,
        start: int = 0,
        notes: Iterable[str] = (),
        console: Console | None = None,
        every: float = 5.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`start`: steps done before; `notes`: lines under the header; `every`: seconds between plain lines."""
        self.config, self.enabled, self.start, self.notes, self.every = config, enabled, start, list(notes), every
        self.console = console or Console(stderr=True)
        self._clock = clock
        self._marks: deque[tuple[float, int]] = deque([(clock(), start)], maxlen=RATE_WINDOW)
        self._last_line = clock()
        self._live: Live | None = None
        self._known: dict[str, float] = {}  # newest values of what is shown: an update in which no game ends has no τ

    def __enter__(self) -> Progress:
        if not self.enabled:
            return self
        for line in (header(self.config), *self.notes):
            self.console.print(line, style="dim", markup=False, highlight=False, soft_wrap=True)
        if self.console.is_terminal:
            self._live = Live(self._draw(self.start, {}), console=self.console, refresh_per_second=4)
            self._live.start()
        return self

    def update(self, step: int, metrics: Mapping[str, Any]) -> None:
        """Shows where the run is; cheap enough for every update."""
        now = self._clock()
        self._marks.append((now, step))
        self._known |= _measured(metrics)
        if not self.enabled:
            return
        if self._live is not None:
            self._live.update(self._draw(step, self._known))
        elif now - self._last_line >= self.every or step >= total_steps(self.config):
            self._last_line = now
            self._print(f"{step:>9,}/{total_steps(self.config):,}  {self.line(step, self._known)}")

    def message(self, text: str) -> None:
        """One line above the live display."""
        if self.enabled:
            self._print(text)

    @property
    def steps_per_second(self) -> float:
        """Environment steps per second over the last updates; 0 before the second."""
        (begin, first), (end, last) = self._marks[0], self._marks[-1]
        return (last - first) / (end - begin) if end > begin else 0.0

    def line(self, step: int, metrics: Mapping[str, Any]) -> str:
        """The numbers of one moment on one line."""
        return " · ".join([*self._speed(step), *_numbers(metrics)])

    def _speed(self, step: int) -> list[str]:
        rate = self.steps_per_second
        left = max(total_steps(self.config) - step, 0)
        return [f"{rate:,.0f} steps/s", f"{duration(left / rate)} left" if rate else "– left"]

    def _draw(self, step: int, metrics: Mapping[str, Any]) -> Group:
        """Two rows that fit 80 columns: how far and how fast; what was measured."""
        total = total_steps(self.config)
        row = Table.grid(padding=(0, 1))
        bar = ProgressBar(total=total, completed=step, width=24)
        row.add_row(bar, f"{step / total:>4.0%}", " · ".join([f"{step:,} steps", *self._speed(step)]))
        return Group(row, Text(" · ".join(_numbers(metrics))))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def _print(self, text: str) -> None:
        self.console.print(text, markup=False, highlight=False, soft_wrap=True)


def _measured(metrics: Mapping[str, Any]) -> dict[str, float]:
    """What SHOWN names and the run measures."""
    found = {name: metrics.get(name) for name, _ in SHOWN.values()}
    return {name: float(value) for name, value in found.items() if value is not None and value == value}


def _numbers(metrics: Mapping[str, Any]) -> list[str]:
    """What is known of SHOWN, in words."""
    known = _measured(metrics)
    return [f"{label} {form.format(known[name])}" for label, (name, form) in SHOWN.items() if name in known]


@contextmanager
def counting(
    what: str, total: int, enabled: bool = True, console: Console | None = None
) -> Iterator[Callable[[], Any]]:
    """Around work of `total` parts, on stderr: a bar on a terminal, one line elsewhere. Call it after each part."""
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


def header(config: RunConfig) -> str:
    """One line that says what trains on what."""
    method = config.algorithm.name.upper() + "+OPR" * config.opr.enabled + "+SIL" * config.sil.enabled
    keywords = ", ".join(f"{key}={value}" for key, value in config.env.kwargs.items() if key not in DIVIDING)
    task = config.env.id + (f"({keywords})" if keywords else "")
    delay = f", rewards every {config.env.reward_delay} steps" if config.env.reward_delay > 1 else ""
    return f"{method} on {task}{delay}: {total_steps(config):,} steps, {config.env.num_envs} envs, seed {config.seed}"


def total_steps(config: RunConfig) -> int:
    """Steps the run will have: whole updates, so perhaps not quite what was asked for."""
    return config.total_updates * config.batch_size


def duration(seconds: float) -> str:
    """1:05, or 2:46:39."""
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
