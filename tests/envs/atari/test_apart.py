"""Emulators in processes of their own: the same games, and no process that outlives its host."""

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
from optimist.envs.atari.apart import HAS_SHARED_MEMORY, EmulatorsApart
from optimist.errors import OptimistError
from tests.envs.atari.playing import make, play, random_actions

pytestmark = pytest.mark.skipif(not HAS_SHARED_MEMORY, reason="memory that processes share is Linux's")
SETTINGS = {"sticky": 0.0, "no_ops": 30, "max_frames": 108_000, "stack": 4, "threads": 1}


def apart(game="Breakout", num_envs=1, **settings):
    return make(game, num_envs, workers="processes", **settings)


def processes_of(envs):
    return [lane.emulators.process for lane in envs.lanes]


def is_alive(pid):
    """Whether the process still does anything."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_until_gone(pids, seconds=20.0):
    end = time.monotonic() + seconds
    while any(map(is_alive, pids)) and time.monotonic() < end:
        time.sleep(0.02)
    return not any(map(is_alive, pids))


def assert_same(one, other):
    """Two plays agree in everything; of rows that `_key` marks absent nothing is said."""
    for x, y in zip(one, other, strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(x[:4], y[:4], strict=True))
        for key in x[4] if len(x) > 4 else ():
            told = x[4].get(f"_{key}", np.ones(len(x[0]), bool))
            assert np.array_equal(x[4][key][told], y[4][key][told]), key


@pytest.mark.parametrize("sticky", [0.0, 0.25])
def test_the_games_are_those_of_threads(sticky):
    settings = {"num_envs": 5, "max_frames": 100, "sticky": sticky, "lanes": 2}  # games of 25 steps
    one, other = make("Breakout", **settings), apart("Breakout", **settings)
    actions = random_actions(one, 120)
    expected = play(one, actions, seed=1)
    assert any("final_obs" in infos for *_, infos in expected[1:])
    assert any("executed" in infos for *_, infos in expected[1:])
    assert_same(expected, play(other, actions, seed=1))
    other.close()


def test_observations_handed_out_stay_as_they_are():
    envs = apart("Pong", 2)
    first, _ = envs.reset(seed=0)
    moments = [envs.step(row)[0] for row in random_actions(envs, 6)]
    copies = [first.copy(), *(obs.copy() for obs in moments)]
    envs.step(np.ones(2, np.int64))
    assert all(np.array_equal(a, b) for a, b in zip([first, *moments], copies, strict=True))
    assert not np.array_equal(copies[1], copies[-1])
    envs.close()


def test_resets_of_some_games_with_seeds_and_without():
    one, other = make("Breakout", 4, lanes=2), apart("Breakout", 4, lanes=2)
    actions = random_actions(one, 40)
    assert_same(play(one, actions, seed=2), play(other, actions, seed=2))
    mask = np.array([False, False, True, False])
    for seed in (None, 7):
        (obs, infos), (others, others_infos) = (e.reset(seed=seed, options={"reset_mask": mask}) for e in (one, other))
        assert np.array_equal(obs, others)
        assert np.array_equal(infos["lives"], others_infos["lives"])
        assert_same(play(one, actions), play(other, actions))
    other.close()


def test_a_step_that_nobody_waited_for_does_not_come_in_later():
    envs = apart("Pong", 2)
    expected = play(envs, random_actions(envs, 5), seed=4)
    envs.send(np.zeros(2, np.int64))  # an interrupt came before `receive`
    assert_same(expected, play(envs, random_actions(envs, 5), seed=4))
    envs.close()


def test_closing_ends_the_processes_at_once():
    envs = apart("Pong", 4, lanes=4)
    pids = [process.pid for process in processes_of(envs)]
    assert len(set(pids)) == 4
    envs.reset(seed=0)
    begin = time.monotonic()
    envs.close()
    assert time.monotonic() - begin < 4
    assert not any(map(is_alive, pids))


def test_forgotten_environments_end_their_processes():
    envs = apart("Pong")
    envs.reset(seed=0)
    (pid,) = (process.pid for process in processes_of(envs))
    assert is_alive(pid)
    del envs
    gc.collect()
    assert wait_until_gone([pid])


def test_a_process_that_is_killed_is_told_in_one_line():
    envs = apart("Pong", 2, lanes=2)
    envs.reset(seed=0)
    processes_of(envs)[1].kill()
    for _ in range(2):
        with pytest.raises(OptimistError, match=r"^the process that plays Pong ended: killed by signal 9$"):
            envs.step(np.zeros(2, np.int64))
    envs.close()


def test_what_goes_wrong_in_a_process_is_told_by_its_host(monkeypatch, capfd):
    emulators = EmulatorsApart("Pong", 1, **(SETTINGS | {"sticky": "often"}))
    with pytest.raises(OptimistError, match=r"^the process that plays Pong ended: TypeError: [^\n]*$"):
        emulators.reset(seed=np.zeros(1, np.int64))
    monkeypatch.setattr(sys, "path", [])
    emulators = EmulatorsApart("Pong", 1, **SETTINGS)
    with pytest.raises(OptimistError, match=r"^the process that plays Pong ended: exit status 1$"):
        emulators.reset(seed=np.zeros(1, np.int64))
    assert "No module named 'optimist'" in capfd.readouterr().err


def test_a_system_that_gives_no_more_processes_is_told_in_one_line(monkeypatch):
    def refuse(*_, **__):
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    before = set(os.listdir("/proc/self/fd"))
    with pytest.raises(
        OptimistError, match=r"^cannot begin a process that plays Pong: Resource temporarily unavailable; "
    ):
        apart("Pong")
    assert set(os.listdir("/proc/self/fd")) <= before


def test_a_group_s_signals_are_for_the_host():
    envs = apart("Pong")
    (process,) = processes_of(envs)
    envs.reset(seed=0)
    assert os.getpgid(process.pid) == process.pid != os.getpgid(0)
    envs.close()


def test_idle_processes_leave_the_cores_to_others():
    envs = [apart("Pong", priority=priority) for priority in ("normal", "idle")]
    found = []
    for env in envs:
        env.reset(seed=0)
        (process,) = processes_of(env)
        found.append({os.sched_getscheduler(int(thread)) for thread in os.listdir(f"/proc/{process.pid}/task")})
        env.close()
    assert os.SCHED_IDLE not in found[0]
    assert os.SCHED_IDLE in found[1]


HOST = """
import os, sys, time
from optimist.envs.atari import AtariVectorEnv

