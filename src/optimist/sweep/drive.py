"""Driver: hands runs to an executor, tries failed ones again from their checkpoints, and writes down what happened."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Protocol

from optimist.errors import RunFolderError
from optimist.sweep.folder import WorkFolder
from optimist.sweep.plan import Run
from optimist.sweep.work import Outcome


class Executor(Protocol):
    """Where runs are done: processes of this machine, or a Ray cluster."""

    def start(self, run: Run) -> bool:
        """Starts the run if there is room for it."""

    def slots(self, run: Run) -> int:
        """How many such runs go on at a time; at least 1."""

    def wait(self, seconds: float) -> list[Outcome]:
        """The attempts that ended, at the latest after so many seconds."""

    def cancel(self, name: str) -> None:
        """Stops a run; its outcome still comes."""

    def close(self) -> None:
        """Stops everything that runs, each with a checkpoint where it can."""


@dataclass(frozen=True)
class Ended:
    """What became of a run, or of one attempt where `again` is true."""

    run: Run
    error: str | None
    again: bool = False
    skipped: bool = False
    """It had finished before."""


class Driver:
    """The runs that wait, those that run, and those that have ended."""

    def __init__(self, folder: WorkFolder, executor: Executor, retries: int) -> None:
        self.folder, self.executor, self.retries = folder, executor, retries
        self.waiting: deque[Run] = deque()
        self.active: dict[str, Run] = {}
        self.finished: dict[str, Run] = {}
        self.failed: dict[str, str] = {}
        self._fruitless: dict[str, int] = {}
        self._began_at: dict[str, int] = {}
        self._cancelled: set[str] = set()

    @property
    def busy(self) -> bool:
        """Whether anything waits or runs."""
        return bool(self.waiting or self.active)

    def submit(self, run: Run) -> Ended | None:
        """Queues the run; one that had finished, or whose summary is damaged, has ended already."""
        try:
            done = self.folder.summary(run.name) is not None
        except RunFolderError as error:
            return self._fail(run, str(error))
        if done:
            self.finished[run.name] = run
            return Ended(run, None, skipped=True)
        self.waiting.append(run)
        return None

    def cancel(self, name: str) -> None:
        """Ends a run before its time; it counts as failed, with that reason."""
        self._cancelled.add(name)
        for run in [run for run in self.waiting if run.name == name]:
            self.waiting.remove(run)
            self._fail(run, "cancelled")
        if name in self.active:
            self.executor.cancel(name)

    def step(self, seconds: float) -> list[Ended]:
        """Starts what there is room for, waits a little, and says what ended."""
        self._start_what_fits()
        return [self._take(outcome) for outcome in self.executor.wait(seconds)]

    def close(self) -> None:
        """Stops the executor; what ran is written down as stopped."""
        try:
            self.executor.close()
        finally:
            for name in self.active:
                self.folder.event(name, "stopped", step=self.folder.saved_step(name))

    def _start_what_fits(self) -> None:
        """A run that waits for a GPU does not hold up those that need none."""
        refused: set[tuple[float, float, str]] = set()
        for run in list(self.waiting):
            needs = (run.cpus, run.gpus, run.config.device)
            if needs in refused:
                continue
            step = self.folder.saved_step(run.name)
            if not self.executor.start(run):
                refused.add(needs)
                continue
            self.waiting.remove(run)
            self.active[run.name], self._began_at[run.name] = run, step
            self.folder.event(run.name, "start", step=step)

    def _take(self, outcome: Outcome) -> Ended:
        run = self.active.pop(outcome.run)
        error = outcome.error
        if error is None:
            error = self._check_finished(run)
        if error is None:
            self.finished[run.name] = run
            self.folder.event(run.name, "finished")
            return Ended(run, None)
        if run.name in self._cancelled:
            return self._fail(run, "cancelled")
        if outcome.hopeless or self._gives_up(run.name):
            return self._fail(run, error)
        self.folder.event(run.name, "retry", error=error, step=self.folder.saved_step(run.name))
        self.waiting.append(run)
        return Ended(run, error, again=True)

    def _check_finished(self, run: Run) -> str | None:
        """A run has finished when its summary has come home."""
        try:
            found = self.folder.summary(run.name)
        except RunFolderError as error:
            return str(error)
        return None if found is not None else f"it ended, but {self.folder.run_path(run.name)} has no summary.json"

    def _gives_up(self, name: str) -> bool:
        """Attempts that brought the run to a new checkpoint do not count: a cluster may lose many nodes."""
        if self.folder.saved_step(name) > self._began_at[name]:
            self._fruitless[name] = 0
            return self.retries == 0
        self._fruitless[name] = self._fruitless.get(name, 0) + 1
        return self._fruitless[name] > self.retries

    def _fail(self, run: Run, error: str) -> Ended:
        self.failed[run.name] = error
        self.folder.event(run.name, "failed", error=error)
        return Ended(run, error)
