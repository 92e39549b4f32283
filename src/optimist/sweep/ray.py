"""RayExecutor: each run a Ray task with its cores and GPU share, on any node that has room."""

from __future__ import annotations

import logging
import signal
import socket
import threading
import time
from types import FrameType
from typing import Any

from optimist.errors import ClusterError, missing_extra
from optimist.sweep.folder import SweepFolder
from optimist.sweep.plan import Run
from optimist.sweep.worker import Outcome, execute, make_task

STOP_TIMEOUT = 30.0
HELP = "start one with `ray start --head`, then `ray start --address HOST:6379` on the other machines"


class RayExecutor:
    """Tasks on an existing cluster. The runs of a lost node return as failed attempts, and the driver retries them."""

    def __init__(self, folder: SweepFolder, address: str, jobs: int | None = None) -> None:
        self.folder, self.jobs = folder, jobs
        self.ray = connect(address)
        self._sigterm = _SigtermRecorder()
        self._tasks: dict[Any, str] = {}
        # max_calls: a new process for each run; max_retries: the driver retries, and records it
        self._execute = self.ray.remote(max_calls=1, max_retries=0, scheduling_strategy="SPREAD")(execute)

    def start(self, run: Run) -> bool:
        """Queue the run at the cluster, which starts it when a node has room; `jobs` limits the queue."""
        if self.jobs is not None and len(self._tasks) >= self.jobs:
            return False
        task = self._execute.options(name=run.name, num_cpus=run.cpus, num_gpus=run.gpus)
        self._tasks[task.remote(make_task(self.folder, run))] = run.name
        return True

    def wait(self, seconds: float) -> list[Outcome]:
        """Outcomes of the tasks that ended, or lost their node, within so many seconds."""
        if not self._tasks:
            time.sleep(seconds)
            return []
        try:
            done, _ = self.ray.wait(list(self._tasks), num_returns=1, timeout=seconds)
        except KeyboardInterrupt as error:
            raise self._sigterm.raised or error from None
        except (ConnectionError, self.ray.exceptions.RayError) as error:
            reason = str(error).strip().partition("\n")[0]
            raise ClusterError(
                f"the Ray cluster is lost ({reason}); start it and run the same command again"
            ) from error
        return [self._outcome(reference) for reference in done]

    def close(self) -> None:
        """Cancel all tasks, wait for their checkpoints up to STOP_TIMEOUT, and disconnect from the cluster."""
        try:
            for reference in self._tasks:
                self.ray.cancel(reference, force=False)
            if self._tasks:
                self.ray.wait(list(self._tasks), num_returns=len(self._tasks), timeout=STOP_TIMEOUT)
        finally:
            self._sigterm.restore()
            self.ray.shutdown()

    def largest_node(self) -> tuple[float, float]:
        """The most cores and the most GPUs that any node has."""
        nodes = [node["Resources"] for node in self.ray.nodes() if node["Alive"]]
        return (
            max((node.get("CPU", 0.0) for node in nodes), default=0.0),
            max((node.get("GPU", 0.0) for node in nodes), default=0.0),
        )

    def _outcome(self, reference: Any) -> Outcome:
        name = self._tasks.pop(reference)
        try:
            outcome: Outcome = self.ray.get(reference)
        except (self.ray.exceptions.RayError, KeyboardInterrupt) as error:
            self.folder.log(name, f"{error}\n")
            first = str(error).strip().partition("\n")[0].partition(". ")[0]
            return Outcome(name, f"{type(error).__name__}: {first}; see {self.folder.log_path(name)}")
        return outcome


class _SigtermRecorder:
    """Wraps the SIGTERM handler and keeps what it raises: inside Ray's calls that becomes KeyboardInterrupt."""

    def __init__(self) -> None:
        self.raised: BaseException | None = None
        self._before = signal.getsignal(signal.SIGTERM)
        self._installed = callable(self._before) and threading.current_thread() is threading.main_thread()
        if self._installed:
            signal.signal(signal.SIGTERM, self._handle)

    def restore(self) -> None:
        if self._installed:
            signal.signal(signal.SIGTERM, self._before)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        assert callable(self._before), "only a function is wrapped"
        try:
            self._before(number, frame)
        except BaseException as error:
            self.raised = error
            raise


def connect(address: str) -> Any:
    """The module `ray`, connected to the cluster at `address`; `auto`: to the cluster this machine belongs to."""
    try:
        import ray
    except ImportError as error:
        raise missing_extra("--ray", "ray", "ray") from error
    if address != "auto":
        _check_address(address)
    handler = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, handler)  # Ray replaces it by a handler that exits silently
    except (ConnectionError, RuntimeError, ValueError, OSError, ray.exceptions.RayError) as error:
        reason = "" if address == "auto" else f" ({str(error).strip().splitlines()[0]})"
        where = "on this machine" if address == "auto" else f"at {address}"
        raise ClusterError(f"no Ray cluster {where}{reason}; {HELP}") from error
    return ray


def _check_address(address: str) -> None:
    """Raise if no process listens at the address; Ray itself would retry for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdigit():
        raise ClusterError(f"--ray takes auto, HOST:PORT or ray://HOST:PORT, got '{address}'")
    try:
        socket.create_connection((host, int(port)), timeout=5.0).close()
    except (OSError, OverflowError) as error:
        raise ClusterError(f"no Ray cluster at {address} ({error}); {HELP}") from error
