"""The collector in all three autoreset modes: every step occurs once, and reset steps never."""

from __future__ import annotations

import copy
import dataclasses

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from optimist.config import EnvConfig, NetworkConfig
from optimist.core.advantages import gae
from optimist.core.config import OPRConfig
from optimist.core.regularizer import OptimisticRegularizer
from optimist.errors import ConfigError, NonFiniteLoss
from optimist.networks.actor_critic import make_actor_critic
from optimist.rollout.collector import Collector
from tests.envs.toy import ToyVectorEnv, episode_length, episode_return, step_reward, terminates
from tests.rollout.counting import CountingPolicy, ScalarCounter

MODES = list(AutoresetMode)
NUM_ENVS, ROUNDS, NUM_STEPS = 3, 6, 7


def make_collector(envs, num_steps=NUM_STEPS, policy=None, **settings):
    config = EnvConfig(id="Toy", num_envs=envs.num_envs, **settings)
    collector = Collector(envs, config, policy or CountingPolicy(), num_steps, torch.Generator().manual_seed(0))
    collector.restart(0)
    return collector


def toy(mode, **keywords):
    return ToyVectorEnv(
        NUM_ENVS, mode, **({"reset_reward": 1e6} if mode is AutoresetMode.NEXT_STEP else {}), **keywords
    )


def valid_rows(rollouts, *names):
    """Per environment, the valid rows of these columns over all rollouts, in order of time."""
    streams = []
    for n in range(rollouts[0].rewards.shape[1]):
        stream = []
        for rollout in rollouts:
            valid = torch.ones_like(rollout.dones) if rollout.valid is None else rollout.valid
            for t in valid[:, n].nonzero().flatten().tolist():
                stream.append(tuple(getattr(rollout, name)[t, n].tolist() for name in names))
        streams.append(stream)
    return streams


def expected_stream(env, count, truncation):
    """(obs, reward, done, episode end, bootstrap, value, next value) of each step, by the toy's own rules."""
    rows, episode = [], 0
    while len(rows) < count:
        length = episode_length(env, episode)
        for step in range(length):
            end = step == length - 1
            cut_off = end and not terminates(env, episode)
            done = end and not (cut_off and truncation == "ignored")
            following = float(1 + 100 * env + 10 * episode + step + 1)
            bootstrap = following if cut_off and truncation == "bootstrap" else 0.0
            if cut_off and truncation == "ignored":
                following = float(1 + 100 * env + 10 * (episode + 1))  # leaks into the next episode
            reward, value = (
                float(np.float32(step_reward(env, episode, step))),
                float(1 + 100 * env + 10 * episode + step),
            )
            rows.append(([env, episode, step], reward, done, end, bootstrap, value, bootstrap if done else following))
        episode += 1
    return rows[:count]


COLUMNS = ("obs", "raw_rewards", "dones", "episode_ends", "bootstraps", "values", "next_values")


@pytest.mark.parametrize(
    ("mode", "truncation"),
    [
        (mode, truncation)
        for mode in MODES
        for truncation in ("bootstrap", "end", "ignored")
        if (mode, truncation) != (AutoresetMode.NEXT_STEP, "ignored")  # refused; see below
    ],
)
@pytest.mark.parametrize("object_final_obs", [False, True])
def test_every_step_occurs_once_with_its_reward_end_and_value(mode, object_final_obs, truncation):
    collector = make_collector(toy(mode, object_final_obs=object_final_obs), truncation=truncation)
    rollouts = [collector.collect() for _ in range(ROUNDS)]
    for env, stream in enumerate(valid_rows(rollouts, *COLUMNS)):
        assert stream == expected_stream(env, len(stream), truncation)
    assert all(r.dones[~r.valid].all() for r in rollouts if r.valid is not None), "a reset step leads nowhere"
    resets = sum(int((~r.valid).sum()) for r in rollouts if r.valid is not None)
    assert sum(map(len, valid_rows(rollouts, "dones"))) + resets == ROUNDS * NUM_STEPS * NUM_ENVS
    assert (resets > 0) == (mode is AutoresetMode.NEXT_STEP)


