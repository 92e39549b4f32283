"""AtariVectorEnv on the real emulator: the protocol, and the pitfalls of Atari environments."""

from __future__ import annotations

import weakref
from itertools import chain, pairwise

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, VectorEnv

from optimist.config import EnvConfig
from optimist.envs.atari.buffers import lives_lost
from optimist.envs.make import make_envs
from optimist.envs.wrappers import can_save_state
from optimist.errors import CheckpointError
from tests.envs.atari.helpers import make, play, random_actions, same

NOOP, FIRE = 0, 1


@pytest.fixture(scope="module")
def breakout():
    """Two environments of Breakout with no action but NOOP: 400 steps after a reset."""
    envs = make(num_envs=2)
    return envs, play(envs, np.zeros((400, 2), np.int64), seed=3)


def test_observations_are_four_grey_frames_oldest_first(breakout):
    envs, results = breakout
    first = results[0][0]
    assert (first.shape, first.dtype) == ((2, 4, 84, 84), np.uint8)
    assert envs.single_observation_space.shape == (4, 84, 84)
    assert first[:, 3].any(axis=(1, 2)).all()
    assert not first[:, :3].any()  # no frames before the first
    assert envs.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    assert can_save_state(envs)


def test_lost_life_is_reported_and_the_episode_continues(breakout):
    _, results = breakout
    lost, over, lives = np.zeros(2, int), np.zeros(2, int), np.full(2, 5)
    for before, (obs, _, terminated, truncated, infos) in pairwise(results):
        assert not truncated.any()
        lost += infos["life_lost"]
        assert not (infos["life_lost"] & terminated).any()
        for n in range(2):
            if terminated[n]:
                assert (lives[n], infos["lives"][n]) == (1, 5)  # the last life, and those of the new episode
                over[n] += 1
                assert not obs[n, :3].any()
                assert np.array_equal(infos["final_obs"][n, :3], before[0][n, 1:])
                assert infos["_final_obs"][n]
            else:
                assert lives[n] - infos["lives"][n] == infos["life_lost"][n]
                assert np.array_equal(obs[n, :3], before[0][n, 1:])  # the same episode, one frame later
        lives = infos["lives"]
        assert ("final_obs" in infos) == terminated.any()
    assert (over >= 2).all()
    assert (lost >= 4 * over).all()  # four of the five lives end nothing


def test_life_losses_are_not_reported_if_disabled():
    envs = make(life_loss_ends=False)
    envs.reset(seed=3)
    lives = [5]
    for _ in range(60):
        infos = envs.step(np.array([NOOP]))[4]
        assert "life_lost" not in infos
        lives.append(int(infos["lives"][0]))
    assert min(lives) < 5


def test_fire_is_pressed_once_after_each_lost_life_and_reported(breakout):
    _, results = breakout
    steps = results[1:]
    for (_, _, _, _, before), (_, _, _, _, infos) in pairwise(steps):
        pressed = infos.get("_executed", np.zeros(2, bool))
        assert pressed.tolist() == before["life_lost"].tolist()
        if pressed.any():
            assert (infos["executed"][pressed] == FIRE).all()
            assert (infos["executed"][~pressed] == NOOP).all()


def test_reset_cancels_a_pending_fire():
    envs = make(num_envs=2, no_ops=0)
    envs.reset(seed=3)
    lost = next(lost for _ in range(60) if (lost := envs.step(np.array([NOOP, NOOP]))[4]["life_lost"]).any())
    assert lost.all()  # the same episode twice
    envs.reset(options={"reset_mask": np.array([True, False])})
    assert envs.step(np.array([NOOP, NOOP]))[4]["_executed"].tolist() == [False, True]


