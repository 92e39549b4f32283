"""AtariCollector gives the rollouts of the plain collector, for any division of slots among workers."""

from __future__ import annotations

import time
from dataclasses import fields

import numpy as np
import pytest
import torch
from torch import Tensor

from optimist.config import EnvConfig, NetworkConfig
from optimist.envs.atari.buffers import SharedBuffers
from optimist.envs.atari.collector import AtariCollector, AtariColumns
from optimist.envs.make import make_envs
from optimist.networks.actor_critic import make_actor_critic
from optimist.rollout.collector import Collector


def rollouts(kind, num_workers=1, greedy=False, rounds=4, **settings):
    game = {
        "game": "Breakout",
        "sticky": 0.0,
        "emulator": "ale",
        "worker_type": "none",
        "max_frames": 100,
        "num_workers": num_workers,
        **settings,
    }
    config = EnvConfig(id="optimist/Atari-v0", num_envs=4, kwargs=game, clip_rewards=True, frame_stack=4)
    envs = make_envs(config, seed=0)
    torch.manual_seed(0)
    network = NetworkConfig(kind="nature_cnn", cnn_features=16)
    policy = make_actor_critic(envs.single_observation_space, envs.single_action_space, network)
    if greedy:
        policy.act = policy.act_with_noise = lambda obs, _: policy.act_greedily(obs) * 0 + 3  # always the same action
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


@pytest.mark.parametrize(
    "workers",
    [{"num_workers": 1}, {"num_workers": 2}, {"num_workers": 3}, {"num_workers": 2, "worker_type": "processes"}],
)
def test_rollouts_are_those_of_the_plain_collector_without_noise(workers):
    one, other = rollouts(Collector, greedy=True), rollouts(AtariCollector, greedy=True, **workers)
    assert_same(one, other)
    assert any(finished for _, finished, _ in one)


@pytest.mark.parametrize(
    "workers", [{"num_workers": 3}, {"num_workers": 2, "worker_type": "processes"}, {"num_workers": 0}]
)
def test_noise_belongs_to_a_step_of_a_slot_for_any_number_of_workers(workers):
    one = rollouts(AtariCollector)
    assert_same(one, rollouts(AtariCollector, **workers))
    actions = torch.cat([columns["actions"] for columns, _, _ in one])
    assert len(actions.unique()) == 4
    assert not actions[:, 0].equal(actions[:, 1])
    assert not one[0][0]["actions"].equal(one[1][0]["actions"])  # new noise in every rollout


def test_lost_life_is_an_end_for_the_learner_unless_disabled():
    ends = {}
    for matters in (True, False):
        settings = {"max_frames": 400, "life_loss_ends": matters, "greedy": True}
        one, other = rollouts(Collector, 1, **settings), rollouts(AtariCollector, 2, **settings)
        assert_same(one, other)
        ends[matters] = sum(int(columns["dones"].sum()) for columns, _, _ in one)
    assert ends[True] > 0 == ends[False]  # lives were lost, and no episode ended


def test_each_truncated_episode_of_a_rollout_has_its_own_final_observation():
    """The final observations decide the bootstrap values."""
    settings = {"max_frames": 24, "greedy": True}
    one, other = rollouts(Collector, 1, **settings), rollouts(AtariCollector, 2, **settings)
    assert_same(one, other)
    columns, _, _ = one[0]
    assert columns["dones"].sum(0).tolist() == [2, 2, 2, 2]  # two episodes of each slot within 16 steps
    assert len(columns["next_values"][columns["dones"]].unique()) > 2


