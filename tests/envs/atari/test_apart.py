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
from optimist.envs.atari.apart import CAN_SHARE, PlayersApart
from optimist.envs.atari.board import PREPARE, WHAT
from optimist.envs.atari.lanes import Lanes
from optimist.errors import OptimistError
from tests.envs.atari.playing import is_alive, make, play, random_actions, wait_until_gone

pytestmark = pytest.mark.skipif(not CAN_SHARE, reason="memory that processes share is Linux's")
SETTINGS = {"sticky": 0.0, "no_ops": 30, "max_frames": 108_000, "stack": 4, "patience": 0.0, "idle": False}


def apart(game="Breakout", num_envs=1, **settings):
    return make(game, num_envs, workers="processes", **settings)


def players_of(envs):
    """Numbers of the processes that play, once games have begun."""
    leader = envs.players.leader.pid
    with open(f"/proc/{leader}/task/{leader}/children") as file:
        return list(map(int, file.read().split()))


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
    for seed, games in ((None, [2]), (7, [2]), (8, [1]), (9, [0, 3])):
        mask = np.isin(np.arange(4), games)
        (obs, infos), (others, others_infos) = (e.reset(seed=seed, options={"reset_mask": mask}) for e in (one, other))
        assert np.array_equal(obs, others)
        assert np.array_equal(infos["lives"], others_infos["lives"])
        assert_same(play(one, actions), play(other, actions))
    other.close()


def test_a_step_that_nobody_waited_for_does_not_come_in_later():
    envs = apart("Pong", 2)
    expected = play(envs, random_actions(envs, 5), seed=4)
    envs.begin(np.arange(2), np.zeros(2, np.int64))  # an interrupt came before they arrived
    assert_same(expected, play(envs, random_actions(envs, 5), seed=4))
    envs.close()


def test_closing_ends_the_processes_at_once():
    envs = apart("Pong", 4, lanes=4)
    envs.reset(seed=0)
    pids = players_of(envs)
    assert len(set(pids)) == 4
    files = len(os.listdir("/proc/self/fd"))
    begin = time.monotonic()
    envs.close()
    assert time.monotonic() - begin < 4
    assert wait_until_gone([*pids, envs.players.leader.pid])
    assert len(os.listdir("/proc/self/fd")) == files - 5  # four bells and the line


def test_forgotten_environments_end_their_processes():
    envs = apart("Pong")
    envs.reset(seed=0)
    pids = [*players_of(envs), envs.players.leader.pid]
    assert all(map(is_alive, pids))
    del envs
    gc.collect()
    assert wait_until_gone(pids)


def test_closing_does_not_wait_for_a_copy_of_the_host():
    envs = apart("Pong")
    envs.reset(seed=0)
    copy = subprocess.Popen(["sleep", "30"], pass_fds=[envs.players.line.fileno()])  # keeps the line, as a fork does
    begin = time.monotonic()
    envs.close()
    assert time.monotonic() - begin < 4
    copy.kill(), copy.wait()


@pytest.mark.parametrize("who", ["player", "leader"])
def test_a_process_that_is_killed_is_told_in_one_line(who):
    envs = apart("Pong", 2, lanes=2)
    envs.reset(seed=0)
    pids = players_of(envs)
    os.kill(pids[1] if who == "player" else envs.players.leader.pid, signal.SIGKILL)
    assert wait_until_gone(pids)  # without one they are of no use
    for _ in range(2):
        with pytest.raises(OptimistError, match=r"^the process that plays Pong ended: killed by signal 9$"):
            envs.step(np.zeros(2, np.int64))
    envs.close()


def test_what_goes_wrong_in_a_process_is_told_by_its_host(monkeypatch, capfd):
    games, seeds = np.arange(1), np.zeros(1, np.int64)
    players = PlayersApart("Pong", 1, [0, 1], **(SETTINGS | {"sticky": "often"}))
    with pytest.raises(OptimistError, match=r"^the process that plays Pong ended: TypeError: [^\n]*$"):
        players.reset(games, seeds)
    monkeypatch.setattr("optimist.envs.atari.apart.find_spec", lambda name: name)
    monkeypatch.setattr(sys, "path", [])
    players = PlayersApart("Pong", 1, [0, 1], **SETTINGS)
    with pytest.raises(OptimistError, match=r"^the process that plays Pong ended: exit status 1$"):
        players.reset(games, seeds)
    assert "No module named 'optimist'" in capfd.readouterr().err


def test_of_many_that_fail_alike_one_is_heard():
    players = PlayersApart("Pong", 4, [0, 1, 2, 3, 4], **(SETTINGS | {"sticky": "often"}))
    time.sleep(1)  # all of them have said it
    with pytest.raises(OptimistError, match=r"ended: TypeError: [^\n]*$") as error:
        players.reset(np.arange(4), np.zeros(4, np.int64))
    assert str(error.value).count("TypeError") == 1
    begin = time.monotonic()
    players.close()
    assert time.monotonic() - begin < 4


def test_one_that_cannot_go_on_ends_them_all():
    envs = apart("Pong", 2, lanes=2)
    envs.reset(seed=0)
    pids = players_of(envs)
    envs.begin(np.array([0]), np.array([99]))  # `step` would have refused this
    with pytest.raises(OptimistError, match=r"^the process that plays Pong ended: IndexError: [^\n]*$"):
        envs.arrived()
    assert wait_until_gone(pids)
    envs.close()


def test_whoever_waits_for_games_may_be_called_away():
    envs = apart("Pong")
    envs.reset(seed=0)
    assert len(envs.arrived(unless=lambda: True)) == 0  # and none is at play
    envs.close()


