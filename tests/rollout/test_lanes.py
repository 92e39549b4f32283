"""Deciding lane by lane gives the rollouts of deciding for everybody at once."""

from __future__ import annotations

import threading
from dataclasses import fields

import pytest
import torch
from torch import Tensor

from optimist.config import EnvConfig, NetworkConfig
from optimist.envs.make import make_envs
from optimist.networks.actor_critic import make_actor_critic
from optimist.rollout.collector import Collector
from optimist.rollout.lanes import LaneCollector


def rollouts(kind, lanes, greedy=False, rounds=4, **settings):
    game = {"game": "Breakout", "sticky": 0.0, "threads": 1, "max_frames": 100, "lanes": lanes, **settings}
    config = EnvConfig(id="optimist/Atari-v0", num_envs=4, kwargs=game, clip_rewards=True, frame_stack=4)
    envs = make_envs(config, seed=0)
    torch.manual_seed(0)
    network = NetworkConfig(kind="nature_cnn", cnn_features=16)
    policy = make_actor_critic(envs.single_observation_space, envs.single_action_space, network)
    if greedy:
        policy.act = lambda obs, generator: policy.act_greedily(obs) * 0 + 3  # the paddle goes one way
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


def test_one_lane_is_the_plain_collector():
    one, other = rollouts(Collector, 1), rollouts(LaneCollector, 1)
    assert_same(one, other)
    assert any(finished for _, finished, _ in one)


@pytest.mark.parametrize("lanes", [2, 3])
def test_several_lanes_play_the_same_games_where_actions_do_not_depend_on_chance(lanes):
    assert_same(rollouts(Collector, 1, greedy=True), rollouts(LaneCollector, lanes, greedy=True))


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


def make_collector(lanes):
    game = {"game": "Pong", "sticky": 0.0, "threads": 1, "lanes": lanes}
    config = EnvConfig(id="optimist/Atari-v0", num_envs=lanes, kwargs=game, frame_stack=4)
    envs = make_envs(config, seed=0)
    network = NetworkConfig(kind="nature_cnn", cnn_features=16)
    policy = make_actor_critic(envs.single_observation_space, envs.single_action_space, network)
    collector = LaneCollector(envs, config, policy, 4, torch.Generator().manual_seed(0))
    collector.restart(3)
    return envs, policy, collector


def test_lanes_are_decided_for_side_by_side():
    envs, policy, collector = make_collector(lanes=3)
    act, everybody = policy.act, threading.Barrier(3, timeout=30)

    def act_with_the_others(obs, generator):
        everybody.wait()  # breaks unless all three lanes are here at the same time
        return act(obs, generator)

    policy.act = act_with_the_others
    assert collector.collect().actions.shape == (4, 3)
    collector.close()
    envs.close()


def test_a_lane_that_fails_says_so_and_keeps_no_other_waiting():
    before = set(threading.enumerate())
    envs, _, collector = make_collector(lanes=3)

    def broken():
        raise OSError("the console is on fire")

    collector.lanes[1].receive_unread = broken
    with pytest.raises(OSError, match="on fire"):
        collector.collect()
    collector.close()
    for thread in set(threading.enumerate()) - before:
        thread.join(10)
        assert not thread.is_alive(), thread.name
    envs.close()
