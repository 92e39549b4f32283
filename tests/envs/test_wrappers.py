"""DelayedRewards in every autoreset mode, and scaled and clipped rewards."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from gymnasium.vector import AutoresetMode

from optimist.config import EnvConfig
from optimist.envs.make import make_envs
from optimist.envs.wrappers import DelayedRewards, StepsLeft, can_save_state, restore_state, saved_state
from optimist.errors import ConfigError
from optimist.rollout.collector import Collector
from optimist.rollout.stepper import VectorStepper
from tests.envs.toy import ToyVectorEnv, episode_length, step_reward
from tests.rollout.counting import CountingPolicy

DELAY = 2


def test_held_rewards_are_paid_at_a_lost_life():
    class Lives(ToyVectorEnv):
        def step(self, actions):
            self.steps_made = getattr(self, "steps_made", 0) + 1
            no_end, lost = np.zeros(1, bool), np.array([self.steps_made == 3])
            return super().step(actions)[0], np.ones(1), no_end, no_end, {"life_lost": lost}

    envs = DelayedRewards(Lives(1, AutoresetMode.SAME_STEP), 5)
    envs.reset(seed=0)
    assert [float(envs.step(np.zeros(1, np.int64))[1][0]) for _ in range(8)] == [0, 0, 3, 0, 0, 0, 0, 5]


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_rewards_are_paid_every_k_steps_and_at_the_end_of_an_episode(mode):
    toy = ToyVectorEnv(3, mode, reset_reward=1e6 if mode is AutoresetMode.NEXT_STEP else 0.0)
    stepper = VectorStepper(DelayedRewards(toy, DELAY))
    obs, _ = stepper.reset(0)
    paid: dict[tuple[int, int], list[float]] = {}
    for _ in range(60):
        transition = stepper.step(np.zeros(3, np.int64))
        for n in range(3):
            if transition.valid is None or transition.valid[n]:
                paid.setdefault((n, int(obs[n][1])), []).append(float(transition.rewards[n]))
        obs = transition.obs
    for (env, episode), payments in paid.items():
        length = episode_length(env, episode)
        if len(payments) < length:
            continue  # not finished
        rewards = [step_reward(env, episode, step) for step in range(length)]
        expected = [sum(rewards[t // DELAY * DELAY : t + 1]) if (t + 1) % DELAY == 0 or t == length - 1 else 0.0
                    for t in range(length)]  # fmt: skip
        assert payments == pytest.approx(expected), (env, episode)


def test_a_delay_does_not_change_the_returns_of_episodes():
    records = []
    for delay in (1, 3):
        config = EnvConfig(id="CartPole-v1", num_envs=4, reward_delay=delay)
        envs = make_envs(config)
        collector = Collector(envs, config, OnlyLeft(), 64, torch.Generator().manual_seed(0))
        collector.restart(5)
        rollout = collector.collect()
        records.append([(episode.raw_return, episode.length) for episode in collector.finished])
        assert isinstance(envs, DelayedRewards) is (delay > 1)
        assert bool((rollout.rewards[rollout.valid] == 0).any()) is (delay > 1)
        envs.close()
    assert records[0] == records[1]


class OnlyLeft(CountingPolicy):
    def act(self, obs, generator=None):
        return torch.zeros(len(obs), dtype=torch.int64)

    def value(self, obs):
        return obs[:, 0].float()

    def log_prob(self, obs, actions):
        return torch.zeros(len(obs))


def test_held_rewards_are_part_of_the_saved_state():
    config = EnvConfig(id="optimist/KeyDoorTreasure-v0", num_envs=4, kwargs={"height": 3, "apple": True})
    config = EnvConfig(**(vars(config) | {"reward_delay": 7}))
    envs, other = (make_envs(config, seed=0) for _ in range(2))
    assert can_save_state(envs)
    envs.reset(seed=1)
    other.reset(seed=2)
    generator = np.random.default_rng(0)
    played = []
    for t in range(400):
        if t == 203:
            assert envs.held.any() or envs.waited.any()
            restore_state(other, saved_state(envs))
        actions = generator.integers(4, size=4)
        step = envs.step(actions)
        if t >= 203:
            same = other.step(actions)
            assert all(np.array_equal(a, b) for a, b in zip(step[:4], same[:4], strict=True))
        played.append(step[1])
    assert np.any(played)


def test_scaled_rewards_train_and_raw_ones_are_kept():
    for scale, clipped in ((0.01, False), (0.5, True)):
        config = EnvConfig(id="Toy", num_envs=3, reward_scale=scale, clip_rewards=clipped)
        collector = Collector(ToyVectorEnv(3), config, CountingPolicy(), 5, torch.Generator().manual_seed(0))
        collector.restart(0)
        rollout = collector.collect()
        unscaled = rollout.raw_rewards.sign() if clipped else rollout.raw_rewards
        assert rollout.rewards.equal(scale * unscaled)
        assert rollout.raw_rewards[0, 0] == step_reward(0, 0, 0)


@pytest.mark.parametrize(("changes", "named"), [({"reward_delay": 0}, "delay"), ({"reward_scale": 0.0}, "scale")])
def test_a_value_out_of_range_is_an_error_with_its_name(changes, named):
    with pytest.raises(ConfigError, match=f"env.reward_{named}"):
        EnvConfig(**changes)


@pytest.mark.parametrize("objects", [False, True])
@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_the_share_of_steps_left_follows_every_observation(mode, objects):
    toy = ToyVectorEnv(3, mode, object_final_obs=objects)
    toy.longest_episode = 5
    envs = StepsLeft(toy)
    stepper = VectorStepper(envs)
    obs, _ = stepper.reset(0)
    assert envs.single_observation_space.shape == (4,)
    assert envs.metadata["privileged"] == 1
    for _ in range(40):
        assert obs[:, 3] == pytest.approx(1.0 - obs[:, 2] / 5)  # the toy counts its steps
        transition = stepper.step(np.zeros(3, np.int64))
        for n in np.flatnonzero(transition.ended):
            last = transition.final_obs[n]
            assert last[3] == pytest.approx(1.0 - episode_length(int(last[0]), int(last[1])) / 5)
        obs = transition.obs


def test_steps_left_are_part_of_the_saved_state():
    config = EnvConfig(id="optimist/CAGE2Cardiff-v0", num_envs=3, kwargs={"horizon": 7}, steps_left=True)
    envs, other = (make_envs(config) for _ in range(2))
    envs.reset(seed=1)
    for _ in range(10):
        envs.step(np.zeros(3, np.int64))
    other.reset(seed=2)
    restore_state(other, saved_state(envs))
    for _ in range(10):
        step, same = envs.step(np.ones(3, np.int64)), other.step(np.ones(3, np.int64))
        assert all(np.array_equal(a, b) for a, b in zip(step[:4], same[:4], strict=True))


def test_steps_left_need_vectors_and_a_time_limit():
    with pytest.raises(ConfigError, match="needs observations that are vectors"):
        make_envs(EnvConfig(id="optimist/DeepSea-v0", steps_left=True))
    with pytest.raises(ConfigError, match="needs a time limit: set env"):
        StepsLeft(ToyVectorEnv())