@pytest.mark.parametrize("game", ["Breakout", "Gopher", "NameThisGame"])
def test_game_that_waits_for_fire_continues_with_it_and_never_without(game):
    steps_to_next_loss = {}
    for fire in (True, False):
        envs = make(game, fire_after_life_loss=fire, no_ops=0)
        envs.reset(seed=0)
        actions = random_actions(envs, 3000, seed=1)
        if game == "Breakout":
            actions[:] = NOOP  # FIRE held down while the life is lost would serve the next ball
        lives = next(infos["lives"][0] for row in actions if (infos := envs.step(row)[4])["life_lost"][0])
        waited = 0
        while waited < 450:  # without any action
            _, _, terminated, _, infos = envs.step(np.array([NOOP]))
            waited += 1
            if terminated[0] or infos["lives"][0] < lives:
                break
        steps_to_next_loss[fire] = waited
    assert steps_to_next_loss[True] < 450
    assert steps_to_next_loss[False] == 450


@pytest.mark.parametrize(("sticky", "pressed"), [(0.0, False), (0.25, True)])
def test_breakout_starts_with_sticky_actions(sticky, pressed):
    envs = make(num_envs=24, sticky=sticky)
    envs.reset(seed=0)
    first, *rest = (envs.step(np.zeros(24, np.int64))[4] for _ in range(120))
    assert first.get("_executed", np.zeros(24, bool)).all() == pressed
    fewest = np.min([infos["lives"] for infos in rest], axis=0)
    assert (fewest < 5).sum() >= 23  # four frames of FIRE are suppressed once in 256 times


def test_name_this_game_starts_by_itself():
    final = {}
    for fire in (True, False):
        for move in ("LEFT", "RIGHT"):
            envs = make("NameThisGame", num_envs=4, fire_after_life_loss=fire)
            envs.reset(seed=0)
            action = np.full(4, envs.action_meanings.index(move))
            final[fire, move] = [envs.step(action)[0] for _ in range(160)][-1]
    assert (final[True, "LEFT"] != final[True, "RIGHT"]).any(axis=(1, 2, 3)).all()
    assert (final[False, "LEFT"] == final[False, "RIGHT"]).all()


@pytest.mark.parametrize("game", ["VideoPinball", "Tennis", "Bowling"])
def test_fire_that_the_agent_has_to_time_is_not_pressed(game):
    """Plunger, serve and throw: the agent has to learn when to press FIRE, and scores nothing without."""
    envs = make(game, num_envs=2)
    envs.reset(seed=0)
    steps = [envs.step(np.zeros(2, np.int64)) for _ in range(300)]
    assert not any("executed" in infos or rewards.any() or ended.any() for _, rewards, ended, _, infos in steps)


def test_no_life_is_lost_if_none_is_left_or_the_episode_ends():
    """By hand: a life; the last one, some frames before the end; the end; a new episode; nothing."""
    before, lives = np.array([3, 1, 1, 5, 2]), np.array([2, 0, 0, 3, 2])
    ended = np.array([False, False, True, True, False])
    assert lives_lost(before, lives, ended).tolist() == [True, False, False, False, False]


def test_rewards_are_raw():
    envs = make("Qbert", num_envs=2)
    rewards = np.stack([result[1] for result in play(envs, random_actions(envs, 250), seed=0)[1:]])
    assert rewards.dtype == np.float64
    assert rewards.max() >= 25.0


def test_time_limit_counts_frames_after_the_no_ops_and_truncates():
    envs = make("Pong", num_envs=2, max_frames=400)
    for step, (_, _, terminated, truncated, infos) in enumerate(play(envs, random_actions(envs, 250), seed=0)[1:], 1):
        assert not terminated.any()
        assert truncated.tolist() == [step % 100 == 0] * 2
        assert ("final_obs" in infos) == (step % 100 == 0)
        # A reset step after each end would shift all later ones.


def test_first_action_of_an_episode_is_executed():
    # After each end the next action moves the paddle: no action is lost in a reset.
    up, down = 2, 3
    frames = {}
    for action in (up, down):
        envs = make("Pong", max_frames=40, no_ops=0)
        results = play(envs, np.full((25, 1), action), seed=0)
        ends = [t for t, result in enumerate(results[1:], 1) if result[3].any()]
        assert ends == [10, 20]
        frames[action] = [results[t + 3][0][0, 3] for t in (0, *ends)]
    assert all(not np.array_equal(a, b) for a, b in zip(frames[up], frames[down], strict=True))
    for played in frames.values():
        assert np.array_equal(played[1], played[2])


