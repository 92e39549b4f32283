"""How far a sweep is: a live table on a terminal, plain lines elsewhere, and the same from the folder alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table

from optimist.errors import RunFolderError
from optimist.sweep.drive import Driver, Ended
from optimist.sweep.folder import WorkFolder

COLUMNS = ("method", "env", "progress", "finished", "running", "failed", "return")
MOST_ROWS = 20


@dataclass
class State:
    """Where one run is."""

    state: str = "waiting"
    """waiting, running, unfinished (begun, nobody works on it), finished or failed."""
    step: int = 0
    raw_return: float | None = None
    error: str = ""


def read_states(folder: WorkFolder, records: Iterable[Mapping[str, Any]]) -> dict[str, State]:
    """The state of each run, from the folder alone."""
    events, driven = folder.last_events(), folder.driven
    return {record["run"]: _state(folder, record, events.get(record["run"], {}), driven) for record in records}


def _state(folder: WorkFolder, record: Mapping[str, Any], event: Mapping[str, Any], driven: bool) -> State:
    name = record["run"]
    newest = folder.newest_metrics(name)
    state = State(step=newest.get("step", 0), raw_return=newest.get("rollout/raw_return"))
    try:
        finished = folder.summary(name) is not None
    except RunFolderError as error:
        return State("failed", state.step, state.raw_return, str(error))
    if finished:
        state.state, state.step = "finished", record["budget"]
    elif event.get("event") == "failed":
        state.state, state.error = "failed", event.get("error", "")
    elif event.get("event") == "start" and driven:
        state.state = "running" if newest or folder.run_path(name).exists() else "waiting"
    elif newest or folder.saved_step(name):
        state.state = "waiting" if driven else "unfinished"
    return state


def draw(records: Iterable[Mapping[str, Any]], states: Mapping[str, State]) -> Table:
    """A row for each method and environment, or for each method where those would not fit on a screen."""
    table = Table(*COLUMNS, box=None, pad_edge=False)
    for (method, env), own in _groups(list(records)).items():
        found = [states[record["run"]] for record in own]
        counts = {name: sum(state.state == name for state in found) for name in ("finished", "running", "failed")}
        returns = [state.raw_return for state in found if state.raw_return is not None]
        alike = len({record["env"] for record in own}) == 1
        table.add_row(
            method,
            env,
            ProgressBar(sum(record["budget"] for record in own), sum(state.step for state in found), width=12),
            f"{counts['finished']}/{len(own)}",
            str(counts["running"] or ""),
            f"[red]{counts['failed']}[/]" if counts["failed"] else "",
            f"{sum(returns) / len(returns):.3g}" if returns and alike else "",
        )
    return table


def _groups(records: list[Mapping[str, Any]]) -> dict[tuple[str, str], list[Mapping[str, Any]]]:
    envs = len({record["env"] for record in records})
    few = len({(record["method"], record["env"]) for record in records}) <= MOST_ROWS
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for record in records:
        groups.setdefault((record["method"], record["env"] if few else f"{envs} environments"), []).append(record)
    return groups


def one_line(states: Mapping[str, State]) -> str:
    """`12 of 64 runs finished, 2 running, 1 failed, 49 waiting`."""
    count = dict.fromkeys(("finished", "running", "failed", "unfinished", "waiting"), 0)
    for state in states.values():
        count[state.state] += 1
    rest = "".join(f", {number} {name}" for name, number in count.items() if number and name != "finished")
    return f"{count['finished']} of {len(states)} runs finished{rest}"


class Board:
    """What a driver shows while it works, on stderr."""

    def __init__(
        self,
        driver: Driver,
        records: list[dict[str, Any]],
        console: Console | None = None,
        *,
        quiet: bool = False,
    ) -> None:
        self.driver, self.records, self.quiet = driver, records, quiet
        self.console = console or Console(stderr=True)
        self.states = read_states(driver.folder, records)
        self._live: Live | None = None

    def __enter__(self) -> Board:
        if self.console.is_terminal and not self.quiet:
            self._live = Live(draw(self.records, self.states), console=self.console, refresh_per_second=2)
            self._live.start()
        return self

    def say(self, text: str) -> None:
        """One line, above the live table where there is one."""
        if not self.quiet:
            self.console.print(text, markup=False, highlight=False, soft_wrap=True)

    def ended(self, ended: Ended) -> None:
        """A line for an attempt that ended; nothing for a run that had finished before."""
        name = ended.run.name
        if ended.again:
            self.say(f"{name} failed at step {self.driver.folder.saved_step(name):,} and goes on: {ended.error}")
        elif ended.error is not None:
            self.say(f"{name} failed: {ended.error}")
        elif not ended.skipped:
            done = len(self.driver.finished)
            self.say(f"{name} finished ({done} of {len(self.records)})")

    def refresh(self) -> None:
        """Reads how far the active runs are."""
        if self._live is None:
            return
        driver = self.driver
        for record in self.records:
            name, shown = record["run"], self.states[record["run"]].state
            begun = any(name in some for some in (driver.active, driver.finished, driver.failed))
            if shown != "finished" and (begun or shown == "running"):
                self.states[name] = self._now(record)
        self._live.update(draw(self.records, self.states))

    def _now(self, record: Mapping[str, Any]) -> State:
        name, driver = record["run"], self.driver
        newest = driver.folder.newest_metrics(name)
        state = State("waiting", newest.get("step", 0), newest.get("rollout/raw_return"))
        if name in driver.finished:
            state.state, state.step = "finished", record["budget"]
        elif name in driver.failed:
            state.state = "failed"
        elif name in driver.active and driver.folder.run_path(name).exists():
            state.state = "running"
        return state

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self.refresh()
            self._live.stop()
