"""LocalExecutor: each run in its own process on this machine, as many at a time as cores and GPUs allow."""

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

from optimist.cores import available_cores
from optimist.errors import ConfigError
from optimist.sweep.folder import SweepFolder
from optimist.sweep.plan import Run
from optimist.sweep.worker import Outcome, execute, make_task

STOP_TIMEOUT = 30.0
"""Seconds a run has to stop between two updates; then it is killed and loses the steps since its checkpoint."""
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Share:
    """The cores and the part of a GPU that a run has; `gpu` is an index among the visible GPUs."""

    cpus: float
    gpus: float
    gpu: int | None


class Machine:
    """Free cores and free parts of each GPU of this computer; several runs share a GPU."""

    def __init__(self, cpus: float, gpus: int) -> None:
        self.cpus, self.gpus = cpus, gpus
        self.free_cpus = cpus
        self.free_gpus = [1.0] * gpus

    @classmethod
    def detect(cls, *, count_gpus: bool) -> Machine:
        """The cores this process may use and, if `count_gpus`, the GPUs torch sees."""
        gpus = 0
        if count_gpus:
            import torch

            gpus = torch.cuda.device_count()
        return cls(float(available_cores()), gpus)

    def check(self, run: Run) -> None:
        """Raise if the run needs a GPU that this machine does not have."""
        index = _gpu_index(run)
        if run.gpus and (not self.gpus or (index is not None and index >= self.gpus)):
            raise ConfigError(
                f"{run.name} asks for device '{run.config.device}', but this machine has {self.gpus} GPUs"
            )

    def allocate(self, run: Run) -> Share | None:
        """A share for the run, or None if there is no room now; a run larger than the machine gets all of it."""
        cpus = min(run.cpus, self.cpus)
        if cpus > self.free_cpus + _ROUNDING:
            return None
        gpu = self._free_gpu(run) if run.gpus else None
        if run.gpus and gpu is None:
            return None
        self.free_cpus -= cpus
        if gpu is not None:
            self.free_gpus[gpu] -= run.gpus
        return Share(cpus, run.gpus, gpu)

    def release(self, share: Share) -> None:
        """Return the share of a run that ended."""
        self.free_cpus += share.cpus
        if share.gpu is not None:
            self.free_gpus[share.gpu] += share.gpus

    def _free_gpu(self, run: Run) -> int | None:
        """The GPU the run names, else the one with the most room; None if it is full."""
        index = _gpu_index(run)
        if index is None:
            index = max(range(self.gpus), key=lambda gpu: self.free_gpus[gpu])
        return index if self.free_gpus[index] + _ROUNDING >= run.gpus else None


@dataclass(frozen=True)
class _Child:
    process: BaseProcess
    answer: Connection
    share: Share


class LocalExecutor:
    """Processes forked from a server that has torch loaded, so that a run starts quickly."""

    def __init__(self, folder: SweepFolder, machine: Machine, jobs: int | None = None) -> None:
        self.folder, self.machine, self.jobs = folder, machine, jobs
        self._children: dict[str, _Child] = {}
        self._context = multiprocessing.get_context("forkserver")
        os.environ.setdefault("OMP_NUM_THREADS", "1")  # each run sets its own number of torch threads
        self._context.set_forkserver_preload(["optimist.training.trainer"])

    def start(self, run: Run) -> bool:
        """Start the run if `jobs`, cores and GPUs leave room."""
        if self.jobs is not None and len(self._children) >= self.jobs:
            return False
        share = self.machine.allocate(run)
        if share is None:
            return False
        visible = cuda_visible_name(share.gpu) if share.gpu is not None and ":" not in run.config.device else None
        answer, sender = self._context.Pipe(duplex=False)
        self.folder.log(run.name, "")
        process = self._context.Process(
            target=_child_main,
            args=(make_task(self.folder, run), sender, self.folder.log_path(run.name), visible),
            name=run.name,
        )
        process.start()
        sender.close()
        self._children[run.name] = _Child(process, answer, share)
        return True

    def wait(self, seconds: float) -> list[Outcome]:
        """Outcomes of the processes that ended within so many seconds."""
        if not self._children:
            time.sleep(seconds)
            return []
        wait([child.process.sentinel for child in self._children.values()], timeout=seconds)
        ended = [name for name, child in self._children.items() if not child.process.is_alive()]
        return [self._collect(name) for name in ended]

    def close(self) -> None:
        """Ask all runs to stop; kill those that still run after STOP_TIMEOUT or at a second interrupt."""
        until = time.monotonic() + STOP_TIMEOUT
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

    def _collect(self, name: str) -> Outcome:
        child = self._children.pop(name)
        child.process.join()
        self.machine.release(child.share)
        try:
            outcome: Outcome = child.answer.recv()
        except EOFError:  # it died before it could answer
            code = child.process.exitcode
            how = f"was killed by {signal.Signals(-code).name}" if code and code < 0 else f"ended with exit code {code}"
            outcome = Outcome(name, f"its process {how}; see {self.folder.log_path(name)}")
        child.answer.close()
        return outcome


def cuda_visible_name(gpu: int) -> str:
    """The value of CUDA_VISIBLE_DEVICES with which a process sees only this one of the GPUs visible here."""
    visible = [name for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name]
    return visible[gpu] if visible else str(gpu)


def _gpu_index(run: Run) -> int | None:
    _, _, number = run.config.device.partition(":")
    return int(number) if number.isdigit() else None


def _child_main(task: Mapping[str, Any], answer: Connection, log: Path, visible: str | None) -> None:
    """Entry point of a run's process: output goes to the log, and the process ends with the driver."""
    os.setsid()  # Ctrl-C reaches the driver only, which then sends one SIGTERM
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with log.open("a") as file:
        for stream in (sys.stdout, sys.stderr):
            os.dup2(file.fileno(), stream.fileno())
    if visible is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = visible
    threading.Thread(target=_stop_with_driver, daemon=True).start()
    answer.send(execute(task))


def _stop_with_driver() -> None:
    """Stop the run, with a checkpoint, when the driver has ended."""
    driver = multiprocessing.parent_process()
    if driver is not None:
        driver.join()
        os.kill(os.getpid(), signal.SIGTERM)
