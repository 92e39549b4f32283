"""Worker processes, each with some of the emulators, and the supervisor process that forks and watches them."""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import socket
import time
from contextlib import suppress
from itertools import pairwise
from typing import Any, NoReturn

from optimist.cores import be_idle
from optimist.envs.atari import buffers
from optimist.envs.atari.buffers import COMMAND_BITS, SharedBuffers
from optimist.envs.atari.emulator import Emulator
from optimist.envs.atari.resize import compile_resize

CHECK_SECONDS = 0.2
"""Time between two checks for workers that exited."""
PR_SET_PDEATHSIG = 1
"""Linux's option of prctl that sends a signal to this process when its parent ends."""


def supervise(host_pid: int, connection_fd: int, memory_fd: int, wake_fds: list[int], task: str) -> NoReturn:
    """Fork the workers and wait until the host closes the connection or ends, or a worker exits.

    `connection_fd`, `memory_fd`, `wake_fds`: file descriptors of the socket to the host, of the shared buffers and of
    each worker's eventfd; `task`: for Worker, as JSON. The first line sent to the host is the reason of a failure.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # a host that ignores SIGCHLD passes that on
    connection, workers = socket.socket(fileno=connection_fd), list[int]()
    try:
        settings = json.loads(task)
        bounds, num_envs, stack = (settings.pop(name) for name in ("bounds", "num_envs", "stack"))
        shared = SharedBuffers.allocate(num_envs, stack, memory_fd)
        compile_resize()  # once, before the forks
        for wake_fd, (start, end) in zip(wake_fds, pairwise(bounds), strict=True):
            workers.append(_fork_worker(connection, shared.rows(slice(start, end)), wake_fd, settings))
        _watch(connection, host_pid)
    except Exception as error:  # the host raises it
        _report(connection, f"{type(error).__name__}: {error}")
    for pid in workers:  # leave no zombies, in case no other process reaps them
        with suppress(ProcessLookupError, ChildProcessError):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    os._exit(0)


def _fork_worker(connection: socket.socket, rows: SharedBuffers, wake_fd: int, settings: dict[str, Any]) -> int:
    """Start a worker; its process id."""
    supervisor = os.getpid()
    if pid := os.fork():
        return pid
    try:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == supervisor:  # else it ended before prctl
            Worker(rows, wake_fd, **settings).run()
    except Exception as error:
        _report(connection, f"{type(error).__name__}: {error}")
    os._exit(1)


def _watch(connection: socket.socket, host_pid: int) -> None:
    """Wait until the connection is closed, the host has ended, or a worker has exited.

    A fork of the host keeps the connection open, so the host's process is checked, too.
    """
    closed = select.poll()
    closed.register(connection, select.POLLIN)
    while not closed.poll(1e3 * CHECK_SECONDS) and os.getppid() == host_pid:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid and os.WIFSIGNALED(status):  # else the worker has reported the reason
            _report(connection, f"killed by signal {os.WTERMSIG(status)}")
        if pid:
            return


def _report(connection: socket.socket, reason: str) -> None:
    with suppress(ConnectionError):
        connection.sendall(f"{' '.join(reason.split())}\n".encode())


class Worker:
    """Executes the commands of its slots; the slot with the fewest commands so far comes first."""

    def __init__(self, rows: SharedBuffers, wake_fd: int, *, spin_seconds: float, idle: bool, **settings: Any) -> None:
        """`spin_seconds`: busy-wait this long for commands before sleeping until `wake_fd` is written.

        `idle`: run at idle priority; `settings`: as in Emulator.
        """
        if idle:
            be_idle()
        self.rows, self.wake_fd, self.spin_seconds = rows, wake_fd, spin_seconds
        slots = range(len(rows.requested))
        self.emulators = [Emulator(row=rows.rows(slice(slot, slot + 1)), **settings) for slot in slots]

    def run(self) -> NoReturn:
        """Execute commands until the process is killed."""
        while True:
            if pending := self.pending():
                self.execute(min(pending, key=self.rows.requested.__getitem__))
            else:
                self.wait()

    def pending(self) -> list[int]:
        """Slots with a command that is not done."""
        requested, completed = self.rows.requested, self.rows.completed
        return [slot for slot in range(len(requested)) if requested[slot] != completed[slot]]

    def wait(self) -> None:
        """Busy-wait for a command, then sleep until `wake_fd` is written, possibly for a command already done."""
        end = time.perf_counter() + self.spin_seconds
        while time.perf_counter() < end:
            if self.pending():
                return
        os.eventfd_read(self.wake_fd)

    def execute(self, slot: int) -> None:
        """Execute the command of a slot and mark it as done."""
        rows, emulator = self.rows, self.emulators[slot]
        requested = int(rows.requested[slot])
        match requested & COMMAND_BITS:
            case buffers.STEP:
                emulator.step()
            case buffers.RESET:
                emulator.reset(int(rows.seeds[slot]))
            case buffers.PRE_RESET:
                emulator.pre_reset()
            case buffers.SAVE:
                rows.rows(slice(slot, slot + 1)).write_states([emulator.save()])
            case buffers.LOAD:
                (state,) = rows.rows(slice(slot, slot + 1)).read_states()
                emulator.load(state)
        rows.completed[slot] = requested