def test_resumed_collector_starts_from_its_saved_observations():
    game = {"game": "Pong", "sticky": 0.0, "emulator": "ale", "worker_type": "none", "num_workers": 2}
    config = EnvConfig(id="optimist/Atari-v0", num_envs=2, kwargs=game, frame_stack=4)
    envs = make_envs(config, seed=0)
    network = NetworkConfig(kind="nature_cnn", cnn_features=16)
    policy = make_actor_critic(envs.single_observation_space, envs.single_action_space, network)
    collector = AtariCollector(envs, config, policy, 2, torch.Generator().manual_seed(0))
    collector.restart(3)
    state = collector.state_dict()
    state["obs"] = state["obs"].copy() + 1
    collector.load_state_dict(state)
    assert collector.collect().obs[0].numpy().tolist() == state["obs"].tolist()
    envs.close()


def make_collector(num_workers, **settings):
    game = {
        "game": "Pong",
        "sticky": 0.0,
        "emulator": "ale",
        "worker_type": "none",
        "num_workers": num_workers,
        **settings,
    }
    config = EnvConfig(id="optimist/Atari-v0", num_envs=num_workers, kwargs=game, frame_stack=4)
    envs = make_envs(config, seed=0)
    torch.manual_seed(0)
    network = NetworkConfig(kind="nature_cnn", cnn_features=16)
    policy = make_actor_critic(envs.single_observation_space, envs.single_action_space, network)
    collector = AtariCollector(envs, config, policy, 4, torch.Generator().manual_seed(0))
    collector.restart(3)
    return envs, policy, collector