def test_a_termination_at_the_time_limit_is_not_a_truncation():
    class Both(ToyVectorEnv):
        def step(self, actions):
            obs, rewards, terminated, truncated, infos = super().step(actions)
            return obs, rewards, terminated | truncated, terminated | truncated, infos

    rollout = make_collector(Both(NUM_ENVS)).collect()
    assert rollout.dones.any()
    assert not rollout.bootstraps.any()
    assert not rollout.next_values[rollout.dones].any()


def test_an_ignored_time_limit_with_reset_steps_is_refused():
    with pytest.raises(ConfigError, match="vectorization = 'sync'"):
        make_collector(toy(AutoresetMode.NEXT_STEP), truncation="ignored")


@pytest.mark.parametrize("mode", MODES)
def test_reset_steps_are_in_no_batch_and_change_no_advantage(mode):
    collector = make_collector(toy(mode))
    rollouts = [collector.collect() for _ in range(ROUNDS)]
    for rollout in rollouts:
        advantages, returns = gae(rollout.rewards, rollout.values, rollout.next_values, rollout.dones, 0.9, 0.8)
        batch = rollout.flatten(advantages, returns)
        assert batch.advantages.abs().max() < 1e4  # the reset step pays a million
        assert len(batch) == (rollout.dones.numel() if rollout.valid is None else int(rollout.valid.sum()))
        for n in range(NUM_ENVS):  # an advantage is the discounted sum of its own episode's errors
            for t in range(NUM_STEPS):
                if rollout.valid is not None and not rollout.valid[t, n]:
                    continue
                expected, factor = 0.0, 1.0
                for k in range(t, NUM_STEPS):
                    delta = rollout.rewards[k, n] + 0.9 * rollout.next_values[k, n] - rollout.values[k, n]
                    expected, factor = expected + factor * delta.item(), factor * 0.9 * 0.8
                    if rollout.episode_ends[k, n]:
                        break
                assert advantages[t, n].item() == pytest.approx(expected, rel=1e-4, abs=1e-4)


@pytest.mark.parametrize("mode", MODES)
def test_finished_episodes_are_recorded_with_return_length_and_goal(mode):
    collector = make_collector(toy(mode))
    found = []
    for _ in range(ROUNDS):
        collector.collect()
        found += collector.finished
    assert len(found) > 20
    key = [(r.raw_return, r.length, r.goal) for r in found]
    played = [(env, episode) for env in range(NUM_ENVS) for episode in range(30)]
    expected = {(episode_return(e, i), episode_length(e, i), terminates(e, i)) for e, i in played}
    rounded = {(round(a, 6), b, c) for a, b, c in expected}
    assert {(round(a, 6), b, c) for a, b, c in key} <= rounded
    assert len(set(key)) == len(key)
    assert [r.step for r in found] == sorted(r.step for r in found)
    assert all(r.step % NUM_ENVS == 0 for r in found)


@pytest.mark.parametrize("mode", MODES)
def test_the_memory_stores_whole_episodes_without_reset_steps(mode):
    collector = make_collector(toy(mode))
    opr = OptimisticRegularizer(OPRConfig(percentile=0.0, admission="gated", retention="fifo", return_window=1))
    for _ in range(ROUNDS):
        opr.observe(collector.collect())
    totals = [round(e.total_reward, 3) for e in opr.memory.episodes]
    finished = {
        round(episode_return(env, episode), 3): episode_length(env, episode)
        for env in range(NUM_ENVS)
        for episode in range(30)
    }
    assert len(totals) > 20
    assert all(len(e.rows) == finished[round(e.total_reward, 3)] for e in opr.memory.episodes)
    assert opr.memory.pools["rewards"][torch.cat([e.rows for e in opr.memory.episodes])].max() < 10
    for stored in opr.memory.episodes:
        frames = opr.memory.pools["frames"][stored.frames]
        assert frames[:, 2].tolist() == list(range(len(frames)))  # steps 0, 1, 2 … of one episode
        assert len(frames[:, :2].unique(dim=0)) == 1


