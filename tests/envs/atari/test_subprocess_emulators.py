"""Emulators in worker processes: the results of the calling thread, and no process that outlives its host."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import optimist.envs.atari.vector as vector
from optimist.envs.atari.buffers import COMMAND_BITS, PRE_RESET
from optimist.envs.atari.local_emulators import LocalEmulators
from optimist.envs.atari.subprocess_emulators import SUPPORTED, SubprocessEmulators
from optimist.errors import OptimistError
from tests.envs.atari.helpers import assert_same, is_alive, make, play, random_actions, wait_until_gone

pytestmark = pytest.mark.skipif(not SUPPORTED, reason="worker processes need Linux")
SETTINGS = {"sticky": 0.0, "no_ops": 30, "max_frames": 108_000, "stack": 4, "spin_seconds": 0.0, "idle": False}


def make_in_processes(game="Breakout", num_envs=1, **settings):
    return make(game, num_envs, worker_type="processes", **settings)


def worker_pids(envs):
    """The process ids of the workers, once they have started."""
    supervisor = envs.emulators.supervisor.pid
    with open(f"/proc/{supervisor}/task/{supervisor}/children") as file:
        return list(map(int, file.read().split()))


@pytest.mark.parametrize("sticky", [0.0, 0.25])
def test_results_are_those_of_the_calling_thread(sticky):
    settings = {"num_envs": 5, "max_frames": 100, "sticky": sticky, "num_workers": 2}  # episodes of 25 steps
    one, other = make("Breakout", **settings), make_in_processes("Breakout", **settings)
    actions = random_actions(one, 120)
    expected = play(one, actions, seed=1)
    assert any("final_obs" in infos for *_, infos in expected[1:])
    assert any("executed" in infos for *_, infos in expected[1:])
    assert_same(expected, play(other, actions, seed=1))
    other.close()


def test_returned_observations_are_copies():
    envs = make_in_processes("Pong", 2)
    first, _ = envs.reset(seed=0)
    later = [envs.step(row)[0] for row in random_actions(envs, 6)]
    copies = [first.copy(), *(obs.copy() for obs in later)]
    envs.step(np.ones(2, np.int64))
    assert all(np.array_equal(a, b) for a, b in zip([first, *later], copies, strict=True))
    assert not np.array_equal(copies[1], copies[-1])
    envs.close()


def test_masked_resets_with_seeds_and_without_are_those_of_the_calling_thread():
    one, other = make("Breakout", 4, num_workers=2), make_in_processes("Breakout", 4, num_workers=2)
    actions = random_actions(one, 40)
    assert_same(play(one, actions, seed=2), play(other, actions, seed=2))
    for seed, slots in ((None, [2]), (7, [2]), (8, [1]), (9, [0, 3])):
        mask = np.isin(np.arange(4), slots)
        (obs, infos), (others, others_infos) = (e.reset(seed=seed, options={"reset_mask": mask}) for e in (one, other))
        assert np.array_equal(obs, others)
        assert np.array_equal(infos["lives"], others_infos["lives"])
        assert_same(play(one, actions), play(other, actions))
    other.close()


def test_unreceived_step_is_discarded_by_a_reset():
    envs = make_in_processes("Pong", 2)
    expected = play(envs, random_actions(envs, 5), seed=4)
    envs.send(np.arange(2), np.zeros(2, np.int64))  # interrupted before `recv`
    assert_same(expected, play(envs, random_actions(envs, 5), seed=4))
    envs.close()


def test_close_stops_the_processes_at_once():
    envs = make_in_processes("Pong", 4, num_workers=4)
    envs.reset(seed=0)
    pids = worker_pids(envs)
    assert len(set(pids)) == 4
    files = len(os.listdir("/proc/self/fd"))
    start = time.monotonic()
    envs.close()
    assert time.monotonic() - start < 4
    assert wait_until_gone([*pids, envs.emulators.supervisor.pid])
    assert len(os.listdir("/proc/self/fd")) == files - 5  # four eventfds and the socket


def test_garbage_collection_stops_the_processes():
    envs = make_in_processes("Pong")
    envs.reset(seed=0)
    pids = [*worker_pids(envs), envs.emulators.supervisor.pid]
    assert all(map(is_alive, pids))
    del envs
    gc.collect()
    assert wait_until_gone(pids)


def test_close_does_not_wait_for_a_fork_of_the_host():
    envs = make_in_processes("Pong")
    envs.reset(seed=0)
    copy = subprocess.Popen(
        ["sleep", "30"], pass_fds=[envs.emulators.connection.fileno()]
    )  # keeps the socket open, as a fork does
    start = time.monotonic()
    envs.close()
    assert time.monotonic() - start < 4
    copy.kill(), copy.wait()


@pytest.mark.parametrize("killed", ["worker", "supervisor"])
def test_killed_process_is_reported_in_one_line(killed):
    envs = make_in_processes("Pong", 2, num_workers=2)
    envs.reset(seed=0)
    pids = worker_pids(envs)
    os.kill(pids[1] if killed == "worker" else envs.emulators.supervisor.pid, signal.SIGKILL)
    assert wait_until_gone(pids)  # the supervisor stops all workers
    for _ in range(2):
        with pytest.raises(
            OptimistError, match=r"^an emulator process of Pong exited unexpectedly: killed by signal 9$"
        ):
            envs.step(np.zeros(2, np.int64))
    envs.close()


def test_error_in_a_process_is_raised_in_its_host(monkeypatch, capfd):
    slots, seeds = np.arange(1), np.zeros(1, np.int64)
    emulators = SubprocessEmulators("Pong", 1, [0, 1], **(SETTINGS | {"sticky": "often"}))
    with pytest.raises(OptimistError, match=r"^an emulator process of Pong exited unexpectedly: TypeError: [^\n]*$"):
        emulators.reset(slots, seeds)
    monkeypatch.setattr("optimist.envs.atari.subprocess_emulators.find_spec", lambda name: name)
    monkeypatch.setattr(sys, "path", [])
    emulators = SubprocessEmulators("Pong", 1, [0, 1], **SETTINGS)
    with pytest.raises(OptimistError, match=r"^an emulator process of Pong exited unexpectedly: exit status 1$"):
        emulators.reset(slots, seeds)
    assert "No module named 'optimist'" in capfd.readouterr().err


def test_one_of_many_equal_failures_is_reported():
    emulators = SubprocessEmulators("Pong", 4, [0, 1, 2, 3, 4], **(SETTINGS | {"sticky": "often"}))
    time.sleep(1)  # all of them have failed
    with pytest.raises(OptimistError, match=r"exited unexpectedly: TypeError: [^\n]*$") as error:
        emulators.reset(np.arange(4), np.zeros(4, np.int64))
    assert str(error.value).count("TypeError") == 1
    start = time.monotonic()
    emulators.close()
    assert time.monotonic() - start < 4


def test_one_failed_worker_stops_all():
    envs = make_in_processes("Pong", 2, num_workers=2)
    envs.reset(seed=0)
    pids = worker_pids(envs)
    envs.send(np.array([0]), np.array([99]))  # `step` would reject this
    with pytest.raises(OptimistError, match=r"^an emulator process of Pong exited unexpectedly: IndexError: [^\n]*$"):
        envs.recv()
    assert wait_until_gone(pids)
    envs.close()


def test_recv_returns_when_stop_when_is_true():
    envs = make_in_processes("Pong")
    envs.reset(seed=0)
    assert len(envs.recv(stop_when=lambda: True)) == 0  # no step is in progress
    envs.close()


@pytest.mark.parametrize("waits", [True, False])
def test_pre_reset_does_not_replace_a_step_in_progress(waits):
    envs = make_in_processes("Pong", 2, num_workers=2)
    expected = play(envs, random_actions(envs, 6), seed=4)
    found = [(envs.reset(seed=4)[0],)]
    send = envs.emulators.send

    def send_and_pre_reset(slots, actions):
        send(slots, actions)
        if waits:
            wait_until_completed(envs)
        envs.pre_reset()

    envs.emulators.send = send_and_pre_reset
    found += [envs.step(row) for row in random_actions(envs, 6)]
    assert_same(expected, found)
    envs.close()


def test_missing_numba_is_reported_with_its_extra(monkeypatch):
    monkeypatch.setattr("optimist.envs.atari.subprocess_emulators.find_spec", lambda name: None)
    with pytest.raises(OptimistError, match=r"^Atari in worker processes needs numba: pip install '.\[atari\]'"):
        make_in_processes("Pong")


def test_failure_to_start_processes_is_reported_in_one_line(monkeypatch):
    def refuse(*_, **__):
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    before = set(os.listdir("/proc/self/fd"))
    with pytest.raises(
        OptimistError, match=r"^cannot start worker processes for Pong: Resource temporarily unavailable; "
    ):
        make_in_processes("Pong")
    assert set(os.listdir("/proc/self/fd")) <= before


def test_signals_to_the_process_group_do_not_reach_the_workers():
    envs = make_in_processes("Pong")
    envs.reset(seed=0)
    supervisor = envs.emulators.supervisor.pid
    assert {os.getpgid(pid) for pid in (supervisor, *worker_pids(envs))} == {supervisor}
    assert supervisor != os.getpgid(0)
    envs.close()


def test_idle_workers_have_idle_priority():
    envs = [make_in_processes("Pong", priority=priority) for priority in ("normal", "idle")]
    found = []
    for env in envs:
        env.reset(seed=0)
        (worker,) = worker_pids(env)
        found.append({os.sched_getscheduler(int(thread)) for thread in os.listdir(f"/proc/{worker}/task")})
        env.close()
    assert os.SCHED_IDLE not in found[0]
    assert os.SCHED_IDLE in found[1]


@pytest.mark.parametrize(
    ("cores", "num_envs", "priority", "nice", "expected", "spins"),
    [
        (16, 8, "normal", False, [1] * 8, True),
        (16, 8, "normal", True, [1] * 8, False),
        (16, 64, "normal", False, [4] * 16, False),
        (16, 64, "idle", False, [2] * 32, False),
        (16, 20, "normal", False, [1, 1, 1, 2] * 4, False),
        (2, 8, "normal", False, [2] * 4, False),
        (1, 2, "idle", False, [1] * 2, False),
    ],
)
def test_number_of_workers_follows_the_cores_and_only_free_cores_busy_wait(
    monkeypatch, cores, num_envs, priority, nice, expected, spins
):
    started = []

    class RecordingEmulators:
        buffers, version = None, "recorded"

        def __init__(self, game, num_envs, bounds, *, spin_seconds, **settings):
            started.append((np.diff(bounds).tolist(), spin_seconds > 0))

    monkeypatch.setattr(vector, "SubprocessEmulators", RecordingEmulators)
    monkeypatch.setattr(vector, "available_cores", lambda: cores)
    monkeypatch.setattr(vector, "is_nice", lambda: nice)
    make("Pong", num_envs, num_workers=0, worker_type="auto", priority=priority)
    assert started == [(expected, spins)]


def test_rendered_environments_need_no_processes():
    envs = make_in_processes("Pong", render_mode="rgb_array")
    assert isinstance(envs.emulators, LocalEmulators)
    assert envs.notes[1:] == ["worker processes cannot render: this process steps the emulators"]
    assert make("Pong", worker_type="auto", render_mode="rgb_array").notes[1:] == []


def wait_until_completed(envs):
    end = time.monotonic() + 20
    while (envs.buffers.requested != envs.buffers.completed).any() and time.monotonic() < end:
        time.sleep(0.001)
    assert (envs.buffers.requested == envs.buffers.completed).all()


@pytest.mark.parametrize("waits", [True, False])
def test_pre_reset_changes_no_result(waits):
    settings = {"num_envs": 3, "max_frames": 60, "num_workers": 2}  # episodes of 15 steps
    one, other = make_in_processes("Breakout", **settings), make_in_processes("Breakout", **settings)
    actions = random_actions(one, 80)
    expected, found = play(one, actions, seed=1), [(other.reset(seed=1)[0],)]
    for time_, row in enumerate(actions):
        if time_ % 4 == 0:
            other.pre_reset()
            if waits:
                wait_until_completed(other)
        found.append(other.step(row))
    assert_same(expected, found)
    one.close(), other.close()


def test_only_episodes_started_since_the_last_pre_reset_are_prepared():
    envs = make_in_processes("Breakout", 2, num_workers=2, max_frames=40)
    envs.reset(seed=1)
    envs.pre_reset()
    wait_until_completed(envs)
    assert (envs.buffers.requested & COMMAND_BITS).tolist() == [PRE_RESET, PRE_RESET]
    before = envs.buffers.requested.copy()
    envs.pre_reset()
    assert envs.buffers.requested.tolist() == before.tolist()
    for _ in range(9):
        envs.step(np.zeros(2, np.int64))
    before = envs.buffers.requested.copy()
    envs.pre_reset()
    assert envs.buffers.requested.tolist() == before.tolist()
    assert envs.step(np.zeros(2, np.int64))[3].all()
    envs.pre_reset()
    wait_until_completed(envs)
    assert (envs.buffers.requested & COMMAND_BITS).tolist() == [PRE_RESET, PRE_RESET]
    envs.close()


def test_note_says_that_worker_processes_are_not_supported(monkeypatch):
    monkeypatch.setattr(vector, "SUPPORTED", False)
    assert make_in_processes("Pong").notes[1:] == [
        "worker processes need Linux on x86-64: this process steps the emulators"
    ]
    assert make("Pong", worker_type="auto").notes[1:] == []
    assert play(make_in_processes("Pong"), np.zeros((2, 1), np.int64), seed=0)


def test_unknown_worker_type_gets_a_suggestion():
    with pytest.raises(OptimistError, match="no worker_type 'process'; did you mean 'processes'"):
        make(worker_type="process")