def test_no_ops_make_episodes_start_differently():
    starts = make("Breakout", num_envs=6).reset(seed=1)[0][:, 3]
    assert len(np.unique(starts.reshape(6, -1), axis=0)) >= 4
    starts = make("Breakout", num_envs=3, no_ops=0).reset(seed=1)[0][:, 3]
    assert len(np.unique(starts.reshape(3, -1), axis=0)) == 1
    starts = make("Freeway", num_envs=8, no_ops=1).reset(seed=0)[0][:, 3]  # the limit itself is drawn, too
    assert len(np.unique(starts.reshape(8, -1), axis=0)) == 2


@pytest.mark.parametrize("sticky", [0.0, 0.25])
def test_results_depend_on_the_seed_and_not_on_earlier_episodes(sticky):
    one, other = make("Seaquest", 2, sticky), make("Seaquest", 2, sticky)
    actions = random_actions(one, 150)
    play(one, random_actions(one, 57, seed=5), seed=8)
    assert same(play(one, actions, seed=4), play(other, actions, seed=4))
    assert not same(play(one, actions, seed=5), play(other, actions, seed=4))


def test_sticky_actions_repeat_earlier_actions():
    plain, sticky = (make(sticky=sticky, no_ops=0, fire_after_life_loss=False) for sticky in (0.0, 0.25))
    actions = random_actions(plain, 60)
    assert not same(play(plain, actions, seed=4), play(sticky, actions, seed=4))
    held = np.zeros((60, 1), np.int64)  # repeating the same action changes nothing
    assert same(play(plain, held[:12], seed=4), play(sticky, held[:12], seed=4))


def test_consecutive_seeds_share_no_episode():
    envs = make("Breakout", num_envs=4)
    one, other = envs.reset(seed=10)[0], envs.reset(seed=11)[0]
    # With ALE's own seeds s, s + 1, … three of the four episodes would be those of the seed before.
    assert not any(np.array_equal(one[n + 1], other[n]) for n in range(3))


def test_masked_reset_leaves_other_slots_alone():
    envs = make("Breakout", num_envs=2)
    before = play(envs, random_actions(envs, 30), seed=2)[-1]
    obs, _ = envs.reset(options={"reset_mask": np.array([False, True])})
    assert np.array_equal(obs[0], before[0][0])
    assert not obs[1, :3].any()


def test_drain_discards_steps_that_were_not_received():
    one, other = make("Breakout", num_envs=2), make("Breakout", num_envs=2)
    other.reset(seed=0)
    other.send(np.array([0]), np.zeros(1, np.int64))
    other.drain()
    actions = random_actions(one, 5)
    assert same(play(one, actions, seed=1), play(other, actions, seed=1))


def test_reset_reports_lives(breakout):
    assert make("Breakout", num_envs=2).reset(seed=0)[1]["lives"].tolist() == [5, 5]
    assert make("Pong").reset(seed=0)[1]["lives"].tolist() == [0]


def test_final_observations_are_copies():
    envs = make("Breakout", num_envs=2, max_frames=40)  # episodes of ten steps
    ends = [
        infos["final_obs"] for *_, infos in play(envs, random_actions(envs, 20), seed=0)[1:] if "final_obs" in infos
    ]
    assert len(ends) == 2
    assert not np.array_equal(ends[0], ends[1])


