"""The traps of Atari back-ends, one by one, on the real emulator."""

from __future__ import annotations

from itertools import chain, pairwise

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, VectorEnv

from optimist.config import EnvConfig
from optimist.envs.atari.vector import lives_lost
from optimist.envs.make import can_save_state, make_envs
from tests.envs.atari.playing import make, play, random_actions, same

NOOP, FIRE = 0, 1


@pytest.fixture(scope="module")
def breakout():
    """Two games of Breakout in which nothing is ever pressed: 400 steps, from the reset on."""
    envs = make(num_envs=2)
    return envs, play(envs, np.zeros((400, 2), np.int64), seed=3)


def test_observations_are_four_grey_frames_oldest_first(breakout):
    envs, moments = breakout
    first = moments[0][0]
    assert (first.shape, first.dtype) == ((2, 4, 84, 84), np.uint8)
    assert envs.single_observation_space.shape == (4, 84, 84)
    assert first[:, 3].any(axis=(1, 2)).all()
    assert not first[:, :3].any()  # there are no frames before the first
    assert envs.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    assert not can_save_state(envs)


def test_a_lost_life_is_told_and_the_game_goes_on(breakout):
    _, moments = breakout
    lost, over, lives = np.zeros(2, int), np.zeros(2, int), np.full(2, 5)
    for before, (obs, _, terminated, truncated, infos) in pairwise(moments):
        assert not truncated.any()
        lost += infos["life_lost"]
        assert not (infos["life_lost"] & terminated).any()
        for n in range(2):
            if terminated[n]:
                assert (lives[n], infos["lives"][n]) == (1, 5)  # the last life, and those of the new game
                over[n] += 1
                assert not obs[n, :3].any()
                assert np.array_equal(infos["final_obs"][n, :3], before[0][n, 1:])
                assert infos["_final_obs"][n]
            else:
                assert lives[n] - infos["lives"][n] == infos["life_lost"][n]
                assert np.array_equal(obs[n, :3], before[0][n, 1:])  # the same game, one frame on
        lives = infos["lives"]
        assert ("final_obs" in infos) == terminated.any()
    assert (over >= 2).all()
    assert (lost >= 4 * over).all()  # four of the five lives end nothing


def test_lost_lives_can_be_left_to_the_game():
    envs = make(life_loss_ends=False)
    envs.reset(seed=3)
    lives = [5]
    for _ in range(60):
        infos = envs.step(np.array([NOOP]))[4]
        assert "life_lost" not in infos
        lives.append(int(infos["lives"][0]))
    assert min(lives) < 5


def test_fire_is_pressed_once_after_each_lost_life_and_the_learner_is_told(breakout):
    _, moments = breakout
    steps = moments[1:]
    for (_, _, _, _, before), (_, _, _, _, infos) in pairwise(steps):
        pressed = infos.get("_executed", np.zeros(2, bool))
        assert pressed.tolist() == before["life_lost"].tolist()
        if pressed.any():
            assert (infos["executed"][pressed] == FIRE).all()
            assert (infos["executed"][~pressed] == NOOP).all()


def test_a_game_that_starts_anew_no_longer_waits_for_fire():
    envs = make(num_envs=2, no_ops=0)
    envs.reset(seed=3)
    lost = next(lost for _ in range(60) if (lost := envs.step(np.array([NOOP, NOOP]))[4]["life_lost"]).any())
    assert lost.all()  # the same game twice
    envs.reset(options={"reset_mask": np.array([True, False])})
    assert envs.step(np.array([NOOP, NOOP]))[4]["_executed"].tolist() == [False, True]


@pytest.mark.parametrize("game", ["Breakout", "Gopher", "NameThisGame"])
def test_a_game_that_waits_for_fire_goes_on_with_it_and_never_without(game):
    steps_to_next_loss = {}
    for fire in (True, False):
        envs = make(game, fire_after_life_loss=fire, no_ops=0)
        envs.reset(seed=0)
        actions = random_actions(envs, 3000, seed=1)
        if game == "Breakout":
            actions[:] = NOOP  # FIRE held down while the life is lost would serve the next ball
        lives = next(infos["lives"][0] for row in actions if (infos := envs.step(row)[4])["life_lost"][0])
        waited = 0
        while waited < 450:  # from here on nobody touches the joystick
            _, _, terminated, _, infos = envs.step(np.array([NOOP]))
            waited += 1
            if terminated[0] or infos["lives"][0] < lives:
                break
        steps_to_next_loss[fire] = waited
    assert steps_to_next_loss[True] < 450
    assert steps_to_next_loss[False] == 450


