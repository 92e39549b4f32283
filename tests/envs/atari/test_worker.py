"""The worker's side of the shared buffers: which commands it executes, in which order, and when it sleeps."""

from __future__ import annotations

import os
import threading
import time

import numpy as np
import pytest

from optimist.envs.atari import worker
from optimist.envs.atari.buffers import COMMAND_BITS, PRE_RESET, RESET, STEP, SharedBuffers
from optimist.envs.atari.subprocess_emulators import SUPPORTED
from optimist.envs.atari.worker import Worker

pytestmark = pytest.mark.skipif(not SUPPORTED, reason="eventfds need Linux")


@pytest.fixture
def recording(monkeypatch):
    """A worker with three emulators that record their commands."""
    executed = []

    class RecordingEmulator:
        def __init__(self, row, **settings):
            self.slot, self.row = int(row.seeds[0]), row

        def step(self):
            executed.append((self.slot, "step", int(self.row.actions[0])))

        def reset(self, seed):
            executed.append((self.slot, "reset", seed))

        def pre_reset(self):
            executed.append((self.slot, "pre_reset"))

    monkeypatch.setattr(worker, "Emulator", RecordingEmulator)
    buffers, wake_fd = SharedBuffers.allocate(3, 4), os.eventfd(0)
    buffers.seeds[:] = range(3)
    yield Worker(buffers, wake_fd, spin_seconds=0.0, idle=False), buffers, wake_fd, executed
    os.close(wake_fd)


class NothingPending(Exception):
    """All commands are done."""


def stop():
    raise NothingPending


def execute_all(a_worker):
    while pending := a_worker.pending():
        a_worker.execute(min(pending, key=a_worker.rows.requested.__getitem__))


def test_commands_are_executed_and_marked_as_completed(recording):
    a_worker, buffers, _, executed = recording
    all_slots = np.arange(3)
    buffers.seeds[:] = [7, -1, 9]
    for command in (RESET, STEP, PRE_RESET, STEP):
        buffers.actions[:] = [3, 4, 5]
        buffers.request(all_slots, command)
        assert (buffers.requested & COMMAND_BITS).tolist() == [command] * 3
        assert a_worker.pending() == [0, 1, 2]
        execute_all(a_worker)
        assert buffers.completed.tolist() == buffers.requested.tolist()
    assert executed[:3] == [(0, "reset", 7), (1, "reset", -1), (2, "reset", 9)]
    assert executed[3:6] == [(0, "step", 3), (1, "step", 4), (2, "step", 5)]
    assert executed[6:9] == [(0, "pre_reset"), (1, "pre_reset"), (2, "pre_reset")]
    assert len(executed) == 12


def test_slot_with_the_fewest_commands_comes_first(recording):
    a_worker, buffers, _, executed = recording
    for slot in (0, 0, 1, 0):
        buffers.request(np.array([slot]), STEP)
        execute_all(a_worker)
    executed.clear()
    buffers.request(np.array([0, 1, 2]), STEP)
    a_worker.wait = stop
    with pytest.raises(NothingPending):
        a_worker.run()
    assert [slot for slot, *_ in executed] == [2, 1, 0]


def test_step_replaces_a_pre_reset_that_has_not_started(recording):
    a_worker, buffers, _, executed = recording
    buffers.request(np.array([1]), PRE_RESET)
    buffers.request(np.array([1]), STEP)
    execute_all(a_worker)
    assert executed == [(1, "step", 0)]


def test_eventfd_wakes_a_worker_and_earlier_writes_are_cleared(recording):
    a_worker, _, wake_fd, _ = recording
    os.eventfd_write(wake_fd, 1)
    os.eventfd_write(wake_fd, 1)
    a_worker.wait()  # clears both
    threading.Timer(0.2, lambda: os.eventfd_write(wake_fd, 1)).start()
    start = time.monotonic()
    a_worker.wait()
    assert time.monotonic() - start > 0.1


def test_busy_waiting_worker_sees_commands_without_a_wake_up(recording):
    a_worker, buffers, _, _ = recording
    a_worker.spin_seconds = 20.0
    threading.Timer(0.1, lambda: buffers.request(np.array([2]), STEP)).start()
    start = time.monotonic()
    a_worker.wait()
    assert a_worker.pending() == [2]
    assert time.monotonic() - start < 10
