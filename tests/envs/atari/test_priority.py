"""Emulators that play where nothing else wants the core."""

from __future__ import annotations

import os
import time
from contextlib import suppress

import pytest

import optimist.envs.atari.vector as vector
from optimist.cores import available_cores
from optimist.errors import OptimistError
from optimist.presets import get_preset
from tests.envs.atari.playing import make, play, random_actions, same
from tests.test_cores import linux


def idle_threads():
    """Those of this process that run where nothing else wants the core."""
    found = set()
    for thread in os.listdir("/proc/self/task"):
        with suppress(ProcessLookupError):  # it ended meanwhile
            if os.sched_getscheduler(int(thread)) == os.SCHED_IDLE:
                found.add(int(thread))
    return found


def begun_idle(work):
    """How many such threads `work` began that are still there while what it made is."""
    before = idle_threads()
    made = work()
    time.sleep(0.2)  # the one that only made them goes
    begun = len(idle_threads() - before)
    assert made is not None
    return begun


@linux
@pytest.mark.parametrize("backend", ["ale", "envpool"])
def test_the_priority_is_that_of_the_emulators_threads(backend):
    def two_games(priority):
        envs = make("Pong", 2, threads=2, priority=priority, backend=backend)
        envs.reset(seed=0)  # EnvPool's threads begin here
        return envs

    assert begun_idle(lambda: two_games("normal")) == 0
    assert begun_idle(lambda: two_games("idle")) >= 2  # EnvPool has one more


@linux
def test_games_are_the_same_at_any_priority():
    actions = random_actions(make("Breakout", 2), 60)
    normal, idle = (play(make("Breakout", 2, priority=priority), actions, seed=1) for priority in ("normal", "idle"))
    assert same(normal, idle)


@linux
def test_idle_emulators_get_two_threads_a_core():
    begun = begun_idle(lambda: make("Pong", 4, threads=0, lanes=2, priority="idle"))
    assert begun == 2 * available_cores()


def test_a_priority_that_does_not_exist_is_an_error_in_one_line():
    with pytest.raises(OptimistError, match="no priority 'idel'; did you mean 'idle'"):
        make(priority="idel")


def test_where_there_is_no_idle_priority_a_note_says_so(monkeypatch):
    monkeypatch.setattr(vector, "HAS_IDLE_PRIORITY", False)
    assert make(priority="idle").notes == ["idle priority is Linux's: here the emulators play at normal priority"]
    assert make(priority="normal").notes == []


@pytest.mark.parametrize("name", ["atari/fast", "atari/fast-ppo", "atari/fast-dqn", "atari/fast-rainbow"])
def test_presets_of_many_games_play_at_idle_priority(name):
    assert get_preset(name)().env.kwargs["priority"] == "idle"
    assert "priority" not in get_preset("atari/opr")().env.kwargs


def test_actor_critics_learn_from_the_move_they_drew_and_q_learning_from_the_one_played():
    presets = {
        name: get_preset(f"atari/{name}")().env.store_executed for name in ("ppo", "opr", "paper", "fast", "a2c-sil")
    }
    assert not any(presets.values())
    assert all(get_preset(f"atari/{name}")().env.store_executed for name in ("dqn", "dqn-opr", "fast-rainbow"))
