"""A rollout begun before an update is the older policy's, whatever happens to the policy meanwhile."""

from __future__ import annotations

import copy
from dataclasses import fields
from threading import Event

import pytest
import torch
from torch import Tensor

from optimist.config import EnvConfig, NetworkConfig
from optimist.envs.make import make_envs
from optimist.networks.actor_critic import make_actor_critic
from optimist.rollout.collector import Collector
from optimist.rollout.lagged import LaggedCollector
from optimist.rollout.lanes import LaneCollector

CARTPOLE = EnvConfig(id="CartPole-v1", num_envs=3)
BREAKOUT = EnvConfig(
    id="optimist/Atari-v0",
    num_envs=2,
    kwargs={"game": "Breakout", "sticky": 0.0, "threads": 1, "max_frames": 40, "lanes": 2},
    clip_rewards=True,
    frame_stack=4,
)


def make(config=CARTPOLE, kind=Collector, steps=20):
    """Environments, a policy, and what makes a collector for it."""
    envs = make_envs(config, seed=0)
    torch.manual_seed(0)
    network = NetworkConfig(hidden=(8,), cnn_features=8)
    policy = make_actor_critic(envs.single_observation_space, envs.single_action_space, network)
    return policy, lambda acting: kind(envs, config, acting, steps, torch.Generator().manual_seed(0))


def columns(rollout):
    return {f.name: value for f in fields(rollout) if isinstance(value := getattr(rollout, f.name), Tensor)}


def assert_same(one, other):
    one, other = columns(one), columns(other)
    assert set(one) == set(other)
    for name, column in one.items():
        assert column.equal(other[name]), name


def change(policy):
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1)))


def test_a_rollout_begun_before_a_change_is_that_of_the_policy_before_it():
    policy, collector_for = make()
    lagged, plain = LaggedCollector(collector_for, policy), make()[1](copy.deepcopy(policy))
    lagged.restart(5), plain.restart(5)
    assert_same(lagged.collect(0.25), plain.collect(0.25))
    assert not lagged.underway
    lagged.begin()
    assert lagged.underway
    change(policy)
    older = lagged.collect(0.5)
    assert_same(older, plain.collect(0.5))  # actions, log π_old, V
    assert older.progress == 0.5
    assert lagged.finished == plain.finished
    change(plain.policy)
    assert_same(lagged.collect(), plain.collect())  # nothing was begun: the policy as it is
    lagged.close()


def test_collecting_goes_on_while_the_caller_does_something_else():
    policy, collector_for = make()
    lagged = LaggedCollector(collector_for, policy)
    lagged.restart(5)
    learnt, act = Event(), lagged.acting.act

    def act_once_learnt(obs, generator):
        assert learnt.wait(20)
        return act(obs, generator)

    lagged.acting.act = act_once_learnt
    lagged.begin()
    assert not lagged.pending.done()
    learnt.set()  # only the caller, while the rollout is being collected
    assert lagged.collect().obs.shape == (20, 3, 4)
    lagged.close()


def test_a_rollout_in_hand_is_not_overwritten_by_the_next():
    policy, collector_for = make(BREAKOUT, LaneCollector, steps=12)
    lagged = LaggedCollector(collector_for, policy)
    lagged.restart(3)
    first = lagged.collect()
    before = {name: column.clone() for name, column in columns(first).items()}
    lagged.begin()
    second = lagged.collect()
    assert not second.obs.equal(first.obs)
    assert all(column.equal(before[name]) for name, column in columns(first).items())
    assert first.truncated.any()  # games of ten steps
    lagged.close()


def test_what_goes_wrong_in_a_rollout_is_raised_where_it_is_asked_for():
    policy, collector_for = make()
    lagged = LaggedCollector(collector_for, policy)
    lagged.restart(5)

    def broken(obs, generator):
        raise ArithmeticError("no action today")

    lagged.acting.act = broken
    lagged.begin()
    with pytest.raises(ArithmeticError, match="no action today"):
        lagged.collect()
    assert not lagged.underway
    lagged.close()


def test_closing_waits_until_the_environments_are_no_longer_in_use():
    policy, collector_for = make()
    lagged = LaggedCollector(collector_for, policy)
    lagged.restart(5)
    lagged.begin()
    pending = lagged.pending
    lagged.close()
    assert pending.done()
    assert not lagged.underway


def test_to_a_plain_collector_beginning_and_closing_mean_nothing():
    policy, collector_for = make()
    told, untold = collector_for(policy), make()[1](policy)
    told.restart(5), untold.restart(5)
    told.begin()
    change(policy)
    assert not told.underway
    assert_same(told.collect(), untold.collect())  # of the policy as it is now
    told.close()
    assert_same(told.collect(), untold.collect())  # the environments are still open
