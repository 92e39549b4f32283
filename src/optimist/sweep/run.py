"""A plan, a folder and an executor → all runs done, and the table; running it again goes on where it was."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from optimist.errors import ConfigError, RunFolderError
from optimist.sweep.drive import Driver, Ended
from optimist.sweep.folder import WorkFolder
from optimist.sweep.local import LocalExecutor
from optimist.sweep.machine import Machine
from optimist.sweep.plan import Plan, Run
from optimist.sweep.ray import RayExecutor
from optimist.sweep.status import Board
from optimist.sweep.table import collect, write_results

PLAN = "plan.json"


def run_sweep(
    plan: Plan, out: Path, *, ray: str | None = None, jobs: int | None = None, quiet: bool = False
) -> list[dict[str, Any]]:
    """Does every run that has not finished yet; a line of runs.jsonl for each. Raises only where nothing can start."""
    folder = WorkFolder(out)
    lock = folder.claim(PLAN, "optimist sweep status")
    try:
        records = adopt(folder, plan)
        executor = make_executor(folder, plan.runs, ray, jobs)
        driver = Driver(folder, executor, plan.retries)
        try:
            with Board(driver, records, quiet=quiet) as board:
                watch_room(executor, plan.runs, board.say)
                drive_all(driver, plan, board)
        finally:
            driver.close()
        lines = collect(folder, records, plan.statistic)
        write_results(folder, lines)
        return lines
    finally:
        lock.release()


def drive_all(driver: Driver, plan: Plan, board: Board) -> None:
    """Submits the runs and works until the last has ended."""

    def take(ended: Ended) -> None:
        board.ended(ended)
        if ended.error is None and not plan.keep_checkpoints:
            driver.folder.drop_checkpoints(ended.run.name)

    for ended in filter(None, map(driver.submit, plan.runs)):
        take(ended)
    if driver.finished:
        board.say(f"{len(driver.finished)} of {len(plan.runs)} runs had finished before")
    while driver.busy:
        for ended in driver.step(0.5):
            take(ended)
        board.refresh()


def adopt(folder: WorkFolder, plan: Plan) -> list[dict[str, Any]]:
    """The records of the plan, written into the folder; a folder of another sweep is refused.

    A file that describes all runs of the folder, and more, goes on with it: that is how seeds are added.
    """
    records = [record(run) for run in plan.runs]
    if (folder.path / PLAN).exists():
        before = read_records(folder)
        now = {one["run"]: one for one in records}
        changed = [old["run"] for old in before["runs"] if now.get(old["run"]) != old]
        if changed or before["statistic"] != plan.statistic:
            what = f"in it {changed[0]} is another run, or missing from the file" if changed else "statistic differs"
            raise RunFolderError(f"{folder.path} holds another sweep ({what}); choose another folder with -o")
    folder.write_plan(PLAN, {"format": 1, "statistic": plan.statistic, "runs": records})
    return records


def read_records(folder: WorkFolder) -> dict[str, Any]:
    """plan.json of a sweep: its statistic, and `runs`, a record for each."""
    return folder.read_plan(PLAN, ("statistic", "runs"))


def record(run: Run) -> dict[str, Any]:
    """What plan.json and runs.jsonl say about a run."""
    return {"run": run.name, "method": run.method, "env": run.env, "budget": run.budget, **run.origin}


def make_executor(
    folder: WorkFolder, runs: tuple[Run, ...], ray: str | None, jobs: int | None
) -> LocalExecutor | RayExecutor:
    """The cluster at `ray`, else this machine."""
    if jobs is not None and jobs < 1:
        raise ConfigError(f"--jobs must be at least 1, got {jobs}")
    if ray is None:
        machine = Machine.here(count_gpus=any(run.gpus for run in runs))
        for run in runs:
            machine.check(run)
        return LocalExecutor(folder, machine, jobs)
    for run in runs:
        if ":" in run.config.device:
            raise ConfigError(f"{run.name} asks for device '{run.config.device}'; on a cluster Ray chooses: use 'cuda'")
    return RayExecutor(folder, ray, jobs)


def watch_room(executor: LocalExecutor | RayExecutor, runs: tuple[Run, ...], say: Callable[[str], None]) -> None:
    """Says when no node of a cluster has what a run needs; it waits until one joins."""
    if isinstance(executor, LocalExecutor):
        return
    cpus, gpus = executor.largest_node()
    for run in runs:
        if run.cpus > cpus or run.gpus > gpus:
            say(
                f"{run.name} needs {run.cpus:g} cores and {run.gpus:g} GPUs; no node has them yet, it will wait for one"
            )
            return