@pytest.mark.parametrize("mode", MODES)
def test_stored_actions_are_those_given_to_the_environment(mode):
    envs = toy(mode)
    collector = make_collector(envs)
    rollouts = [collector.collect() for _ in range(3)]
    for stream in valid_rows(rollouts, "obs", "actions", "logp"):
        for (env, episode, step), action, logp in stream:
            assert envs.taken[env, episode, step] == action
            assert logp == pytest.approx(-1.0 - action - step / 10)


def test_clipped_rewards_train_and_raw_ones_are_kept():
    collector = make_collector(toy(AutoresetMode.SAME_STEP), clip_rewards=True)
    rollout = collector.collect()
    assert rollout.rewards.unique().tolist() == [1.0]
    assert rollout.raw_rewards.max() > 3
    opr = OptimisticRegularizer(OPRConfig(percentile=0.0))
    opr.observe(rollout)
    assert opr.memory.pools["rewards"][opr.memory.rows].unique().tolist() == [1.0]
    assert max(e.total_reward for e in opr.memory.episodes) == pytest.approx(
        max(r.raw_return for r in collector.finished)
    )


def counters(mode, **keywords):
    makers = [lambda i=i: ScalarCounter(i, **keywords) for i in range(NUM_ENVS)]
    return SyncVectorEnv(makers, autoreset_mode=mode)


