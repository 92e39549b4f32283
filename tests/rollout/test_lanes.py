"""Deciding lane by lane gives the rollouts of deciding for everybody at once."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
import torch
from torch import Tensor

from optimist.config import EnvConfig, NetworkConfig
from optimist.envs.atari.board import Board
from optimist.envs.make import make_envs
from optimist.networks.actor_critic import make_actor_critic
from optimist.rollout.collector import Collector
from optimist.rollout.lanes import LaneCollector, LaneColumns


def rollouts(kind, lanes=1, greedy=False, rounds=4, **settings):
    game = {"game": "Breakout", "sticky": 0.0, "threads": 1, "max_frames": 100, "lanes": lanes, **settings}
    config = EnvConfig(id="optimist/Atari-v0", num_envs=4, kwargs=game, clip_rewards=True, frame_stack=4)
    envs = make_envs(config, seed=0)
    torch.manual_seed(0)
    network = NetworkConfig(kind="nature_cnn", cnn_features=16)
    policy = make_actor_critic(envs.single_observation_space, envs.single_action_space, network)
    if greedy:
        policy.act = policy.act_on = lambda obs, _: policy.act_greedily(obs) * 0 + 3  # the paddle goes one way
    collector = kind(envs, config, policy, 16, torch.Generator().manual_seed(0))
    collector.restart(3)
    found = []
    for _ in range(rounds):
        rollout = collector.collect()
        columns = {f.name: getattr(rollout, f.name) for f in fields(rollout)}
        copies = {name: value.clone() for name, value in columns.items() if isinstance(value, Tensor)}
        found.append((copies, list(collector.finished), collector.state_dict()["returns"].tolist()))
    envs.close()
    return found


def assert_same(one, other):
    for (columns, finished, returns), (others, others_finished, others_returns) in zip(one, other, strict=True):
        assert set(columns) == set(others)
        for name, column in columns.items():
            torch.testing.assert_close(column, others[name], msg=name)
        assert finished == others_finished
        assert returns == others_returns


@pytest.mark.parametrize("division", [{"lanes": 1}, {"lanes": 2}, {"lanes": 3}, {"lanes": 2, "workers": "processes"}])
def test_lanes_are_the_plain_collector_where_actions_do_not_depend_on_chance(division):
    one, other = rollouts(Collector, greedy=True), rollouts(LaneCollector, greedy=True, **division)
    assert_same(one, other)
    assert any(finished for _, finished, _ in one)


@pytest.mark.parametrize("division", [{"lanes": 3}, {"lanes": 2, "workers": "processes"}, {"lanes": 0}])
def test_chances_are_those_of_a_games_step_however_games_are_divided(division):
    one = rollouts(LaneCollector)
    assert_same(one, rollouts(LaneCollector, **division))
    actions = torch.cat([columns["actions"] for columns, _, _ in one])
    assert len(actions.unique()) == 4
    assert not actions[:, 0].equal(actions[:, 1])
    assert not one[0][0]["actions"].equal(one[1][0]["actions"])  # fresh ones in every rollout


def test_a_lost_life_is_an_end_for_the_learner_unless_it_is_left_to_the_game():
    ends = {}
    for matters in (True, False):
        settings = {"max_frames": 400, "life_loss_ends": matters, "greedy": True}
        one, other = rollouts(Collector, 1, **settings), rollouts(LaneCollector, 2, **settings)
        assert_same(one, other)
        ends[matters] = sum(int(columns["dones"].sum()) for columns, _, _ in one)
    assert ends[True] > 0 == ends[False]  # lives were lost, and no game ended


def test_several_games_cut_off_within_a_rollout_have_their_own_last_pictures():
    """They decide what is bootstrapped there."""
    settings = {"max_frames": 24, "greedy": True}
    one, other = rollouts(Collector, 1, **settings), rollouts(LaneCollector, 2, **settings)
    assert_same(one, other)
    columns, _, _ = one[0]
    assert columns["dones"].sum(0).tolist() == [2, 2, 2, 2]  # two of each game within 16 steps
    assert len(columns["next_values"][columns["dones"]].unique()) > 2


def test_a_resumed_collector_goes_on_from_its_pictures():
    game = {"game": "Pong", "sticky": 0.0, "threads": 1, "lanes": 2}
    config = EnvConfig(id="optimist/Atari-v0", num_envs=2, kwargs=game, frame_stack=4)
    envs = make_envs(config, seed=0)
    network = NetworkConfig(kind="nature_cnn", cnn_features=16)
    policy = make_actor_critic(envs.single_observation_space, envs.single_action_space, network)
    collector = LaneCollector(envs, config, policy, 2, torch.Generator().manual_seed(0))
    collector.restart(3)
    state = collector.state_dict()
    state["obs"] = state["obs"].copy() + 1
    collector.load_state_dict(state)
    assert collector.collect().obs[0].numpy().tolist() == state["obs"].tolist()
    envs.close()


def make_collector(lanes, **settings):
    game = {"game": "Pong", "sticky": 0.0, "threads": 1, "lanes": lanes, **settings}
    config = EnvConfig(id="optimist/Atari-v0", num_envs=lanes, kwargs=game, frame_stack=4)
    envs = make_envs(config, seed=0)
    torch.manual_seed(0)
    network = NetworkConfig(kind="nature_cnn", cnn_features=16)
    policy = make_actor_critic(envs.single_observation_space, envs.single_action_space, network)
    collector = LaneCollector(envs, config, policy, 4, torch.Generator().manual_seed(0))
    collector.restart(3)
    return envs, policy, collector


def test_whoever_has_played_is_decided_for_while_others_still_play():
    envs, _, collector = make_collector(lanes=3, workers="processes")
    ask, arrived, order = collector.decider.ask, envs.unwrapped.players.arrived, []

    def noted(games, rows):
        order.extend(zip(games, rows // 3, strict=True))
        ask(games, rows)

    def late(unless=None):
        """The second game's step arrives once the others have made all theirs."""
        found = arrived(unless)
        if len(order) < 9 and 1 in found:
            envs.unwrapped.players.playing[1] = True
            found = found[found != 1]
            return found if len(found) else late(unless)
        return found

    collector.decider.ask = noted
    envs.unwrapped.players.arrived = late
    rollout = collector.collect()
    assert order[:3] == [(0, 0), (1, 0), (2, 0)]
    assert {game for game, _ in order[3:9]} == {0, 2}  # all that these two have left
    assert order[9:] == [(1, 1), (1, 2), (1, 3)]
    again = make_collector(lanes=3, workers="processes")
    assert rollout.actions.equal(again[2].collect().actions)
    for opened in (envs, again[0]):
        opened.close()


