"""run_sweep: hand the runs of a plan to an executor, retry failed ones from their checkpoints, write the results."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

from optimist.errors import ConfigError, RunFolderError
from optimist.sweep.folder import SweepFolder
from optimist.sweep.local import LocalExecutor, Machine
from optimist.sweep.plan import Plan, Run
from optimist.sweep.progress import LiveDisplay
from optimist.sweep.ray import RayExecutor
from optimist.sweep.results import collect_rows, write_results
from optimist.sweep.worker import Outcome, Report

Executor: TypeAlias = LocalExecutor | RayExecutor
"""Starts runs while there is room, waits for attempts that end, and stops all runs when it is closed."""


class Driver:
    """Runs that wait, run, finished and failed."""

    def __init__(self, folder: SweepFolder, executor: Executor, retries: int, seconds: float | None = None) -> None:
        """`seconds`: no run is started that would not end within so many seconds, judging by earlier ones."""
        self.folder, self.executor, self.retries = folder, executor, retries
        self.deadline = None if seconds is None else time.monotonic() + seconds
        self._longest: dict[tuple[str, str, int], float] = {}  # seconds of the longest finished run of a kind
        self.waiting: deque[Run] = deque()
        self.active: dict[str, Run] = {}
        self.finished: dict[str, Run] = {}
        self.failed: dict[str, str] = {}
        self._failures: dict[str, int] = {}
        """Failed attempts in a row that reached no new checkpoint."""
        self._start_step: dict[str, int] = {}

    def run_all(self, plan: Plan, display: LiveDisplay) -> None:
        """Do all runs of the plan."""

        def take(report: Report) -> None:
            display.report(report)
            if report.error is None and not plan.file.keep_checkpoints:
                self.folder.remove_checkpoints(report.run)

        for report in filter(None, map(self.submit, plan.runs)):
            take(report)
        if self.finished:
            display.message(f"{len(self.finished)} of {len(plan.runs)} runs found finished")
        while self.active or self._next_runs():
            for report in self.step(0.5):
                take(report)
            display.refresh(self.active)
            if self.deadline is not None and time.monotonic() > self.deadline:
                break  # `close` stops the active runs, which resume from their checkpoints
        if self.waiting or self.active:
            display.message(
                f"time limit: {len(self.waiting) + len(self.active)} of {len(plan.runs)} runs left; "
                "run the same command again to continue"
            )

    def submit(self, run: Run) -> Report | None:
        """Queue the run, unless it is finished already or has a damaged summary."""
        try:
            done = self.folder.is_finished(run.name, scored=bool(run.score_episodes))
        except RunFolderError as error:
            return self._fail(run, str(error))
        if done:
            self.finished[run.name] = run
            self._note_seconds(run)
            return Report(run.name, found=True)
        self.waiting.append(run)
        return None

    def step(self, seconds: float) -> list[Report]:
        """Start the runs there is room for, and wait up to so many seconds for attempts to end."""
        self._start_waiting()
        return [self._take(outcome) for outcome in self.executor.wait(seconds)]

    def close(self) -> None:
        """Stop the executor, and record the runs that were active as stopped."""
        try:
            self.executor.close()
        finally:
            for name in self.active:
                self.folder.add_event(name, "stopped", step=self.folder.saved_step(name))

    def _start_waiting(self) -> None:
        """Start runs in order; a run that waits for a GPU does not delay runs that need none."""
        refused: set[tuple[float, float, str]] = set()
        for run in self._next_runs():
            needs = (run.cpus, run.gpus, run.config.device)
            if needs in refused:
                continue
            step = self.folder.saved_step(run.name)
            if not self.executor.start(run):
                refused.add(needs)
                continue
            self.waiting.remove(run)
            self.active[run.name], self._start_step[run.name] = run, step
            self.folder.add_event(run.name, "start", step=step)

    def _next_runs(self) -> list[Run]:
        """The waiting runs that would end before the deadline; of a kind that is unknown, all."""
        if self.deadline is None:
            return list(self.waiting)
        left = self.deadline - time.monotonic()
        return [run for run in self.waiting if self._longest.get(_kind(run), 0.0) < left]

    def _note_seconds(self, run: Run) -> None:
        with suppress(RunFolderError):
            seconds = (self.folder.read_json(run.name) or {}).get("time/seconds", 0.0)
            self._longest[_kind(run)] = max(seconds, self._longest.get(_kind(run), 0.0))

    def _take(self, outcome: Outcome) -> Report:
        run = self.active.pop(outcome.run)
        error = outcome.error or self._check_finished(run)
        if error is None:
            self.finished[run.name] = run
            self._note_seconds(run)
            self.folder.add_event(run.name, "finished")
            return Report(run.name)
        if outcome.permanent or self._is_last_attempt(run.name):
            return self._fail(run, error)
        self.folder.add_event(run.name, "retry", error=error, step=self.folder.saved_step(run.name))
        self.waiting.append(run)
        return Report(run.name, error, retried=True)

    def _check_finished(self, run: Run) -> str | None:
        """An error unless the run's summary is visible from here: nodes write it to the shared folder."""
        try:
            found = self.folder.read_json(run.name)
        except RunFolderError as error:
            return str(error)
        return None if found is not None else f"it ended, but {self.folder.run_path(run.name)} has no summary.json"

    def _is_last_attempt(self, name: str) -> bool:
        """Attempts that reach a new checkpoint do not count: a cluster may lose many nodes."""
        if self.folder.saved_step(name) > self._start_step[name]:
            self._failures[name] = 0
            return self.retries == 0
        self._failures[name] = self._failures.get(name, 0) + 1
        return self._failures[name] > self.retries

    def _fail(self, run: Run, error: str) -> Report:
        self.failed[run.name] = error
        self.folder.add_event(run.name, "failed", error=error)
        return Report(run.name, error)


