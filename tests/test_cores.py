"""The cores of this computer, and threads that leave them to others."""

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


def test_there_is_a_core_to_use():
    assert 1 <= available_cores() <= (os.cpu_count() or 1)


def test_cores_are_counted_where_a_process_cannot_ask_for_its_own(monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert available_cores() == os.cpu_count()


def test_a_nice_process_is_one_that_was_asked_to_be():
    program = "from optimist.cores import be_nice, is_nice; print(is_nice()); be_nice(); print(is_nice())"
    command = [sys.executable, "-c", program]
    assert subprocess.run(command, capture_output=True, text=True).stdout.split() == ["False", "True"]
    command = ["nice", *command]
    assert subprocess.run(command, capture_output=True, text=True).stdout.split() == ["True", "True"]


@linux
def test_threads_begun_at_idle_priority_keep_it_and_the_caller_is_as_before():
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
def test_what_fails_at_idle_priority_fails_for_the_caller():
    def fail():
        raise OSError(2, "no such ROM")

    with pytest.raises(OSError, match="no such ROM"):
        at_idle_priority(fail)


@linux
def test_a_system_that_refuses_idle_priority_is_told(monkeypatch):
    def refuse(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "sched_setscheduler", refuse)
    with pytest.raises(OptimistError, match=r"^cannot lower the priority of threads here: Operation not permitted$"):
        at_idle_priority(lambda: None)