def test_those_with_the_fewest_steps_are_decided_for_first():
    envs, _, collector = make_collector(lanes=4)
    times = np.array([3, 1, 2, 1])
    assert collector._ready(np.ones(4, bool), times).tolist() == [1]
    assert collector._ready(np.array([True, False, True, False]), times).tolist() == [2]
    assert collector._ready(np.zeros(4, bool), times).tolist() == []
    collector.together, collector.at_once = False, 3  # as on a GPU
    assert collector._ready(np.ones(4, bool), times).tolist() == [1, 3, 2]
    assert collector._ready(np.array([True, False, True, False]), times).tolist() == [0, 2]
    envs.close()


@pytest.mark.parametrize("division", [{"lanes": 2}, {"lanes": 3, "workers": "processes"}])
def test_games_of_a_lane_may_be_decided_for_apart(division):
    """As on a GPU. Who cannot be played alone waits for the others."""
    expected = rollouts(LaneCollector, **division)

    class Apart(LaneCollector):
        def _ready(self, undecided, times):
            self.together = False
            return super()._ready(undecided, times)[:1]

    assert_same(expected, rollouts(Apart, **division))


def test_a_lane_that_fails_says_so_and_leaves_no_other_in_the_middle_of_a_step():
    envs, _, collector = make_collector(lanes=3)
    emulators = envs.unwrapped.players.emulators[1]
    healthy = emulators.recv

    def broken():
        healthy()
        raise OSError("the console is on fire")

    emulators.recv = broken
    with pytest.raises(OSError, match="on fire"):
        collector.collect()
    emulators.recv = healthy
    collector.restart(3)
    fresh = make_collector(lanes=3)
    assert collector.obs.tolist() == fresh[2].obs.tolist()
    collector.generator.manual_seed(0)
    assert collector.collect().obs.equal(fresh[2].collect().obs)
    for opened in (envs, fresh[0]):
        opened.close()


