"""Emulator gives the results of ALE's vector environment, and preparing the next episode changes nothing."""

from __future__ import annotations

import numpy as np
import pytest

from optimist.envs.atari.buffers import SharedBuffers
from optimist.envs.atari.emulator import Emulator
from optimist.envs.atari.resize import area_weights
from optimist.errors import CheckpointError
from tests.envs.atari.helpers import ale_env, write_step

SETTINGS = {"sticky": 0.0, "no_ops": 30, "max_frames": 108_000}


def make(game, **settings):
    row = SharedBuffers.allocate(1, 4)
    return Emulator(game, row, **(SETTINGS | settings)), row


def random_actions(emulator, steps, seed=0):
    return np.random.default_rng(seed).integers(0, len(emulator.actions), steps)


def step(emulator, row, action):
    row.actions[0] = action
    emulator.step()


def assert_same(one, other):
    assert np.array_equal(one.obs, other.obs)
    assert one.results.tolist() == other.results.tolist()


@pytest.mark.parametrize(
    ("game", "settings"),
    [
        ("Breakout", {"max_frames": 500}),  # a reset presses FIRE
        ("Breakout", {"max_frames": 501, "sticky": 0.25, "no_ops": 7}),
        ("Qbert", {}),  # an episode ends within these steps
        ("Freeway", {"max_frames": 302, "no_ops": 0}),  # no FIRE
        ("Carnival", {}),  # a screen of 214 lines
        ("JourneyEscape", {"max_frames": 400}),  # 230
        ("Pooyan", {"sticky": 0.25}),  # 220
        ("KingKong", {"max_frames": 401}),  # 250
    ],
)
def test_results_are_those_of_ales_vector_environment(game, settings):
    emulator, row = make(game, **settings)
    reference = ale_env(game, **(SETTINGS | settings))
    expected = SharedBuffers.allocate(1, 4)
    ends = 0
    for seed in (5, 6):
        expected.obs[:], infos = reference.reset(seed=np.array([seed]))
        expected.results["lives"] = infos["lives"]
        row.results[:] = expected.results
        emulator.reset(seed)
        assert_same(row, expected)
        for action in random_actions(emulator, 400, seed):
            step(emulator, row, action)
            reference.send(np.array([action]))
            write_step(expected, reference.recv())
            assert_same(row, expected)
            if row.results["terminated"][0] or row.results["truncated"][0]:
                assert np.array_equal(row.final_obs, expected.final_obs)
                ends += 1
    assert ends or game in ("Carnival", "Pooyan")


@pytest.mark.parametrize("game", ["Breakout", "IceHockey"])  # IceHockey starts by the contents of its memory
@pytest.mark.parametrize("settings", [{"max_frames": 200}, {"max_frames": 200, "sticky": 0.25}])
def test_preparing_the_next_episode_changes_no_result(game, settings):
    (plain, row), (prepared, other) = make(game, **settings), make(game, **settings)
    plain.reset(3), prepared.reset(3)
    rng = np.random.default_rng(1)
    for action in random_actions(plain, 500):
        if rng.random() < 0.05:
            prepared.pre_reset()
        step(plain, row, action), step(prepared, other, action)
        assert_same(row, other)
    for seed in (-1, 8):  # resets, with an episode prepared and without
        for emulator in (plain, prepared):
            emulator.reset(seed)
        assert_same(row, other)
        prepared.pre_reset()
        prepared.pre_reset()
        for action in random_actions(plain, 120):
            step(plain, row, action), step(prepared, other, action)
            assert_same(row, other)


def test_prepared_episode_starts_without_new_frames(monkeypatch):
    emulator, row = make("Breakout", max_frames=40)
    emulator.reset(3)
    emulator.pre_reset()
    made = []
    monkeypatch.setattr(Emulator, "_make_initial_state", lambda self: made.append(self))
    for _ in range(10):
        step(emulator, row, 0)
    assert row.results["truncated"][0]
    assert not made
    assert emulator.prepared is None  # the episode after it


def test_episodes_start_differently():
    emulator, row = make("Breakout", max_frames=4)
    emulator.reset(3)
    first = set()
    for _ in range(30):
        step(emulator, row, 0)
        first.add(row.obs.tobytes())
    assert len(first) > 5


@pytest.mark.parametrize("length", [160, 210, 214, 220, 230, 250])
def test_area_weights_cover_every_source_pixel_once(length):
    first_pixels, weights = area_weights(length)
    assert weights.sum(1) == pytest.approx(np.ones(84), abs=1e-6)
    covered = np.zeros(length + 4)
    for first, row in zip(first_pixels, weights, strict=True):
        covered[first : first + 4] += row
    assert covered[:length] == pytest.approx(np.full(length, 84 / length), abs=1e-5)
    assert not covered[length:].any()


@pytest.mark.parametrize("game", ["Breakout", "IceHockey"])
def test_seed_discards_earlier_and_prepared_episodes(game):
    (fresh, row), (used, other) = make(game), make(game)
    used.reset(3)
    for action in random_actions(used, 50):
        step(used, other, action)
    used.pre_reset()
    for seed in range(8, 14):
        fresh.reset(seed), used.reset(seed)
        assert_same(row, other)
        for action in random_actions(fresh, 30, seed):
            step(fresh, row, action), step(used, other, action)
            assert_same(row, other)
        used.pre_reset()


@pytest.mark.parametrize("max_frames", range(1, 6))
def test_episodes_shorter_than_a_step_are_the_same_when_prepared(max_frames):
    (plain, row), (prepared, other) = make("Breakout", max_frames=max_frames), make("Breakout", max_frames=max_frames)
    plain.reset(3), prepared.reset(3)
    for action in random_actions(plain, 20):
        prepared.pre_reset()
        step(plain, row, action), step(prepared, other, action)
        assert_same(row, other)
        assert np.array_equal(row.final_obs, other.final_obs)


@pytest.mark.parametrize("game", ["Breakout", "Qbert", "IceHockey"])
@pytest.mark.parametrize("sticky", [0.0, 0.5])
def test_a_restored_emulator_continues_as_if_nothing_had_happened(game, sticky):
    """Through ends of episodes; the restored emulator never ran before, or ran something else."""
    settings = {"max_frames": 300, "sticky": sticky}
    (one, row), (other, others) = make(game, **settings), make(game, **settings)
    one.reset(3)
    for time, action in enumerate(random_actions(one, 200)):
        if time in (11, 12, 90, 150):
            one.pre_reset()
            saved = one.save()
            assert one.save() == saved
            if time == 90:
                other.reset(8)
            other.load(saved)
            others.results[:] = row.results
            assert_same(row, others)
        step(one, row, action)
        if time >= 11:
            step(other, others, action)
            assert_same(row, others)
            assert np.array_equal(one.ale.getRAM(), other.ale.getRAM())


@pytest.mark.parametrize("damage", [lambda s: s[:100], lambda s: b"", lambda s: s[:2000] + b"xx" + s[2002:]])
def test_a_damaged_state_is_an_error(damage):
    emulator, _ = make("Pong")
    emulator.reset(3)
    with pytest.raises(CheckpointError, match=r"^the saved state of Pong is damaged; resume an older checkpoint$"):
        emulator.load(damage(emulator.save()))


def test_the_state_of_another_game_is_an_error():
    pong, seaquest = make("Pong")[0], make("Seaquest")[0]
    seaquest.reset(3)
    with pytest.raises(CheckpointError, match="the saved state of Pong is damaged"):
        pong.load(seaquest.save())
