"""Progress of a sweep: a live table on a terminal, one line a run elsewhere, and the same from the folder alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table

from optimist.errors import RunFolderError
from optimist.sweep.folder import SweepFolder
from optimist.sweep.worker import Report
from optimist.tracking.progress import duration

COLUMNS = ("method", "env", "progress", "finished", "running", "failed", "return")
MOST_LINES = 20
MEASURED_SECONDS = 10.0
"""How long a sweep runs before its remaining time is estimated."""


@dataclass
class State:
    """The state of one run."""

    state: str = "waiting"
    """waiting, running, unfinished (started, but no process works on it), finished or failed."""
    step: int = 0
    raw_return: float | None = None
    error: str = ""


def read_states(folder: SweepFolder, records: Iterable[Mapping[str, Any]]) -> dict[str, State]:
    """The state of each run, from the folder alone."""
    events, locked = folder.last_events(), folder.is_locked
    return {record["run"]: _read_state(folder, record, events.get(record["run"], {}), locked) for record in records}


def _read_state(folder: SweepFolder, record: Mapping[str, Any], event: Mapping[str, Any], locked: bool) -> State:
    name = record["run"]
    newest = folder.newest_metrics(name)
    state = State(step=newest.get("step", 0), raw_return=newest.get("rollout/raw_return"))
    try:
        finished = folder.is_finished(name)
    except RunFolderError as error:
        return State("failed", state.step, state.raw_return, str(error))
    if finished:
        state.state, state.step = "finished", record["budget"]
    elif event.get("event") == "failed":
        state.state, state.error = "failed", event.get("error", "")
    elif event.get("event") == "start" and locked:
        state.state = "running" if newest or folder.run_path(name).exists() else "waiting"
    elif newest or folder.saved_step(name):
        state.state = "waiting" if locked else "unfinished"
    return state


def draw_table(records: Iterable[Mapping[str, Any]], states: Mapping[str, State]) -> Table:
    """A line for each method and environment, or for each method if those would not fit on a screen."""
    table = Table(*COLUMNS, box=None, pad_edge=False)
    for (method, env), own in _groups(list(records)).items():
        found = [states[record["run"]] for record in own]
        counts = {name: sum(state.state == name for state in found) for name in ("finished", "running", "failed")}
        returns = [state.raw_return for state in found if state.raw_return is not None]
        one_env = len({record["env"] for record in own}) == 1
        table.add_row(
            method,
            env,
            ProgressBar(sum(record["budget"] for record in own), sum(state.step for state in found), width=12),
            f"{counts['finished']}/{len(own)}",
            str(counts["running"] or ""),
            f"[red]{counts['failed']}[/]" if counts["failed"] else "",
            f"{sum(returns) / len(returns):.3g}" if returns and one_env else "",
        )
    return table


def _groups(records: list[Mapping[str, Any]]) -> dict[tuple[str, str], list[Mapping[str, Any]]]:
    envs = len({record["env"] for record in records})
    few = len({(record["method"], record["env"]) for record in records}) <= MOST_LINES
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for record in records:
        groups.setdefault((record["method"], record["env"] if few else f"{envs} environments"), []).append(record)
    return groups


def count_states(states: Mapping[str, State]) -> str:
    """`12 of 64 runs finished, 2 running, 1 failed, 49 waiting`."""
    count = dict.fromkeys(("finished", "running", "failed", "unfinished", "waiting"), 0)
    for state in states.values():
        count[state.state] += 1
    rest = "".join(f", {number} {name}" for name, number in count.items() if number and name != "finished")
    return f"{count['finished']} of {len(states)} runs finished{rest}"


class LiveDisplay:
    """The progress of a sweep on stderr."""

    def __init__(
        self,
        folder: SweepFolder,
        records: list[dict[str, Any]],
        console: Console | None = None,
        *,
        quiet: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.folder, self.records, self.quiet = folder, records, quiet
        self.console = console or Console(stderr=True)
        self.states = read_states(folder, records)
        self._budgets = {record["run"]: record["budget"] for record in records}
        self._live: Live | None = None
        self._clock, self._started = clock, clock()
        self._first_step, self._announced = self._step, False

    def __enter__(self) -> LiveDisplay:
        if self.console.is_terminal and not self.quiet:
            self._live = Live(self._draw(), console=self.console, refresh_per_second=2)
            self._live.start()
        return self

    @property
    def remaining(self) -> str:
        """`about 3:20 left`, from the speed so far, starts of processes included; empty while it is not known."""
        open_runs = [name for name, state in self.states.items() if state.state not in ("finished", "failed")]
        missing = sum(self._budgets[name] - self.states[name].step for name in open_runs)
        elapsed, done = self._clock() - self._started, self._step - self._first_step
        known = bool(open_runs) and done > 0 and elapsed >= MEASURED_SECONDS
        return f"about {duration(missing * elapsed / done)} left" if known else ""

    @property
    def _elapsed(self) -> str:
        return duration(self._clock() - self._started)

    @property
    def _step(self) -> int:
        return sum(state.step for state in self.states.values())

    def message(self, text: str) -> None:
        """Print one line, above the live table if there is one."""
        if not self.quiet:
            self.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def report(self, report: Report) -> None:
        """Print a line about an attempt that ended; none for a run that was finished before."""
        name, state = report.run, self._newest("waiting", report.run)
        if report.retried:
            self.message(f"{name} failed at step {self.folder.saved_step(name):,}, retrying: {report.error}")
        elif report.error is not None:
            state.state = "failed"
            self.message(f"{name} failed: {report.error}")
        else:
            state.state, state.step = "finished", self._budgets[name]
            if not report.found:
                done = sum(state.state == "finished" for state in self.states.values())
                counted = ", ".join(filter(None, (f"{done} of {len(self.records)}", self.remaining)))
                self.message(f"{name} finished ({counted})")

    def refresh(self, active: Iterable[str]) -> None:
        """Read the progress of the active runs; redraw the table, or print the first estimate of the time."""
        for name in active:
            self._newest("running" if self.folder.run_path(name).exists() else "waiting", name)
        if self._live is not None:
            self._live.update(self._draw())
        elif not self._announced and self.remaining:
            self._announced = True
            self.message(self.remaining)

    def _draw(self) -> Group:
        times = " · ".join(filter(None, (self._elapsed, self.remaining or "measuring the time left")))
        return Group(draw_table(self.records, self.states), f"{count_states(self.states)} · {times}")

    def _newest(self, state: str, name: str) -> State:
        newest = self.folder.newest_metrics(name)
        self.states[name] = State(state, newest.get("step", 0), newest.get("rollout/raw_return"))
        return self.states[name]

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if self._live is not None:
            self._live.update(draw_table(self.records, self.states))
            self._live.stop()
        if kind is None:
            self.message(f"{count_states(self.states)} in {self._elapsed}")