@pytest.mark.parametrize("workers", ["threads", "processes"])
def test_after_an_interrupt_nobody_is_in_the_middle_of_a_step(workers):
    envs, _, collector = make_collector(lanes=3, workers=workers)
    begin, begun = envs.unwrapped.begin, []

    def interrupted(games, actions):
        begun.append(games)
        found = begin(games, actions)
        if len(begun) == 2:
            raise KeyboardInterrupt
        return found

    envs.unwrapped.begin = interrupted
    with pytest.raises(KeyboardInterrupt):
        collector.collect()
    envs.unwrapped.begin = begin
    collector.restart(3)
    fresh = make_collector(lanes=3, workers=workers)
    assert collector.obs.tolist() == fresh[2].obs.tolist()
    assert collector.collect().obs.shape == fresh[2].collect().obs.shape
    for opened in (envs, fresh[0]):
        opened.close()


def test_while_the_learner_learns_games_are_prepared():
    envs, _, collector = make_collector(lanes=2, workers="processes")
    assert envs.unwrapped.players.unprepared.all()
    collector.collect()
    collector.begin()
    assert not envs.unwrapped.players.unprepared.any()
    envs.close()


def test_after_a_decision_that_came_to_nothing_others_follow():
    envs, policy, collector = make_collector(lanes=2)
    act_on = policy.act_on

    def interrupted(*_):
        raise KeyboardInterrupt

    policy.act_on = interrupted
    with pytest.raises(KeyboardInterrupt):
        collector.collect()
    policy.act_on = act_on
    collector.restart(3)
    collector.generator.manual_seed(0)
    fresh = make_collector(lanes=2)
    assert collector.collect().actions.equal(fresh[2].collect().actions)
    for opened in (envs, fresh[0]):
        opened.close()


def steps_by_hand(lives_before, **told):
    """The columns of one game after a rollout in which these steps were told."""
    steps = len(told["lives"])
    board, columns = Board.make(1, 4), LaneColumns(torch.zeros((steps, 1, 4, 84, 84), dtype=torch.uint8), lives_before)
    for t in range(steps):
        for name, values in told.items():
            board.told[name] = values[t]
        columns.note_step(np.array([t]), np.arange(1), board)
    columns.read(life_loss_ends=True)
    return columns


def test_a_life_lost_with_the_first_step_of_a_rollout_is_an_end():
    columns = steps_by_hand(np.array([3]), lives=[2, 2, 1])
    assert columns.life_lost[:, 0].tolist() == [True, False, True]


def test_a_game_that_is_over_when_its_time_is_up_is_over():
    columns = steps_by_hand(np.array([0]), lives=[0, 0], terminated=[True, False], truncated=[True, True])
    assert columns.terminated[:, 0].tolist() == [True, False]
    assert columns.truncated[:, 0].tolist() == [False, True]
    assert len(columns.final_obs) == 1


def test_lives_are_counted_from_those_of_the_beginning():
    envs, _, collector = make_collector(lanes=2, game="Breakout")
    collector.atari.lives[:] = 6  # one more than there are
    rollout = collector.collect()
    assert rollout.dones[0].tolist() == [True, True]
    assert not rollout.dones[1:].any()
    envs.close()