@pytest.mark.parametrize(("sticky", "pressed"), [(0.0, False), (0.25, True)])
def test_breakout_begins_although_the_console_may_swallow_the_first_fire(sticky, pressed):
    envs = make(num_envs=24, sticky=sticky)
    envs.reset(seed=0)
    first, *rest = (envs.step(np.zeros(24, np.int64))[4] for _ in range(120))
    assert first.get("_executed", np.zeros(24, bool)).all() == pressed
    fewest = np.min([infos["lives"] for infos in rest], axis=0)
    assert (fewest < 5).sum() >= 23  # four frames of FIRE are swallowed once in 256 times


def test_name_this_game_begins_by_itself():
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
def test_a_shot_that_is_the_players_own_is_left_to_him(game):
    """Plunger, serve and throw: FIRE is the move to be learnt, when and from where. Without it nothing is scored."""
    envs = make(game, num_envs=2)
    envs.reset(seed=0)
    steps = [envs.step(np.zeros(2, np.int64)) for _ in range(300)]
    assert not any("executed" in infos or rewards.any() or ended.any() for _, rewards, ended, _, infos in steps)


def test_no_life_is_lost_where_none_is_left_or_the_game_ends():
    """By hand: a life; the last one, some frames before the end; the end; a new game; nothing."""
    before, lives = np.array([3, 1, 1, 5, 2]), np.array([2, 0, 0, 3, 2])
    ended = np.array([False, False, True, True, False])
    assert lives_lost(before, lives, ended).tolist() == [True, False, False, False, False]


def test_rewards_are_the_games_own():
    envs = make("Qbert", num_envs=2)
    rewards = np.stack([moment[1] for moment in play(envs, random_actions(envs, 250), seed=0)[1:]])
    assert rewards.dtype == np.float64
    assert rewards.max() >= 25.0


def test_the_time_limit_counts_frames_behind_the_no_ops_and_is_no_end_of_the_game():
    envs = make("Pong", num_envs=2, max_frames=400)
    for step, (_, _, terminated, truncated, infos) in enumerate(play(envs, random_actions(envs, 250), seed=0)[1:], 1):
        assert not terminated.any()
        assert truncated.tolist() == [step % 100 == 0] * 2
        assert ("final_obs" in infos) == (step % 100 == 0)
        # A dead step after each end would shift all later ones.


def test_the_first_action_of_a_game_is_played():
    # After each end the very next action moves the paddle: nothing is swallowed by a reset.
    up, down = 2, 3
    frames = {}
    for action in (up, down):
        envs = make("Pong", max_frames=40, no_ops=0)
        moments = play(envs, np.full((25, 1), action), seed=0)
        ends = [t for t, moment in enumerate(moments[1:], 1) if moment[3].any()]
        assert ends == [10, 20]
        frames[action] = [moments[t + 3][0][0, 3] for t in (0, *ends)]
    assert all(not np.array_equal(a, b) for a, b in zip(frames[up], frames[down], strict=True))
    for played in frames.values():
        assert np.array_equal(played[1], played[2])


def test_games_start_differently_because_of_no_ops():
    starts = make("Breakout", num_envs=6).reset(seed=1)[0][:, 3]
    assert len(np.unique(starts.reshape(6, -1), axis=0)) >= 4
    starts = make("Breakout", num_envs=3, no_ops=0).reset(seed=1)[0][:, 3]
    assert len(np.unique(starts.reshape(3, -1), axis=0)) == 1
    starts = make("Freeway", num_envs=8, no_ops=1).reset(seed=0)[0][:, 3]  # the limit itself is drawn, too
    assert len(np.unique(starts.reshape(8, -1), axis=0)) == 2


