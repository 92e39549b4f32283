"""EnvPool behind the same interface: the same games as ale-py's where they can be, and every trap of its own."""

from __future__ import annotations

import shutil
import sys
import weakref
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from gymnasium.error import ClosedEnvironmentError

from optimist.cli import bench_atari
from optimist.cli.main import main
from optimist.config import EnvConfig
from optimist.core.config import OPRConfig
from optimist.core.regularizer import OptimisticRegularizer
from optimist.envs.atari import bench, pool
from optimist.envs.make import make_envs
from optimist.errors import ConfigError, MissingExtra, OptimistError, UnknownName
from optimist.rollout.lanes import LaneCollector
from optimist.training.loop import Trainer, resume, train
from tests.envs.atari import playing
from tests.envs.atari.playing import play, random_actions, same
from tests.envs.atari.test_memory import BREAKOUT, RandomPlayer, collect, column, episodes
from tests.envs.atari.test_training import ATARI, lines

envpool = pytest.importorskip("envpool", reason="the extra envpool is not installed")

NOOP, FIRE = 0, 1


def make(game="Breakout", num_envs=1, sticky=0.0, **settings):
    return playing.make(game, num_envs, sticky, backend="envpool", **settings)


@pytest.fixture(scope="module")
def breakout():
    """Two games of Breakout in which nothing is ever pressed: 400 steps, from the reset on."""
    envs = make(num_envs=2)
    return envs, play(envs, np.zeros((400, 2), np.int64), seed=3)


@pytest.mark.parametrize(("game", "max_frames"), [("Breakout", 108_000), ("Breakout", 100), ("Qbert", 400)])
def test_with_fire_as_the_only_frame_of_the_start_both_backends_play_the_same_games(game, max_frames):
    # Rewards, lives, ends, time limits and FIRE pressed for the player are compared all at once.
    settings = {"num_envs": 2, "no_ops": 0, "max_frames": max_frames}
    ours, theirs = make(game, **settings), playing.make(game, **settings)
    assert ours.action_meanings == theirs.action_meanings
    actions = random_actions(ours, 220)
    ended = 0
    for (obs, *found), (expected_obs, *expected) in zip(
        play(ours, actions, seed=0), play(theirs, actions, seed=0), strict=True
    ):
        assert np.array_equal(obs[:, -1], expected_obs[:, -1])
        if not found:
            continue
        *arrays, infos = found
        *expected_arrays, expected_infos = expected
        for one, other in zip(arrays, expected_arrays, strict=True):
            assert one.dtype == other.dtype
            assert np.array_equal(one, other)
        assert set(infos) == set(expected_infos)
        for key in set(infos) - {"final_obs"}:
            assert np.array_equal(infos[key], expected_infos[key]), key
        if "final_obs" in infos:
            last = infos["_final_obs"]
            ended += int(last.sum())
            # Of a game cut off at its limit ALE has not played all four frames of the last step.
            newest = last & arrays[1]
            assert np.array_equal(infos["final_obs"][newest, -1], expected_infos["final_obs"][newest, -1])
            assert np.array_equal(infos["final_obs"][last, -2], expected_infos["final_obs"][last, -2])
    assert ended >= 2


def test_a_lost_life_is_told_and_the_game_goes_on(breakout):
    _, moments = breakout
    lost, over, lives = np.zeros(2, int), np.zeros(2, int), np.full(2, 5)
    for before, (obs, _, terminated, truncated, infos) in pairwise(moments):
        assert not truncated.any()
        lost += infos["life_lost"]
        for n in range(2):
            if terminated[n]:
                assert (lives[n], infos["lives"][n]) == (1, 5)
                over[n] += 1
                assert (obs[n] == obs[n, 0]).all()  # a new game: its first picture four times
                assert np.array_equal(infos["final_obs"][n, :3], before[0][n, 1:])
            else:
                assert lives[n] - infos["lives"][n] == infos["life_lost"][n]
                assert np.array_equal(obs[n, :3], before[0][n, 1:])
        lives = infos["lives"]
    assert (over >= 2).all()
    assert (lost >= 4 * over).all()