@pytest.mark.parametrize("mode", MODES)
def test_a_group_named_at_the_reset_holds_for_the_whole_episode(mode):
    collector = make_collector(counters(mode), group_key="level")
    rollouts, records = [], []
    for _ in range(4):
        rollouts.append(collector.collect())
        records += collector.finished
    for env, stream in enumerate(valid_rows(rollouts, "obs", "groups")):
        assert [group for _, group in stream] == [1000 * env + int(obs[1]) for obs, _ in stream]
    assert len(records) > 10
    assert all(r.group // 1000 == r.length - 2 for r in records)  # the environment


def test_a_group_key_that_is_not_in_the_info_is_refused():
    with pytest.raises(ConfigError, match=r"env\.group_key 'opponent'"):
        make_collector(counters(AutoresetMode.SAME_STEP), group_key="opponent")


@pytest.mark.parametrize("mode", MODES)
def test_executed_actions_are_stored_with_their_own_probability(mode):
    collector = make_collector(counters(mode))
    rollouts = [collector.collect() for _ in range(4)]
    sampled = set()
    for env, stream in enumerate(valid_rows(rollouts, "obs", "actions", "logp")):
        for (_, _, step), action, logp in stream:
            if step in (0, env + 1):
                assert action == 1, f"{mode}: the first and the last action of an episode are overridden"
            else:
                sampled.add(action)
            assert logp == pytest.approx(-1.0 - action - step / 10)
    assert sampled == {0, 1}


def test_sampled_actions_are_stored_if_asked_for():
    collector = make_collector(counters(AutoresetMode.SAME_STEP), forced_actions="sampled")
    stream = valid_rows([collector.collect() for _ in range(4)], "obs", "actions")[0]
    assert {action for (_, _, step), action in stream if step == 0} == {0, 1}


@pytest.mark.parametrize("mode", MODES)
def test_executed_actions_of_several_choices_are_stored_too(mode):
    class TwoChoices(CountingPolicy):
        def act(self, obs, generator=None):
            return torch.randint(2, (len(obs), 2), generator=generator)

    envs = counters(mode, action_space=gym.spaces.MultiDiscrete([2, 2]))
    collector = make_collector(envs, policy=TwoChoices())
    for env, stream in enumerate(valid_rows([collector.collect() for _ in range(3)], "obs", "actions", "logp")):
        for (_, _, step), action, logp in stream:
            if step in (0, env + 1):
                assert action == [1, 1]
            assert logp == pytest.approx(-1.0 - sum(action) - step / 10)


def test_a_buffer_that_the_environment_reuses_is_copied():
    class Reusing(ToyVectorEnv):
        buffer = np.zeros(NUM_ENVS, np.int64)

        def step(self, actions):
            *results, infos = super().step(actions)
            self.buffer += 1
            return *results, {**infos, "executed": self.buffer}

    Reusing.buffer[:] = 0
    rollout = make_collector(Reusing(NUM_ENVS)).collect()
    assert rollout.actions[:, 0].tolist() == list(range(1, NUM_STEPS + 1))


class Bounded(ToyVectorEnv):
    """Takes one number in [−0.1, 0.1] and records it in `received`."""

    def __init__(self, num_envs):
        super().__init__(num_envs)
        self.single_action_space = gym.spaces.Box(-0.1, 0.1, (1,), np.float32)
        self.action_space = gym.spaces.Box(-0.1, 0.1, (num_envs, 1), np.float32)
        self.received = []

    def step(self, actions):
        self.received.append(actions.copy())
        self.action_space, box = gym.spaces.MultiDiscrete([2] * self.num_envs), self.action_space
        results = super().step(np.zeros(self.num_envs, np.int64))
        self.action_space = box
        return results


def test_bounded_actions_are_clipped_for_the_environment_and_stored_as_sampled():
    envs = Bounded(2)
    policy = make_actor_critic(envs.single_observation_space, envs.single_action_space, NetworkConfig())
    rollout = make_collector(envs, policy=policy).collect()
    received = torch.from_numpy(np.stack(envs.received))
    assert received.abs().max() <= 0.1
    assert rollout.actions.abs().max() > 0.5
    assert received.equal(rollout.actions.clamp(-0.1, 0.1))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_an_observation_that_is_not_finite_is_an_error(bad):
    class Broken(ToyVectorEnv):
        def _observe(self):
            obs = super()._observe()
            obs[1, 2] = bad if self.elapsed[1] == 2 else obs[1, 2]
            return obs

    collector = make_collector(Broken(NUM_ENVS), num_steps=20)
    with pytest.raises(NonFiniteLoss, match="Toy gave an observation"):
        collector.collect()


@pytest.mark.parametrize("mode", MODES)
def test_a_restored_collector_continues_like_the_saved_one(mode):
    envs = toy(mode)
    collector = make_collector(envs)
    collector.collect()
    saved, other_envs = copy.deepcopy(collector.state_dict()), copy.deepcopy(envs)
    restored = make_collector(toy(mode))
    restored.envs = restored.stepper.envs = other_envs
    restored.load_state_dict(saved)
    for _ in range(3):
        one, other = collector.collect(), restored.collect()
        for f in dataclasses.fields(one):
            left, right = getattr(one, f.name), getattr(other, f.name)
            assert left.equal(right) if isinstance(left, torch.Tensor) else left == right
        assert collector.finished == restored.finished


def test_a_restart_drops_unfinished_episodes():
    collector = make_collector(toy(AutoresetMode.NEXT_STEP))
    collector.collect()
    collector.restart(1)
    assert not collector.stepper.resetting.any()
    assert not collector.returns.any()
    assert not collector.lengths.any()


def test_the_rollout_has_the_given_progress():
    assert make_collector(toy(AutoresetMode.SAME_STEP)).collect(progress=0.25).progress == 0.25


@pytest.mark.parametrize("mode", MODES)
def test_forced_actions_are_marked_where_they_differ_from_the_sampled_ones(mode):
    collector = make_collector(counters(mode), forced_actions="masked")
    rollouts = [collector.collect() for _ in range(4)]
    marked = {(step in (0, env + 1), action, forced)
              for env, stream in enumerate(valid_rows(rollouts, "obs", "actions", "forced"))
              for (_, _, step), action, forced in stream}  # fmt: skip
    assert marked == {(True, 1, False), (True, 1, True), (False, 0, False), (False, 1, False)}
    assert make_collector(counters(mode)).collect().forced is None
