"""Whoever plays some of the games: what is asked for, in which order, and when to sleep."""

from __future__ import annotations

import os
import threading
import time

import numpy as np
import pytest

from optimist.envs.atari import player
from optimist.envs.atari.apart import CAN_SHARE
from optimist.envs.atari.board import PREPARE, RESET, STEP, WHAT, Board
from optimist.envs.atari.player import Player

pytestmark = pytest.mark.skipif(not CAN_SHARE, reason="bells that processes share are Linux's")


@pytest.fixture
def playing(monkeypatch):
    """Three games on which what is done is written down."""
    done = []

    class Noted:
        def __init__(self, row, **settings):
            self.number, self.row = int(row.seeds[0]), row

        def step(self):
            done.append((self.number, "step", int(self.row.actions[0])))

        def reset(self, seed):
            done.append((self.number, "reset", seed))

        def prepare(self):
            done.append((self.number, "prepare"))

    monkeypatch.setattr(player, "Console", Noted)
    board, bell = Board.make(3, 4), os.eventfd(0)
    board.seeds[:] = range(3)
    yield Player(board, bell, patience=0.0, idle=False), board, bell, done
    os.close(bell)


class Enough(Exception):
    """There is nothing left to do."""


def stop():
    raise Enough


def serve(someone):
    while waiting := someone.waiting():
        someone.answer(min(waiting, key=someone.games.asked.__getitem__))


def test_what_is_asked_for_is_done_and_said(playing):
    someone, board, _, done = playing
    everyone = np.arange(3)
    board.seeds[:] = [7, -1, 9]
    for request in (RESET, STEP, PREPARE, STEP):
        board.actions[:] = [3, 4, 5]
        board.ask(everyone, request)
        assert (board.asked & WHAT).tolist() == [request] * 3
        assert someone.waiting() == [0, 1, 2]
        serve(someone)
        assert board.answered.tolist() == board.asked.tolist()
    assert done[:3] == [(0, "reset", 7), (1, "reset", -1), (2, "reset", 9)]
    assert done[3:6] == [(0, "step", 3), (1, "step", 4), (2, "step", 5)]
    assert done[6:9] == [(0, "prepare"), (1, "prepare"), (2, "prepare")]
    assert len(done) == 12


def test_whoever_is_behind_goes_first(playing):
    someone, board, _, done = playing
    for game in (0, 0, 1, 0):
        board.ask(np.array([game]), STEP)
        serve(someone)
    done.clear()
    board.ask(np.array([0, 1, 2]), STEP)
    someone.wait = stop
    with pytest.raises(Enough):
        someone.play()
    assert [number for number, *_ in done] == [2, 1, 0]


def test_a_step_asked_for_before_preparing_was_seen_takes_its_place(playing):
    someone, board, _, done = playing
    board.ask(np.array([1]), PREPARE)
    board.ask(np.array([1]), STEP)
    serve(someone)
    assert done == [(1, "step", 0)]


def test_a_bell_wakes_and_one_that_rang_before_does_not_keep_it_waiting(playing):
    someone, _, bell, _ = playing
    os.eventfd_write(bell, 1)
    os.eventfd_write(bell, 1)
    someone.wait()  # both at once
    threading.Timer(0.2, lambda: os.eventfd_write(bell, 1)).start()
    begin = time.monotonic()
    someone.wait()
    assert time.monotonic() - begin > 0.1


def test_with_patience_it_sees_what_is_asked_for_without_a_bell(playing):
    someone, board, _, _ = playing
    someone.patience = 20.0
    threading.Timer(0.1, lambda: board.ask(np.array([2]), STEP)).start()
    begin = time.monotonic()
    someone.wait()
    assert someone.waiting() == [2]
    assert time.monotonic() - begin < 10