def test_what_was_handed_out_is_not_written_to_again():
    envs = make(num_envs=2, max_frames=40)
    kept = play(envs, random_actions(envs, 35), seed=3)
    copies = [tuple(part.copy() for part in moment) for moment in kept]
    for row in random_actions(envs, 35, seed=1):
        envs.step(row)
    envs.reset(options={"reset_mask": np.array([True, False])})
    assert same(kept, copies)


@pytest.mark.parametrize("game", ["Breakout", "Gopher"])
def test_a_game_that_waits_for_fire_goes_on_with_it_and_never_without(game):
    waited = {}
    for fire in (True, False):
        envs = make(game, fire_after_life_loss=fire, no_ops=0)
        envs.reset(seed=0)
        actions = random_actions(envs, 3000, seed=1)
        if game == "Breakout":
            actions[:] = NOOP  # FIRE held down while the life is lost would serve the next ball
        lives = next(infos["lives"][0] for row in actions if (infos := envs.step(row)[4])["life_lost"][0])
        waited[fire] = 0
        while waited[fire] < 450:
            _, _, terminated, _, infos = envs.step(np.array([NOOP]))
            waited[fire] += 1
            if terminated[0] or infos["lives"][0] < lives:
                break
    assert waited[True] < 450
    assert waited[False] == 450


def test_a_game_that_ends_with_the_last_step_of_its_time_has_ended():
    # EnvPool itself calls it cut off, and a learner would bootstrap behind the end.
    endless = make("Breakout", max_frames=4_000)
    actions = random_actions(endless, 600)
    moments = play(endless, actions, seed=5)[1:]
    length = next(t for t, moment in enumerate(moments, 1) if moment[2].any())
    _, _, terminated, truncated, _ = play(make(max_frames=4 * length), actions[:length], seed=5)[-1]
    assert (terminated.tolist(), truncated.tolist()) == ([True], [False])
    _, _, terminated, truncated, _ = play(make(max_frames=4 * length - 4), actions[: length - 1], seed=5)[-1]
    assert (terminated.tolist(), truncated.tolist()) == ([False], [True])


def test_a_time_limit_within_a_step_is_met_at_its_end():
    moments = play(make("Pong", max_frames=42), np.zeros((24, 1), np.int64), seed=0)[1:]
    assert [t for t, moment in enumerate(moments, 1) if moment[3].any()] == [11, 22]


def test_the_step_after_an_end_is_played_and_not_swallowed_by_a_reset():
    frames = {}
    for action in (2, 3):  # up and down
        moments = play(make("Pong", max_frames=40, no_ops=0), np.full((25, 1), action), seed=0)
        ends = [t for t, moment in enumerate(moments[1:], 1) if moment[3].any()]
        assert ends == [10, 20]  # a dead step after each end would shift the second
        frames[action] = [moments[t + 3][0][0, 3] for t in (0, *ends)]
    assert all(not np.array_equal(up, down) for up, down in zip(frames[2], frames[3], strict=True))
    for played in frames.values():
        assert np.array_equal(played[1], played[2])


def test_games_start_differently_because_of_no_ops_and_none_are_possible():
    starts = make(num_envs=5).reset(seed=1)[0][:, 3]
    assert len(np.unique(starts.reshape(5, -1), axis=0)) >= 3
    starts = make(num_envs=2, no_ops=0).reset(seed=1)[0][:, 3]  # handed on, a 0 would end the process
    assert len(np.unique(starts.reshape(2, -1), axis=0)) == 1
    starts = make("Freeway", num_envs=2, no_ops=0).reset(seed=1)[0][:, 3]  # no FIRE to press
    assert len(np.unique(starts.reshape(2, -1), axis=0)) == 1


def test_the_seed_decides_whatever_the_threads_and_whatever_was_played_before():
    one, other = make("Seaquest", 2, sticky=0.25), make("Seaquest", 2, sticky=0.25, threads=2)
    actions = random_actions(one, 60)
    play(one, random_actions(one, 57, seed=5), seed=8)
    assert same(play(one, actions, seed=4), play(other, actions, seed=4))
    assert not same(play(one, actions, seed=5), play(other, actions, seed=4))