def _kind(run: Run) -> tuple[str, str, int]:
    """Runs of a kind take about as long."""
    return run.method, run.env, run.budget


def run_sweep(
    plan: Plan,
    out: Path,
    *,
    time_limit: float | None = None,
    ray: str | None = None,
    jobs: int | None = None,
    quiet: bool = False,
    message: Callable[[str], None] | None = None,
) -> list[dict[str, Any]]:
    """Do every run that is not finished yet; the rows of runs.jsonl. If all are finished, nothing is written."""
    folder = SweepFolder(out)
    folder.check()
    _check_same_sweep(folder, plan)
    rows = _finished_rows(folder, plan)
    if rows is not None:
        if message is not None:
            message(f"{len(rows)} runs found, none run again; --out DIR for a fresh rerun")
        return rows
    lock = folder.lock()
    try:
        _check_same_sweep(folder, plan)
        records = [run.record for run in plan.runs]
        folder.write_plan({"format": 2, "statistic": plan.file.statistic, "runs": records})
        executor = make_executor(folder, plan.runs, ray, jobs)
        driver = Driver(folder, executor, plan.file.retries, time_limit)
        try:
            with LiveDisplay(folder, records, quiet=quiet) as display:
                if isinstance(executor, RayExecutor):
                    warn_about_room(executor, plan.runs, display.message)
                driver.run_all(plan, display)
        finally:
            driver.close()
        rows = collect_rows(folder, plan)
        write_results(folder, rows, plan.file)
        return rows
    finally:
        lock.release()


def make_executor(folder: SweepFolder, runs: tuple[Run, ...], ray: str | None, jobs: int | None) -> Executor:
    """Processes of this machine, or tasks of the Ray cluster at `ray`."""
    if jobs is not None and jobs < 1:
        raise ConfigError(f"--jobs must be at least 1, got {jobs}")
    if ray is None:
        machine = Machine.detect(count_gpus=any(run.gpus for run in runs))
        for run in runs:
            machine.check(run)
        return LocalExecutor(folder, machine, jobs)
    for run in runs:
        if ":" in run.config.device:
            raise ConfigError(f"{run.name} asks for device '{run.config.device}'; Ray chooses the GPU: use 'cuda'")
    return RayExecutor(folder, ray, jobs)


def warn_about_room(executor: RayExecutor, runs: tuple[Run, ...], message: Callable[[str], None]) -> None:
    """Show one line if no node of the cluster is large enough for a run, which then waits for such a node."""
    cpus, gpus = executor.largest_node()
    for run in runs:
        if run.cpus > cpus or run.gpus > gpus:
            message(f"{run.name} needs {run.cpus:g} cores and {run.gpus:g} GPUs; it waits until a node has them")
            return


def _check_same_sweep(folder: SweepFolder, plan: Plan) -> None:
    """Raise if a run of the folder differs from the plan's; the plan may add runs, and published rows may be others."""
    records = {run.name: run.record for run in plan.runs}
    before: list[dict[str, Any]] = []
    if (folder.path / "plan.json").exists():
        document = folder.read_plan()
        before = document["runs"]
        if document["statistic"] != plan.file.statistic:
            raise RunFolderError(f"{folder.path} holds another sweep (other statistic); choose another with --out DIR")
    published = [row for name, row in folder.published.items() if name in records]
    for old in before + [{key: row.get(key) for key in records[row["run"]]} for row in published]:
        if records.get(old["run"]) != old:
            what = "differs" if old["run"] in records else "is missing"
            raise RunFolderError(
                f"{folder.path} holds another sweep ({old['run']} {what} in the file); choose another with --out DIR"
            )


def _finished_rows(folder: SweepFolder, plan: Plan) -> list[dict[str, Any]] | None:
    """The rows of the plan's runs in runs.jsonl, or None unless all of them are finished."""
    rows = {row["run"]: row for row in folder.read_rows() if row.get("state") == "finished" and "metrics" in row}
    for run in plan.runs:
        if run.name not in rows:
            return None
        try:
            if not folder.is_finished(run.name, scored=bool(run.score_episodes)):
                return None
        except RunFolderError:
            return None
    return [rows[run.name] for run in plan.runs]