@pytest.mark.parametrize("sticky", [0.0, 0.25])
def test_the_seed_decides_whatever_the_threads_and_whatever_was_played_before(sticky):
    one, other = make("Seaquest", 2, sticky), make("Seaquest", 2, sticky, threads=2)
    actions = random_actions(one, 150)
    play(one, random_actions(one, 57, seed=5), seed=8)  # something else first: a checkpoint restarts in the middle
    assert same(play(one, actions, seed=4), play(other, actions, seed=4))
    assert not same(play(one, actions, seed=5), play(other, actions, seed=4))


def test_sticky_actions_repeat_what_was_done_before():
    plain, sticky = (make(sticky=sticky, no_ops=0, fire_after_life_loss=False) for sticky in (0.0, 0.25))
    actions = random_actions(plain, 60)
    assert not same(play(plain, actions, seed=4), play(sticky, actions, seed=4))
    held = np.zeros((60, 1), np.int64)  # repeating the same action changes nothing
    assert same(play(plain, held[:12], seed=4), play(sticky, held[:12], seed=4))


def test_neighbouring_seeds_share_no_game():
    envs = make("Breakout", num_envs=4)
    one, other = envs.reset(seed=10)[0], envs.reset(seed=11)[0]
    # With ALE's own seeds s, s + 1, … three of the four games would be those of the seed before.
    assert not any(np.array_equal(one[n + 1], other[n]) for n in range(3))


def test_only_the_masked_games_start_anew():
    envs = make("Breakout", num_envs=2)
    before = play(envs, random_actions(envs, 30), seed=2)[-1]
    obs, _ = envs.reset(options={"reset_mask": np.array([False, True])})
    assert np.array_equal(obs[0], before[0][0])
    assert not obs[1, :3].any()


def test_half_of_a_lane_that_was_asked_to_play_is_forgotten():
    one, other = make("Breakout", num_envs=2), make("Breakout", num_envs=2)
    other.reset(seed=0)
    other.begin(np.array([0]), np.zeros(1, np.int64))  # waits for the other game's move
    other.abandon()
    actions = random_actions(one, 5)
    assert same(play(one, actions, seed=1), play(other, actions, seed=1))


def test_lives_are_told_from_the_start(breakout):
    assert make("Breakout", num_envs=2).reset(seed=0)[1]["lives"].tolist() == [5, 5]
    assert make("Pong").reset(seed=0)[1]["lives"].tolist() == [0]


def test_last_pictures_stay_as_they_are():
    envs = make("Breakout", num_envs=2, max_frames=40)  # games of ten steps
    ends = [
        infos["final_obs"] for *_, infos in play(envs, random_actions(envs, 20), seed=0)[1:] if "final_obs" in infos
    ]
    assert len(ends) == 2
    assert not np.array_equal(ends[0], ends[1])


def test_the_games_are_the_same_in_any_number_of_lanes():
    # Games of 25 steps, so that lanes reset and lose lives at moments of their own.
    settings = {"num_envs": 5, "max_frames": 100, "sticky": 0.25}
    one, other = make("Breakout", **settings), make("Breakout", **settings, lanes=3)
    assert [emulators.num_envs for emulators in other.players.emulators] == [1, 2, 2]
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


def test_a_masked_reset_leaves_whole_lanes_alone():
    envs = make("Breakout", num_envs=4, lanes=2)
    before = play(envs, random_actions(envs, 30), seed=2)[-1]
    obs, _ = envs.reset(options={"reset_mask": np.array([False, False, False, True])})
    assert np.array_equal(obs[:3], before[0][:3])
    assert not obs[3, :3].any()


def test_there_is_at_most_one_lane_a_game():
    assert len(make("Breakout", num_envs=2, lanes=8).players.emulators) == 2


def test_the_screen_shows_the_game_that_is_played():
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


def test_other_vector_environments_are_left_alone():
    make("Pong")
    assert VectorEnv.metadata == {}  # where ALE would write its autoreset mode, for all environments to inherit


def test_the_learner_gets_it_through_its_config():
    config = EnvConfig(id="optimist/Atari-v0", num_envs=1, kwargs={"game": "Pong", "sticky": 0.25}, frame_stack=4)
    envs = make_envs(config, seed=0)
    assert envs.reset(seed=0)[0].shape == (1, 4, 84, 84)
    envs.close()