def test_sticky_actions_repeat_what_was_done_before():
    plain, sticky = (make(sticky=sticky, no_ops=0, fire_after_life_loss=False) for sticky in (0.0, 0.25))
    actions = random_actions(plain, 60)
    assert not same(play(plain, actions, seed=4), play(sticky, actions, seed=4))


def test_neighbouring_seeds_share_no_game():
    envs = make(num_envs=4)
    one, other = envs.reset(seed=10)[0], envs.reset(seed=11)[0]
    assert sum(np.array_equal(one[n + 1], other[n]) for n in range(3)) < 3


def test_only_the_masked_games_start_anew_and_seeds_are_for_all():
    envs = make(num_envs=4, lanes=2)
    before = play(envs, random_actions(envs, 30), seed=2)[-1]
    mask = np.array([False, False, False, True])
    obs, _ = envs.reset(options={"reset_mask": mask})
    assert np.array_equal(obs[:3], before[0][:3])
    assert not np.array_equal(obs[3], before[0][3])
    with pytest.raises(ConfigError, match="EnvPool seeds all its games or none"):
        envs.reset(seed=1, options={"reset_mask": mask})


def test_the_games_are_the_same_in_any_number_of_lanes():
    settings = {"num_envs": 3, "max_frames": 100, "sticky": 0.25}
    one, other = make(**settings), make(**settings, lanes=2)
    actions = random_actions(one, 80)
    for x, y in zip(play(one, actions, seed=1), play(other, actions, seed=1), strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(x[:4], y[:4], strict=True))


def test_the_screen_shows_the_game_that_is_played():
    settings = {"render_mode": "rgb_array", "max_frames": 100, "no_ops": 0}
    ours, theirs = make(**settings), playing.make(**settings)
    ours.reset(seed=0), theirs.reset(seed=0)
    for row in random_actions(ours, 60):
        ours.step(row), theirs.step(row)
        assert np.array_equal(ours.render(), theirs.render())
    assert ours.render()[0].shape == (210, 160, 3)


def test_stored_frames_stack_up_to_the_observations():
    rollouts = collect(replace(BREAKOUT, kwargs=BREAKOUT.kwargs | {"backend": "envpool"}), steps=70, rounds=6, seed=5)
    opr = OptimisticRegularizer(OPRConfig(percentile=0.0, return_window=1, retention="fifo"), frame_stack=4)
    for rollout, _ in rollouts:
        assert rollout.valid is None  # no dead steps
        opr.observe(rollout)
    expected, obs = episodes(column(rollouts, "episode_ends")), column(rollouts, "obs")
    assert len(opr.memory.episodes) == len(expected) >= 2
    for stored, (n, start, end) in zip(opr.memory.episodes, expected, strict=True):
        assert opr.memory.at(stored.rows, opr.memory._stacked(stored.frames)).obs.equal(obs[start : end + 1, n])


def test_lanes_on_envpool_fill_the_same_rollouts_whoever_is_ready_first():
    config = replace(BREAKOUT, num_envs=4, kwargs=BREAKOUT.kwargs | {"backend": "envpool", "lanes": 2})

    def rollout():
        envs = make_envs(replace(config, kwargs=config.kwargs | {"max_frames": 60}), seed=0)
        collector = LaneCollector(envs, config, RandomPlayer(4), 40, torch.Generator().manual_seed(0))
        collector.restart(1)
        found = collector.collect()
        envs.close()
        return found

    one, other = rollout(), rollout()
    assert one.truncated.any()
    for name in ("obs", "actions", "raw_rewards", "dones", "final_obs"):
        assert getattr(one, name).equal(getattr(other, name)), name


def test_an_interrupted_step_does_not_keep_the_games_from_closing():
    envs = make(num_envs=2)
    envs.reset(seed=0)
    envs.begin(np.arange(2), np.zeros(2, np.int64))
    emulators = weakref.ref(envs.players.emulators[0])
    for _ in range(2):  # a second time there is nothing to let go of
        envs.close()
        assert envs.players.emulators == []
        assert emulators() is None  # and with them their threads
    with pytest.raises(ClosedEnvironmentError, match="Breakout was closed"):
        envs.step(np.zeros(2, np.int64))