def test_results_do_not_depend_on_the_number_of_workers():
    # Episodes of 25 steps, so that groups reset and lose lives at different steps.
    settings = {"num_envs": 5, "max_frames": 100, "sticky": 0.25}
    one, other = make("Breakout", **settings, num_workers=1), make("Breakout", **settings, num_workers=3)
    assert other.group_bounds == [0, 1, 3, 5]
    actions = random_actions(one, 120)
    expected = play(one, actions, seed=1)
    assert any("final_obs" in infos for *_, infos in expected[1:])
    for x, y in zip(expected, play(other, actions, seed=1), strict=True):
        assert np.array_equal(x[0], y[0])
        assert all(np.array_equal(a, b) for a, b in zip(x[1:4], y[1:4], strict=True))
        if len(x) > 1:
            assert np.array_equal(x[4]["life_lost"], y[4]["life_lost"])
            assert set(x[4]) == set(y[4])
            for key in ("final_obs", "executed"):
                mask = x[4].get(f"_{key}", np.zeros(5, bool))
                assert np.array_equal(mask, y[4].get(f"_{key}", np.zeros(5, bool)))
                assert not mask.any() or np.array_equal(x[4][key][mask], y[4][key][mask])


def test_masked_reset_leaves_other_groups_alone():
    envs = make("Breakout", num_envs=4, num_workers=2)
    before = play(envs, random_actions(envs, 30), seed=2)[-1]
    obs, _ = envs.reset(options={"reset_mask": np.array([False, False, False, True])})
    assert np.array_equal(obs[:3], before[0][:3])
    assert not obs[3, :3].any()


def test_number_of_workers_is_at_most_that_of_environments():
    assert make("Breakout", num_envs=2, num_workers=8).group_bounds == [0, 1, 2]


def test_rendered_screen_shows_the_observation():
    envs = make("Breakout", num_envs=2, render_mode="rgb_array")
    # The bottom of the screen holds the paddle: where it is on the screen, it is in the observation.
    for obs, *_ in chain([envs.reset(seed=3)], (envs.step(row) for row in random_actions(envs, 250))):
        screens = envs.render()
        for screen, seen in zip(screens, obs[:, 3], strict=True):
            assert (screen.shape, screen.dtype) == ((210, 160, 3), np.uint8)
            paddle = (screen[191, 8:152, 0] == 200).nonzero()[0]
            grey = (seen[76, 5:79] > 60).nonzero()[0]
            assert abs((np.median(paddle) + 8) * 84 / 160 - (np.median(grey) + 5)) < 2
    assert not np.array_equal(*screens)


def test_metadata_of_other_vector_environments_is_unchanged():
    make("Pong")
    assert VectorEnv.metadata == {}  # ALE would write its autoreset mode there


def test_environment_is_made_from_a_config():
    config = EnvConfig(id="optimist/Atari-v0", num_envs=1, kwargs={"game": "Pong", "sticky": 0.25}, frame_stack=4)
    envs = make_envs(config, seed=0)
    assert envs.reset(seed=0)[0].shape == (1, 4, 84, 84)
    envs.close()


def test_close_releases_the_emulators_during_a_step():
    envs = make("Breakout", num_envs=2)
    envs.reset(seed=0)
    envs.send(np.arange(2), np.zeros(2, np.int64))
    emulator = weakref.ref(envs.emulators.emulators[0])
    for _ in range(2):  # a second call does nothing
        envs.close()
        assert emulator() is None


@pytest.mark.parametrize("workers", [{}, {"worker_type": "processes", "num_workers": 2}])
def test_restored_environments_continue_as_if_nothing_had_happened(workers):
    """With a FIRE that is due after a lost life, and sticky actions."""
    settings = {"num_envs": 3, "sticky": 0.25, "max_frames": 900}
    envs, other = make("Breakout", **settings, **workers), make("Breakout", **settings)
    actions = random_actions(envs, 300)
    play(envs, actions[:33], seed=7)
    while not envs.step(np.zeros(3, np.int64))[4]["life_lost"].any():
        pass
    other.load_state_dict(envs.state_dict())
    assert same(play(envs, actions), play(other, actions))
    envs.load_state_dict(other.state_dict())
    assert same(play(envs, actions), play(other, actions))
    envs.close()


def test_a_state_of_another_emulator_is_an_error():
    envs = make("Pong")
    envs.reset(seed=0)
    with pytest.raises(CheckpointError, match=r"^the games were saved by ale-py==0\.1, expected ale-py="):
        envs.load_state_dict(envs.state_dict() | {"emulator": "ale-py==0.1"})
