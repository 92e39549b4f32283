"""CPU cores and the priorities of processes and threads."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest

from optimist.cores import HAS_IDLE_PRIORITY, at_idle_priority, available_cores
from optimist.errors import OptimistError

linux = pytest.mark.skipif(not HAS_IDLE_PRIORITY, reason="idle priority is Linux's")


def own_policy() -> int:
    return os.sched_getscheduler(0)


def test_at_least_one_core_is_available():
    assert 1 <= available_cores() <= (os.cpu_count() or 1)


def test_all_cores_count_where_the_system_has_no_affinity(monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert available_cores() == os.cpu_count()


def test_a_nice_process_is_detected():
    program = "from optimist.cores import be_nice, is_nice; print(is_nice()); be_nice(); print(is_nice())"
    command = [sys.executable, "-c", program]
    assert subprocess.run(command, capture_output=True, text=True).stdout.split() == ["False", "True"]
    command = ["nice", *command]
    assert subprocess.run(command, capture_output=True, text=True).stdout.split() == ["True", "True"]


@linux
def test_threads_started_at_idle_priority_keep_it_and_the_caller_does_not_change():
    before = own_policy()
    seen = []

    def make():
        thread = threading.Thread(target=lambda: seen.append(own_policy()))
        thread.start()
        thread.join()
        return "made"

    assert at_idle_priority(make) == "made"
    assert seen == [os.SCHED_IDLE]
    assert own_policy() == before != os.SCHED_IDLE


@linux
def test_an_error_at_idle_priority_reaches_the_caller():
    def fail():
        raise OSError(2, "no such ROM")

    with pytest.raises(OSError, match="no such ROM"):
        at_idle_priority(fail)


@linux
def test_a_system_without_permission_for_idle_priority_is_an_error(monkeypatch):
    def refuse(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "sched_setscheduler", refuse)
    with pytest.raises(OptimistError, match=r"^cannot lower the priority of threads here: Operation not permitted$"):
        at_idle_priority(lambda: None)