def test_a_run_says_what_differs_and_resumes_exactly(tmp_path, monkeypatch, capfd):
    config = replace(ATARI, env=replace(ATARI.env, kwargs=ATARI.env.kwargs | {"backend": "envpool"}), total_steps=192)
    whole = train(config, tmp_path / "whole", progress=True)
    said = capfd.readouterr().err
    assert "backend=envpool" in said
    assert "EnvPool: games start with at least one frame without action and FIRE after them" in said
    assert "A.L.E" not in said
    update, calls = Trainer.one_update, []

    def stop_once(self):
        calls.append(self.update)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return update(self)

    monkeypatch.setattr(Trainer, "one_update", stop_once)
    with pytest.raises(KeyboardInterrupt):
        train(config, tmp_path / "cut", progress=False)
    assert resume(tmp_path / "cut", progress=False)["final_evaluation"] == whole["final_evaluation"]
    assert lines(tmp_path / "cut") == lines(tmp_path / "whole")


def test_bad_names_and_missing_roms_are_one_line(tmp_path, monkeypatch):
    with pytest.raises(UnknownName, match=r"^no Atari back-end 'envpol'; did you mean 'envpool'\?$"):
        playing.make(backend="envpol")
    folder = Path(pool.import_envpool().atari.registration.atari_rom_path)
    shutil.copy(folder / "pong.bin", tmp_path)
    monkeypatch.setattr(envpool.atari.registration, "atari_rom_path", str(tmp_path))
    make("Pong")
    with pytest.raises(OptimistError, match=r"^cannot load EnvPool's ROM of Qbert: .*reinstall envpool-assets$"):
        make("Qbert")
    (tmp_path / "pong.bin").write_bytes(b"damaged")
    with pytest.raises(OptimistError, match=r"^EnvPool's ROM of Pong is not the one ale-py has: .*pong\.bin; "):
        make("Pong")


def test_the_missing_extra_is_named(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(sys.modules, "envpool", None)
    config = EnvConfig(id="optimist/Atari-v0", kwargs={"game": "Pong", "sticky": 0.0, "backend": "envpool"})
    message = "Atari's back-end 'envpool' needs EnvPool: pip install 'optimist[envpool]'"
    with pytest.raises(MissingExtra) as caught:
        make_envs(config)
    assert str(caught.value) == message
    assert not pool.is_installed()
    assert main(["train", "atari/ppo", "--env.kwargs.backend", "envpool", "--out", str(tmp_path / "run")]) == 2
    assert capsys.readouterr().err == f"optimist: error: {message}\n"


@pytest.mark.parametrize("installed", [True, False])
def test_the_bench_measures_both_backends_where_both_are_installed(monkeypatch, installed):
    speeds = {
        "8 games, 1 lane, threads": 80.0,
        "8 games, threads": 100.0,
        "64 games, threads": 110.0,
        "8 games, processes": 125.0,
        "64 games, processes": 130.0,
    }
    pooled = {"8 games, 1 lane, threads, envpool": 150.0, "64 games, 32 at a time, envpool": 200.0}
    measured = speeds | pooled if installed else speeds
    monkeypatch.setattr(bench_atari, "SIZES", (8, 64))
    monkeypatch.setattr(bench, "emulator_speed", lambda game, division, seconds: measured[division.name])
    monkeypatch.setattr("optimist.training.speed.sustained_speed", lambda *_: {"steps_per_second": 50.0})
    monkeypatch.setattr(pool, "is_installed", lambda: installed)
    result = bench_atari.measure("Pong", "cpu", 0.1, ["atari/ppo"])
    assert result["emulator"] == measured
    figures = result["training"]["atari/ppo"]
    assert figures["share_of_emulator_at_this_size"] == 0.4  # of its own back-end
    assert figures["share_of_emulator_in_threads"] == 0.5
    assert figures["share_of_emulator_at_its_best"] == 50 / (200 if installed else 130)


def test_envpool_can_be_measured(monkeypatch):
    monkeypatch.setattr(bench, "WARM_UP_STEPS", bench.ROUND)
    for division in (
        bench.Division(2, lanes=2, backend="envpool"),
        bench.Division(2, backend="envpool", ready_first=True),
    ):
        assert bench.emulator_speed("Pong", division, 0.01) > 10
