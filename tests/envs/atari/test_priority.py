"""Emulators at idle priority, and the presets that use it."""

from __future__ import annotations

import os
import time
from contextlib import suppress

import pytest

import optimist.envs.atari.vector as vector
from optimist.cores import available_cores
from optimist.errors import OptimistError
from optimist.presets import get_preset
from tests.envs.atari.helpers import make, play, random_actions, same
from tests.test_cores import linux


def idle_threads():
    """The threads of this process at idle priority."""
    found = set()
    for thread in os.listdir("/proc/self/task"):
        with suppress(ProcessLookupError):  # the thread has ended
            if os.sched_getscheduler(int(thread)) == os.SCHED_IDLE:
                found.add(int(thread))
    return found


def idle_threads_started_by(make_envs):
    """How many threads at idle priority belong to the environments that `make_envs` returns."""
    before = idle_threads()
    envs = make_envs()
    time.sleep(0.2)  # the thread that made them ends
    started = len(idle_threads() - before)
    assert envs is not None
    return started


@linux
def test_idle_priority_is_that_of_the_emulators_threads():
    assert idle_threads_started_by(lambda: make("Pong", 2, threads=2)) == 0
    assert idle_threads_started_by(lambda: make("Pong", 2, threads=2, priority="idle")) == 2


@linux
def test_results_do_not_depend_on_the_priority():
    actions = random_actions(make("Breakout", 2), 60)
    normal, idle = (play(make("Breakout", 2, priority=priority), actions, seed=1) for priority in ("normal", "idle"))
    assert same(normal, idle)


@linux
def test_idle_emulators_have_two_threads_per_core():
    started = idle_threads_started_by(lambda: make("Pong", 4, threads=0, num_workers=2, priority="idle"))
    assert started == 2 * available_cores()


def test_unknown_priority_gets_a_suggestion():
    with pytest.raises(OptimistError, match="no priority 'idel'; did you mean 'idle'"):
        make(priority="idel")


def test_note_says_that_idle_priority_is_not_supported(monkeypatch):
    monkeypatch.setattr(vector, "HAS_IDLE_PRIORITY", False)
    assert make(priority="idle").notes == ["idle priority needs Linux: the emulators run at normal priority"]
    assert make(priority="normal").notes == []


@pytest.mark.parametrize("name", ["atari/fast", "atari/fast-ppo", "atari/fast-dqn", "atari/fast-rainbow"])
def test_presets_with_many_environments_use_idle_priority(name):
    assert get_preset(name)().env.kwargs["priority"] == "idle"
    assert "priority" not in get_preset("atari/opr")().env.kwargs


def test_actor_critic_presets_store_selected_actions_and_q_learning_presets_executed_ones():
    presets = {
        name: get_preset(f"atari/{name}")().env.forced_actions
        for name in ("ppo", "opr", "paper", "fast", "a2c-sil", "dqn", "dqn-opr", "fast-rainbow")
    }
    learners = dict.fromkeys(presets, "sampled") | dict.fromkeys(("dqn", "dqn-opr", "fast-rainbow"), "executed")
    assert presets == learners
