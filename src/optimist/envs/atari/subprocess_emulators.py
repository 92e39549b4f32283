"""SubprocessEmulators: emulators in worker processes, free of the GIL. They exchange data through shared buffers."""

from __future__ import annotations

import json
import os
import platform
import socket
import subprocess
import sys
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optimist.envs.atari.buffers import LOAD, PRE_RESET, RESET, SAVE, STEP, SharedBuffers, episode_ends
from optimist.envs.atari.games import Slots, ale_version, find_rom
from optimist.errors import OptimistError, WorkerDied, missing_extra

SUPPORTED = (
    all(hasattr(os, name) for name in ("memfd_create", "eventfd"))
    and platform.machine() == "x86_64"
    and bool(sys.executable)
)
"""Whether workers can be processes here. Memory files and eventfds need Linux. Other processors may reorder writes as
seen from another process. Python embedded in another program has no executable to start."""
POLL_SECONDS = 3e-4
"""Time between two looks at the buffers after `spin_seconds`."""
CHECK_SECONDS = 0.5
"""Time without a result after which the workers are checked for failures."""
EXIT_TIMEOUT = 5.0
"""Time that the processes get to exit before they are killed."""


class SubprocessEmulators:
    """Emulators in worker processes, which a supervisor process forks.

    The processes end with `close`, when this object is garbage-collected, or when their host process ends in any way.
    """

    def __init__(
        self, game: str, num_envs: int, bounds: list[int], *, stack: int, spin_seconds: float, **settings: Any
    ) -> None:
        """Start the processes; the first `reset` waits until they are ready.

        `bounds`: the slots of each worker; `spin_seconds`: busy-wait this long before sleeping, in workers and host;
        `settings`: as in Emulator, and `idle`.
        """
        find_rom(game)
        if find_spec("numba") is None:
            raise missing_extra("Atari in worker processes", "atari", "numba")
        self.version = ale_version()
        self.game, self.spin_seconds, self.failure = game, spin_seconds, ""
        self.worker_of_slot = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
        self.all_slots, self.stepping = np.arange(num_envs), np.zeros(num_envs, np.bool_)
        self.unprepared = np.ones(num_envs, np.bool_)
        task = {
            "game": game, "num_envs": num_envs, "bounds": bounds, "stack": stack, "spin_seconds": spin_seconds,
            **settings,
        }  # fmt: skip
        try:
            self.buffers, self.wake_fds, self.connection, self.supervisor = _start(task)
        except OSError as error:  # no memory, or too many processes or files
            raise OptimistError(
                f"cannot start worker processes for {game}: {error.strerror}; set env.kwargs.worker_type = 'none'"
            ) from error
        self._stop = weakref.finalize(self, _stop, self.connection, self.wake_fds, self.supervisor, os.getpid())

    def reset(self, slots: Slots, seeds: NDArray[np.int64] | None) -> None:
        """Start new episodes in these slots, after reseeding them if seeds are given; wait for the result."""
        self.drain()
        self.buffers.seeds[slots] = -1 if seeds is None else seeds
        self._execute(slots, RESET)
        self.unprepared[slots] = True

    def send(self, slots: Slots, actions: NDArray[np.int64]) -> None:
        """Start a step in these slots; `recv` has to follow."""
        self.buffers.actions[slots] = actions
        self._request(slots, STEP)
        self.stepping[slots] = True

    def recv(self, stop_when: Callable[[], bool] | None = None) -> Slots:
        """Wait for slots whose step is done: at least one, or none as soon as `stop_when` returns true."""
        buffers, start = self.buffers, time.perf_counter()
        while True:
            done: Slots = np.flatnonzero(self.stepping & (buffers.requested == buffers.completed))
            if len(done):
                self.stepping[done] = False
                self.unprepared[done] |= episode_ends(buffers.results[done])
                return done
            if stop_when is not None and stop_when():
                return done
            waited = time.perf_counter() - start
            time.sleep(0.0 if waited < self.spin_seconds else POLL_SECONDS)  # this also releases the GIL
            if waited > CHECK_SECONDS:
                start += CHECK_SECONDS
                self._check_workers()

    def drain(self) -> None:
        """Wait for all steps in progress and discard their results."""
        with suppress(WorkerDied):  # the next call of `recv` raises it again
            while self.stepping.any():
                self.recv()

    def pre_reset(self) -> None:
        """Prepare the next episodes in the background while no step is requested."""
        slots = np.flatnonzero(self.unprepared & ~self.stepping)
        self._request(slots, PRE_RESET)
        self.unprepared[slots] = False

    def save(self) -> list[bytes]:
        """The state of each slot."""
        self._execute(self.all_slots, SAVE)
        return self.buffers.read_states()

    def load(self, saved: list[bytes]) -> None:
        """Continue from what `save` returned."""
        self.drain()
        self.buffers.write_states(saved)
        self._execute(self.all_slots, LOAD)
        self.unprepared[:] = True

    def close(self) -> None:
        """Stop the processes."""
        self._stop()

    def _execute(self, slots: Slots, command: int) -> None:
        """Let these slots execute a command, and wait until it is done."""
        self._request(slots, command)
        self.stepping[slots] = True
        while self.stepping.any():
            self.recv()

    def _request(self, slots: Slots, command: int) -> None:
        self.buffers.request(slots, command)
        for worker in set(self.worker_of_slot[slots].tolist()):
            os.eventfd_write(self.wake_fds[worker], 1)

    def _check_workers(self) -> None:
        """Raise WorkerDied if the supervisor has reported a failure or closed the connection."""
        try:
            message = self.connection.recv(4096, socket.MSG_DONTWAIT)
            while more := self.connection.recv(4096):
                message += more
            self.failure = self.failure or message.decode().partition("\n")[0]  # of the first worker that failed
        except BlockingIOError:
            return
        except ConnectionError:
            pass
        status = self.supervisor.wait()
        reason = self.failure or (f"killed by signal {-status}" if status < 0 else f"exit status {status}")
        raise WorkerDied(f"an emulator process of {self.game} exited unexpectedly: {reason}")


