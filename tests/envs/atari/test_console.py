"""One game played by itself is the one that ALE's vector environment plays, and its next can be prepared."""

from __future__ import annotations

import numpy as np
import pytest

from optimist.envs.atari.board import Board
from optimist.envs.atari.console import Console
from optimist.envs.atari.emulator import make_emulators
from optimist.envs.atari.shrink import shares

SETTINGS = {"sticky": 0.0, "no_ops": 30, "max_frames": 108_000}


def make(game, **settings):
    row = Board.make(1, 4)
    return Console(game, row, **(SETTINGS | settings)), row


def moves_of(console, steps, seed=0):
    return np.random.default_rng(seed).integers(0, len(console.actions), steps)


def step(console, row, move):
    row.actions[0] = move
    console.step()


def assert_same(one, other):
    assert np.array_equal(one.obs, other.obs)
    assert one.told.tolist() == other.told.tolist()


@pytest.mark.parametrize(
    ("game", "settings"),
    [
        ("Breakout", {"max_frames": 500}),  # FIRE begins it
        ("Breakout", {"max_frames": 501, "sticky": 0.25, "no_ops": 7}),
        ("Qbert", {}),  # a game has an end of its own within these steps
        ("Freeway", {"max_frames": 302, "no_ops": 0}),  # no FIRE
        ("Carnival", {}),  # 214 lines
        ("JourneyEscape", {"max_frames": 400}),  # 230
        ("Pooyan", {"sticky": 0.25}),  # 220
        ("KingKong", {"max_frames": 401}),  # 250
    ],
)
def test_the_game_is_that_of_ale_s_vector_environment(game, settings):
    console, row = make(game, **settings)
    emulators = make_emulators(game, 1, **(SETTINGS | settings), stack=4, threads=1)
    expected = Board.make(1, 4)
    ends = 0
    for seed in (5, 6):
        expected.obs[:], told = emulators.reset(seed=np.array([seed]))
        expected.told["lives"] = told["lives"]
        row.told[:] = expected.told
        console.reset(seed)
        assert_same(row, expected)
        for move in moves_of(console, 400, seed):
            step(console, row, move)
            emulators.send(np.array([move]))
            expected.write(emulators.recv())
            assert_same(row, expected)
            if row.told["terminated"][0] or row.told["truncated"][0]:
                assert np.array_equal(row.final_obs, expected.final_obs)
                ends += 1
    assert ends or game in ("Carnival", "Pooyan")


@pytest.mark.parametrize("game", ["Breakout", "IceHockey"])  # the second begins by what it finds in its memory
@pytest.mark.parametrize("settings", [{"max_frames": 200}, {"max_frames": 200, "sticky": 0.25}])
def test_preparing_the_next_game_changes_neither(game, settings):
    (plain, row), (prepared, other) = make(game, **settings), make(game, **settings)
    plain.reset(3), prepared.reset(3)
    rng = np.random.default_rng(1)
    for move in moves_of(plain, 500):
        if rng.random() < 0.05:
            prepared.prepare()
        step(plain, row, move), step(prepared, other, move)
        assert_same(row, other)
    for seed in (-1, 8):  # neither do resets from outside, with a game prepared and without
        for console in (plain, prepared):
            console.reset(seed)
        assert_same(row, other)
        prepared.prepare()
        prepared.prepare()
        for move in moves_of(plain, 120):
            step(plain, row, move), step(prepared, other, move)
            assert_same(row, other)


def test_a_prepared_game_begins_without_playing_its_beginning(monkeypatch):
    console, row = make("Breakout", max_frames=40)
    console.reset(3)
    console.prepare()
    began = []
    monkeypatch.setattr(Console, "_beginning", lambda self: began.append(self))
    for _ in range(10):
        step(console, row, 0)
    assert row.told["truncated"][0]
    assert not began
    assert console.next is None  # the one after it is not prepared


def test_games_begin_differently():
    console, row = make("Breakout", max_frames=4)
    console.reset(3)
    first = set()
    for _ in range(30):
        step(console, row, 0)
        first.add(row.obs.tobytes())
    assert len(first) > 5


@pytest.mark.parametrize("length", [160, 210, 214, 220, 230, 250])
def test_new_pixels_share_out_the_old_ones(length):
    begins, weights = shares(length)
    assert weights.sum(1) == pytest.approx(np.ones(84), abs=1e-6)
    covered = np.zeros(length + 4)
    for begin, row in zip(begins, weights, strict=True):
        covered[begin : begin + 4] += row
    assert covered[:length] == pytest.approx(np.full(length, 84 / length), abs=1e-5)
    assert not covered[length:].any()


@pytest.mark.parametrize("game", ["Breakout", "IceHockey"])
def test_a_seed_forgets_what_was_played_and_prepared(game):
    (fresh, row), (used, other) = make(game), make(game)
    used.reset(3)
    for move in moves_of(used, 50):
        step(used, other, move)
    used.prepare()
    for seed in range(8, 14):
        fresh.reset(seed), used.reset(seed)
        assert_same(row, other)
        for move in moves_of(fresh, 30, seed):
            step(fresh, row, move), step(used, other, move)
            assert_same(row, other)
        used.prepare()


@pytest.mark.parametrize("max_frames", range(1, 6))
def test_games_that_end_before_their_first_step_does_are_the_same_when_prepared(max_frames):
    (plain, row), (prepared, other) = make("Breakout", max_frames=max_frames), make("Breakout", max_frames=max_frames)
    plain.reset(3), prepared.reset(3)
    for move in moves_of(plain, 20):
        prepared.prepare()
        step(plain, row, move), step(prepared, other, move)
        assert_same(row, other)
        assert np.array_equal(row.final_obs, other.final_obs)
