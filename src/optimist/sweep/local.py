"""LocalExecutor: each run in a process of its own on this machine, as many at a time as cores and GPUs allow."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from optimist.sweep.folder import WorkFolder
from optimist.sweep.machine import Machine, Place, visible_name
from optimist.sweep.plan import Run
from optimist.sweep.work import Outcome, execute, make_task

GRACE = 30.0
"""Seconds a run has to stop between two updates before it is killed and loses the steps since its checkpoint."""


@dataclass(frozen=True)
class _Child:
    process: BaseProcess
    answer: Connection
    place: Place


class LocalExecutor:
    """Processes forked from a server that has torch loaded, so that a run starts in a moment."""

    def __init__(self, folder: WorkFolder, machine: Machine, jobs: int | None = None) -> None:
        self.folder, self.machine, self.jobs = folder, machine, jobs
        self._children: dict[str, _Child] = {}
        self._context = multiprocessing.get_context("forkserver")
        os.environ.setdefault("OMP_NUM_THREADS", "1")  # each run sets its own number of torch threads
        self._context.set_forkserver_preload(["optimist.training.loop"])

    def start(self, run: Run) -> bool:
        """Starts the run if `jobs`, cores and GPUs leave room."""
        if self.jobs is not None and len(self._children) >= self.jobs:
            return False
        place = self.machine.take(run)
        if place is None:
            return False
        task = make_task(self.folder, run.name, run.config)
        visible = visible_name(place.gpu) if place.gpu is not None and ":" not in run.config.device else None
        answer, sender = self._context.Pipe(duplex=False)
        self.folder.log(run.name, "")
        process = self._context.Process(
            target=_child, args=(task, sender, self.folder.log_path(run.name), visible), name=run.name
        )
        process.start()
        sender.close()
        self._children[run.name] = _Child(process, answer, place)
        return True

    def slots(self, run: Run) -> int:
        """How many such runs go on at a time."""
        room = [self.machine.cpus / run.cpus] + ([self.machine.gpus / run.gpus] if run.gpus else [])
        return max(1, min(int(min(room)), self.jobs or sys.maxsize))

    def wait(self, seconds: float) -> list[Outcome]:
        """The attempts whose processes have ended."""
        if not self._children:
            time.sleep(seconds)
            return []
        wait([child.process.sentinel for child in self._children.values()], timeout=seconds)
        ended = [name for name, child in self._children.items() if not child.process.is_alive()]
        return [self._reap(name) for name in ended]

    def cancel(self, name: str) -> None:
        """Asks the run to stop between two updates."""
        self._children[name].process.terminate()

    def close(self) -> None:
        """Asks all runs to stop, and kills those that do not within the grace period or at a second interrupt."""
        until = time.monotonic() + GRACE
        children = [child.process for child in self._children.values()]
        try:
            for process in children:
                process.terminate()
            for process in children:
                process.join(max(0.0, until - time.monotonic()))
        finally:
            for process in children:
                process.kill()
                process.join()

    def _reap(self, name: str) -> Outcome:
        child = self._children.pop(name)
        child.process.join()
        self.machine.give_back(child.place)
        try:
            outcome: Outcome = child.answer.recv()
        except EOFError:
            outcome = Outcome(name, _last_words(child.process.exitcode, self.folder.log_path(name)))
        child.answer.close()
        return outcome


def _last_words(code: int | None, log: Path) -> str:
    """Why a process ended that could not say so itself."""
    how = f"was killed by {signal.Signals(-code).name}" if code and code < 0 else f"ended with exit code {code}"
    return f"its process {how}; see {log}"


def _child(task: Mapping[str, Any], answer: Connection, log: Path, visible: str | None) -> None:
    """The run's process: output into the log, signals from the driver only, no longer alive than the driver."""
    os.setsid()  # an interrupt from the terminal reaches the driver, which passes on exactly one
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with log.open("a") as file:
        for stream in (sys.stdout, sys.stderr):
            os.dup2(file.fileno(), stream.fileno())
    if visible is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = visible
    threading.Thread(target=_follow_driver, daemon=True).start()
    answer.send(execute(task))


def _follow_driver() -> None:
    """Stops the run, with a checkpoint, when the driver is gone."""
    driver = multiprocessing.parent_process()
    if driver is not None:
        driver.join()
        os.kill(os.getpid(), signal.SIGTERM)
