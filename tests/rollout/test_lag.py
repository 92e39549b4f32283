"""LaggedCollector: a rollout started before an update is collected with the policy before that update."""

from __future__ import annotations

import copy
from dataclasses import fields
from threading import Event

import pytest
import torch
from torch import Tensor

from optimist.config import EnvConfig, NetworkConfig
from optimist.envs.atari.collector import AtariCollector
from optimist.envs.make import make_envs
from optimist.networks.actor_critic import make_actor_critic
from optimist.rollout.collector import Collector
from optimist.rollout.lag import LaggedCollector

CARTPOLE = EnvConfig(id="CartPole-v1", num_envs=3)
BREAKOUT = EnvConfig(
    id="optimist/Atari-v0",
    num_envs=2,
    kwargs={
        "game": "Breakout",
        "sticky": 0.0,
        "emulator": "ale",
        "worker_type": "none",
        "max_frames": 40,
        "num_workers": 2,
    },
    clip_rewards=True,
    frame_stack=4,
)


def make(config=CARTPOLE, kind=Collector, steps=20):
    """A policy, and a function that creates the collector for a copy of it."""
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


def test_a_rollout_started_before_an_update_uses_the_policy_before_it():
    policy, collector_for = make()
    lagged, plain = LaggedCollector(collector_for, policy), make()[1](copy.deepcopy(policy))
    lagged.restart(5), plain.restart(5)
    assert_same(lagged.collect(0.25), plain.collect(0.25))
    assert not lagged.collecting
    lagged.on_update_start()
    assert lagged.collecting
    change(policy)
    older = lagged.collect(0.5)
    assert_same(older, plain.collect(0.5))  # actions, log π_old, V
    assert older.progress == 0.5
    assert lagged.finished == plain.finished
    change(plain.policy)
    assert_same(lagged.collect(), plain.collect())  # no rollout was started: the current policy
    lagged.close()


def test_a_rollout_is_collected_while_the_caller_continues():
    policy, collector_for = make()
    lagged = LaggedCollector(collector_for, policy)
    lagged.restart(5)
    updated, act = Event(), lagged.acting.act

    def act_after_the_update(obs, generator):
        assert updated.wait(20)
        return act(obs, generator)

    lagged.acting.act = act_after_the_update
    lagged.on_update_start()
    assert not lagged.pending.done()
    updated.set()  # by the caller, while the rollout is being collected
    assert lagged.collect().obs.shape == (20, 3, 4)
    lagged.close()


def test_a_returned_rollout_is_not_overwritten_by_the_next():
    policy, collector_for = make(BREAKOUT, AtariCollector, steps=12)
    lagged = LaggedCollector(collector_for, policy)
    lagged.restart(3)
    first = lagged.collect()
    before = {name: column.clone() for name, column in columns(first).items()}
    lagged.on_update_start()
    second = lagged.collect()
    assert not second.obs.equal(first.obs)
    assert all(column.equal(before[name]) for name, column in columns(first).items())
    assert first.truncated.any()  # episodes of ten steps
    lagged.close()


def test_an_error_during_a_rollout_is_raised_by_collect():
    policy, collector_for = make()
    lagged = LaggedCollector(collector_for, policy)
    lagged.restart(5)

    def broken(obs, generator):
        raise ArithmeticError("no action")

    lagged.acting.act = broken
    lagged.on_update_start()
    with pytest.raises(ArithmeticError, match="no action"):
        lagged.collect()
    assert not lagged.collecting
    lagged.close()


def test_close_waits_for_the_rollout_in_progress():
    policy, collector_for = make()
    lagged = LaggedCollector(collector_for, policy)
    lagged.restart(5)
    lagged.on_update_start()
    pending = lagged.pending
    lagged.close()
    assert pending.done()
    assert not lagged.collecting


def test_on_update_start_and_close_do_not_affect_a_plain_collector():
    policy, collector_for = make()
    one, other = collector_for(policy), make()[1](policy)
    one.restart(5), other.restart(5)
    one.on_update_start()
    change(policy)
    assert not one.collecting
    assert_same(one.collect(), other.collect())  # of the current policy
    one.close()
    assert_same(one.collect(), other.collect())  # the environments are still open