def test_ready_slots_get_actions_while_others_are_stepped():
    envs, _, collector = make_collector(num_workers=3, worker_type="processes")
    submit, recv, order = collector.actor.submit, envs.unwrapped.emulators.recv, []

    def recording_submit(slots, rows):
        order.extend(zip(slots, rows // 3, strict=True))
        submit(slots, rows)

    def delayed_recv(stop_when=None):
        """Slot 1 is received after the others have completed all of their steps."""
        while True:
            slots = recv(stop_when)
            if len(order) >= 9 or 1 not in slots:
                return slots
            envs.unwrapped.emulators.stepping[1] = True
            if len(others := slots[slots != 1]):
                return others
            time.sleep(0.001)

    collector.actor.submit = recording_submit
    envs.unwrapped.emulators.recv = delayed_recv
    rollout = collector.collect()
    assert order[:3] == [(0, 0), (1, 0), (2, 0)]
    assert {slot for slot, _ in order[3:9]} == {0, 2}  # their remaining steps
    assert order[9:] == [(1, 1), (1, 2), (1, 3)]
    again = make_collector(num_workers=3, worker_type="processes")
    assert rollout.actions.equal(again[2].collect().actions)
    for opened in (envs, again[0]):
        opened.close()


def test_slots_with_the_fewest_steps_come_first():
    envs, _, collector = make_collector(num_workers=4)
    steps_done = np.array([3, 1, 2, 1])
    assert collector._next_batch(np.ones(4, bool), steps_done).tolist() == [1]
    assert collector._next_batch(np.array([True, False, True, False]), steps_done).tolist() == [2]
    assert collector._next_batch(np.zeros(4, bool), steps_done).tolist() == []
    collector.whole_groups, collector.batch_size = False, 3  # as on a GPU
    assert collector._next_batch(np.ones(4, bool), steps_done).tolist() == [1, 3, 2]
    assert collector._next_batch(np.array([True, False, True, False]), steps_done).tolist() == [0, 2]
    envs.close()


@pytest.mark.parametrize("workers", [{"num_workers": 2}, {"num_workers": 3, "worker_type": "processes"}])
def test_slots_of_a_group_may_be_in_different_batches(workers):
    """As on a GPU."""
    expected = rollouts(AtariCollector, **workers)

    class SingleSlots(AtariCollector):
        def _next_batch(self, ready, steps_done):
            self.whole_groups = False
            return super()._next_batch(ready, steps_done)[:1]

    assert_same(expected, rollouts(SingleSlots, **workers))


def test_failed_group_raises_and_leaves_no_step_in_progress():
    envs, _, collector = make_collector(num_workers=3)
    emulator = envs.unwrapped.emulators.emulators[1]
    healthy = emulator.step

    def broken():
        healthy()
        raise OSError("the console is on fire")

    emulator.step = broken
    with pytest.raises(OSError, match="on fire"):
        collector.collect()
    emulator.step = healthy
    collector.restart(3)
    fresh = make_collector(num_workers=3)
    assert collector.obs.tolist() == fresh[2].obs.tolist()
    collector.generator.manual_seed(0)
    assert collector.collect().obs.equal(fresh[2].collect().obs)
    for opened in (envs, fresh[0]):
        opened.close()


@pytest.mark.parametrize("workers", ["none", "processes"])
def test_interrupt_leaves_no_step_in_progress(workers):
    envs, _, collector = make_collector(num_workers=3, worker_type=workers)
    send, sent = envs.unwrapped.send, []

    def interrupted(slots, actions):
        sent.append(slots)
        executed = send(slots, actions)
        if len(sent) == 2:
            raise KeyboardInterrupt
        return executed

    envs.unwrapped.send = interrupted
    with pytest.raises(KeyboardInterrupt):
        collector.collect()
    envs.unwrapped.send = send
    collector.restart(3)
    fresh = make_collector(num_workers=3, worker_type=workers)
    assert collector.obs.tolist() == fresh[2].obs.tolist()
    assert collector.collect().obs.shape == fresh[2].collect().obs.shape
    for opened in (envs, fresh[0]):
        opened.close()


def test_episodes_are_prepared_while_the_learner_updates():
    envs, _, collector = make_collector(num_workers=2, worker_type="processes")
    assert envs.unwrapped.emulators.unprepared.all()
    collector.collect()
    collector.on_update_start()
    assert not envs.unwrapped.emulators.unprepared.any()
    envs.close()


def test_collector_works_after_a_failed_batch():
    envs, policy, collector = make_collector(num_workers=2)
    act_with_noise = policy.act_with_noise

    def interrupted(*_):
        raise KeyboardInterrupt

    policy.act_with_noise = interrupted
    with pytest.raises(KeyboardInterrupt):
        collector.collect()
    policy.act_with_noise = act_with_noise
    collector.restart(3)
    collector.generator.manual_seed(0)
    fresh = make_collector(num_workers=2)
    assert collector.collect().actions.equal(fresh[2].collect().actions)
    for opened in (envs, fresh[0]):
        opened.close()


def columns_of(lives_before, **results):
    """The columns of one slot after a rollout with these results."""
    steps = len(results["lives"])
    buffers, columns = (
        SharedBuffers.allocate(1, 4),
        AtariColumns(torch.zeros((steps, 1, 4, 84, 84), dtype=torch.uint8), lives_before),
    )
    for t in range(steps):
        for name, values in results.items():
            buffers.results[name] = values[t]
        columns.add_results(np.array([t]), np.arange(1), buffers)
    columns.finish(life_loss_ends=True)
    return columns


def test_life_lost_in_the_first_step_of_a_rollout_is_an_end():
    columns = columns_of(np.array([3]), lives=[2, 2, 1])
    assert columns.life_lost[:, 0].tolist() == [True, False, True]


def test_episode_that_ends_at_its_time_limit_is_terminated():
    columns = columns_of(np.array([0]), lives=[0, 0], terminated=[True, False], truncated=[True, True])
    assert columns.terminated[:, 0].tolist() == [True, False]
    assert columns.truncated[:, 0].tolist() == [False, True]
    assert len(columns.final_obs) == 1


def test_lives_are_compared_with_those_before_the_rollout():
    envs, _, collector = make_collector(num_workers=2, game="Breakout")
    collector.atari.lives[:] = 6  # one more than the game has
    rollout = collector.collect()
    assert rollout.dones[0].tolist() == [True, True]
    assert not rollout.dones[1:].any()
    envs.close()