@pytest.mark.parametrize("waits", [True, False])
def test_a_rest_takes_no_step_from_a_game_at_play(waits):
    envs = apart("Pong", 2, lanes=2)
    expected = play(envs, random_actions(envs, 6), seed=4)
    found = [(envs.reset(seed=4)[0],)]
    begin = envs.players.begin

    def resting(games, actions):
        begin(games, actions)
        if waits:
            wait_until_answered(envs)
        envs.rest()

    envs.players.begin = resting
    found += [envs.step(row) for row in random_actions(envs, 6)]
    assert_same(expected, found)
    envs.close()


def test_without_the_compiler_that_they_need_the_extra_is_named(monkeypatch):
    monkeypatch.setattr("optimist.envs.atari.apart.find_spec", lambda name: None)
    with pytest.raises(
        OptimistError, match=r"^playing Atari in processes needs numba: pip install 'optimist\[atari\]'$"
    ):
        apart("Pong")


def test_a_system_that_gives_no_more_processes_is_told_in_one_line(monkeypatch):
    def refuse(*_, **__):
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    before = set(os.listdir("/proc/self/fd"))
    with pytest.raises(
        OptimistError, match=r"^cannot begin processes that play Pong: Resource temporarily unavailable; "
    ):
        apart("Pong")
    assert set(os.listdir("/proc/self/fd")) <= before


def test_a_group_s_signals_are_for_the_host():
    envs = apart("Pong")
    envs.reset(seed=0)
    leader = envs.players.leader.pid
    assert {os.getpgid(pid) for pid in (leader, *players_of(envs))} == {leader}
    assert leader != os.getpgid(0)
    envs.close()


def test_idle_processes_leave_the_cores_to_others():
    envs = [apart("Pong", priority=priority) for priority in ("normal", "idle")]
    found = []
    for env in envs:
        env.reset(seed=0)
        (player,) = players_of(env)
        found.append({os.sched_getscheduler(int(thread)) for thread in os.listdir(f"/proc/{player}/task")})
        env.close()
    assert os.SCHED_IDLE not in found[0]
    assert os.SCHED_IDLE in found[1]


@pytest.mark.parametrize(
    ("cores", "num_envs", "priority", "nice", "expected", "patient"),
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
def test_cores_have_a_process_each_or_two_and_only_spare_ones_look_for_news(
    monkeypatch, cores, num_envs, priority, nice, expected, patient
):
    begun = []

    class Begun:
        board = None

        def __init__(self, game, num_envs, bounds, *, patience, **settings):
            begun.append((np.diff(bounds).tolist(), patience > 0))

    monkeypatch.setattr(vector, "PlayersApart", Begun)
    monkeypatch.setattr(vector, "available_cores", lambda: cores)
    monkeypatch.setattr(vector, "is_nice", lambda: nice)
    make("Pong", num_envs, threads=0, lanes=0, workers="auto", priority=priority)
    assert begun == [(expected, patient)]


def test_games_that_are_shown_are_played_by_the_emulators_of_the_camera():
    envs = apart("Pong", render_mode="rgb_array")
    assert isinstance(envs.players, Lanes)
    assert envs.notes == ["emulators in processes of their own show nothing: here they play in threads"]
    assert make("Pong", workers="auto", render_mode="rgb_array").notes == []


def wait_until_answered(envs):
    end = time.monotonic() + 20
    while (envs.board.asked != envs.board.answered).any() and time.monotonic() < end:
        time.sleep(0.001)
    assert (envs.board.asked == envs.board.answered).all()


@pytest.mark.parametrize("waits", [True, False])
def test_a_rest_in_which_games_are_prepared_changes_nothing(waits):
    settings = {"num_envs": 3, "max_frames": 60, "lanes": 2}  # games of 15 steps
    one, other = apart("Breakout", **settings), apart("Breakout", **settings)
    actions = random_actions(one, 80)
    expected, found = play(one, actions, seed=1), [(other.reset(seed=1)[0],)]
    for time_, row in enumerate(actions):
        if time_ % 4 == 0:
            other.rest()
            if waits:
                wait_until_answered(other)
        found.append(other.step(row))
    assert_same(expected, found)
    one.close(), other.close()


def test_only_games_that_have_begun_since_are_prepared():
    envs = apart("Breakout", 2, lanes=2, max_frames=40)
    envs.reset(seed=1)
    envs.rest()
    wait_until_answered(envs)
    assert (envs.board.asked & WHAT).tolist() == [PREPARE, PREPARE]
    before = envs.board.asked.copy()
    envs.rest()
    assert envs.board.asked.tolist() == before.tolist()
    for _ in range(9):
        envs.step(np.zeros(2, np.int64))
    before = envs.board.asked.copy()
    envs.rest()
    assert envs.board.asked.tolist() == before.tolist()
    assert envs.step(np.zeros(2, np.int64))[3].all()
    envs.rest()
    wait_until_answered(envs)
    assert (envs.board.asked & WHAT).tolist() == [PREPARE, PREPARE]
    envs.close()


def test_where_there_are_no_such_processes_a_note_says_so(monkeypatch):
    said = "emulators in processes of their own {}: here they play in threads"
    pooled = make("Pong", workers="processes", backend="envpool")
    assert said.format("are ale-py's") in pooled.notes
    monkeypatch.setattr(vector, "CAN_SHARE", False)
    assert apart("Pong").notes == [said.format("are for Linux on x86-64")]
    assert make("Pong", workers="auto").notes == []
    assert play(apart("Pong"), np.zeros((2, 1), np.int64), seed=0)


def test_other_workers_are_an_error_in_one_line():
    with pytest.raises(OptimistError, match="no kind of workers 'process'; did you mean 'processes'"):
        make(workers="process")