def _start(task: dict[str, Any]) -> tuple[SharedBuffers, list[int], socket.socket, subprocess.Popen[bytes]]:
    """The buffers, an eventfd for each worker, the connection to the supervisor process, and that process."""
    connection, remote = socket.socketpair()
    for end in (connection, remote):
        end.settimeout(None)  # overrides socket.setdefaulttimeout
    memory_fd, wake_fds = os.memfd_create("optimist"), list[int]()
    try:
        buffers = SharedBuffers.allocate(task["num_envs"], task["stack"], memory_fd)
        wake_fds += (os.eventfd(0) for _ in task["bounds"][1:])
        return buffers, wake_fds, connection, _start_supervisor(remote.fileno(), memory_fd, wake_fds, task)
    except OSError:
        connection.close()
        for wake_fd in wake_fds:
            os.close(wake_fd)
        raise
    finally:
        remote.close()
        os.close(memory_fd)


def _start_supervisor(
    connection_fd: int, memory_fd: int, wake_fds: list[int], task: dict[str, Any]
) -> subprocess.Popen[bytes]:
    # multiprocessing would run the user's main script a second time. Modules are imported from the same paths.
    paths = list(map(str, sys.path))
    program = f"import sys; sys.path[:] = {paths!r}; from optimist.envs.atari.worker import supervise; "
    program += f"supervise({os.getpid()}, {connection_fd}, {memory_fd}, {wake_fds}, {json.dumps(task)!r})"
    return subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        pass_fds=(connection_fd, memory_fd, *wake_fds),
        process_group=0,  # signals to the host's process group, such as Ctrl-C, do not reach it
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


def _stop(connection: socket.socket, wake_fds: list[int], supervisor: subprocess.Popen[bytes], host_pid: int) -> None:
    """Close the connection and wait until the processes are gone."""
    if os.getpid() != host_pid:  # in a fork of the host, which does not own the processes
        return
    with suppress(OSError):  # the supervisor may have exited before
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()
    try:
        supervisor.wait(EXIT_TIMEOUT)
    except subprocess.TimeoutExpired:
        supervisor.kill()
        supervisor.wait()
    while wake_fds:
        os.close(wake_fds.pop())