print("made", flush=True)
envs = AtariVectorEnv(2, game="Pong", sticky=0.0, lanes=2, workers="processes")
envs.reset(seed=0)
print(*(lane.emulators.process.pid for lane in envs.lanes), flush=True)
if sys.argv[1] == "fork":
    if os.fork() == 0:
        sys.exit()  # its own copies of everything are let go of here
    os.wait()
    envs.step(envs.action_space.sample())
    print("played", flush=True)
if sys.argv[1] == "wait":
    time.sleep(60)
"""


@pytest.fixture
def host(tmp_path):
    script = tmp_path / "host.py"  # no `if __name__ == "__main__"`: it must not be run a second time
    script.write_text(HOST)

    def begin(how):
        return subprocess.Popen(
            [sys.executable, script, how], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    return begin


def test_a_script_is_run_once_and_its_processes_end_with_it(host):
    said, complained = host("end").communicate(timeout=60)
    first, pids = said.splitlines()
    assert (first, complained) == ("made", "")
    assert wait_until_gone(map(int, pids.split()))


def test_a_host_that_is_killed_takes_its_processes_along(host):
    process = host("wait")
    assert process.stdout.readline() == "made\n"
    pids = list(map(int, process.stdout.readline().split()))
    assert all(map(is_alive, pids))
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert wait_until_gone(pids)
    process.stdout.close(), process.stderr.close()


def test_a_fork_of_the_host_does_not_end_what_is_not_its_own(host):
    said, complained = host("fork").communicate(timeout=60)
    assert said.splitlines()[-1] == "played"
    assert complained == ""


@pytest.mark.parametrize(
    ("cores", "num_envs", "priority", "expected"),
    [
        (16, 8, "normal", [1] * 8),
        (16, 64, "normal", [4] * 16),
        (16, 64, "idle", [2] * 32),
        (16, 20, "normal", [1, 1, 1, 2] * 4),
        (2, 8, "normal", [2] * 4),
        (1, 2, "idle", [1] * 2),
    ],
)
def test_cores_have_a_process_each_or_two(monkeypatch, cores, num_envs, priority, expected):
    begun = []

    class Begun:
        def __init__(self, game, num_envs, **settings):
            begun.append((num_envs, settings["threads"]))
            self.action_meanings = ["NOOP"]
            self.single_observation_space = self.single_action_space = vector.batch_space

    monkeypatch.setattr("optimist.envs.atari.lane.EmulatorsApart", Begun)
    monkeypatch.setattr(vector, "batch_space", lambda *_: None)
    monkeypatch.setattr(vector, "available_cores", lambda: cores)
    make("Pong", num_envs, threads=0, lanes=0, workers="auto", priority=priority)
    assert [games for games, _ in begun] == expected
    assert {threads for _, threads in begun} == {1}


def test_where_there_are_no_such_processes_a_note_says_so(monkeypatch):
    said = "emulators in processes of their own are {}: here they play in threads"
    pooled = make("Pong", workers="processes", backend="envpool")
    assert said.format("ale-py's") in pooled.notes
    monkeypatch.setattr(vector, "HAS_SHARED_MEMORY", False)
    assert apart("Pong").notes == [said.format("Linux's")]
    assert make("Pong", workers="auto").notes == []
    assert play(apart("Pong"), np.zeros((2, 1), np.int64), seed=0)


def test_other_workers_are_an_error_in_one_line():
    with pytest.raises(OptimistError, match="no kind of workers 'process'; did you mean 'processes'"):
        make(workers="process")
