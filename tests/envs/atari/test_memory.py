"""The good-episode memory of real episodes: single frames that stack to exactly the observations."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch.nn import Module, Parameter

from optimist.config import EnvConfig
from optimist.core.config import OPRConfig
from optimist.core.regularizer import OptimisticRegularizer
from optimist.envs.make import make_envs
from optimist.rollout.collector import Collector

BREAKOUT = EnvConfig(
    id="optimist/Atari-v0",
    num_envs=2,
    kwargs={"game": "Breakout", "sticky": 0.0, "emulator": "ale", "worker_type": "none"},
    clip_rewards=True,
    frame_stack=4,
)


class RandomPolicy(Module):
    """Acts at random; the probability depends on the action."""

    def __init__(self, num_actions):
        super().__init__()
        self.num_actions, self.unused = num_actions, Parameter(torch.zeros(1))

    def act(self, obs, generator=None):
        return torch.randint(self.num_actions, (len(obs),), generator=generator)

    def sample_noise(self, num_rows, generator):
        return (torch.randint(self.num_actions, (num_rows,), generator=generator),)

    def act_with_noise(self, obs, noise):
        return noise[0]

    def evaluate(self, obs, actions):
        return self.log_prob(obs, actions), torch.zeros(len(obs)), self.value(obs)

    def log_prob(self, obs, actions):
        return -1.0 - actions.float() / 10

    def value(self, obs):
        return torch.full((len(obs),), 0.5)


@pytest.fixture(scope="module")
def rollouts():
    """Two environments for 560 steps in rollouts of 70; several episodes and many lives end."""
    return collect(BREAKOUT, steps=70, rounds=8, seed=5)


def column(rollouts, name):
    return torch.cat([getattr(rollout, name) for rollout, _ in rollouts])


def episodes(ends):
    """(env, first step, last step) of the finished episodes, in the order in which they end."""
    found, starts = [], [0] * ends.shape[1]
    for t, n in ends.nonzero().tolist():
        found.append((n, starts[n], t))
        starts[n] = t + 1
    return found


@pytest.mark.parametrize("longest", [4000, 90])
def test_stored_frames_stack_to_the_observations(rollouts, longest):
    settings = OPRConfig(percentile=0.0, return_window=1, retention="fifo", max_episode_steps=longest)
    opr = OptimisticRegularizer(settings, frame_stack=4)
    for rollout, _ in rollouts:
        opr.observe(rollout)
    expected = episodes(column(rollouts, "episode_ends"))
    memory, obs, actions = opr.memory, column(rollouts, "obs"), column(rollouts, "actions")
    assert memory.pools["frames"].shape[1:] == (84, 84)
    assert len(memory.episodes) == len(expected) >= 3
    for stored, (n, start, end) in zip(memory.episodes, expected, strict=True):
        start = max(start, end + 1 - longest)
        drawn = memory.at(stored.rows, memory._stacked(stored.frames))
        assert drawn.obs.equal(obs[start : end + 1, n])
        assert drawn.actions.equal(actions[start : end + 1, n])


def test_whole_episodes_are_admitted_by_their_raw_return(rollouts):
    opr = OptimisticRegularizer(OPRConfig(percentile=0.0, return_window=1, retention="fifo"), frame_stack=4)
    for rollout, _ in rollouts:
        opr.observe(rollout)
    records = [record for _, finished in rollouts for record in finished]
    assert [e.total_reward for e in opr.memory.episodes] == [record.raw_return for record in records]
    assert [len(e.rows) for e in opr.memory.episodes] == [record.length for record in records]
    lives_ended = [int(opr.memory.pools["dones"][e.rows].sum()) for e in opr.memory.episodes]
    assert set(lives_ended) == {5}  # five lives, the last of them ends the episode


def collect(config, steps, rounds, seed):
    envs = make_envs(config, seed=0)
    policy = RandomPolicy(int(envs.single_action_space.n))
    collector = Collector(envs, config, policy, steps, torch.Generator().manual_seed(1))
    collector.restart(seed)
    found = [(collector.collect(), list(collector.finished)) for _ in range(rounds)]
    envs.close()
    return found


def test_learner_trains_on_signs_of_raw_rewards():
    qbert = replace(BREAKOUT, kwargs=BREAKOUT.kwargs | {"game": "Qbert"})
    ((rollout, _),) = collect(qbert, steps=250, rounds=1, seed=5)
    assert rollout.raw_rewards.max() >= 25
    assert rollout.rewards.max() == 1
    assert rollout.rewards.equal(rollout.raw_rewards.sign())


def test_lost_lives_are_ends_for_the_learner_only(rollouts):
    dones, ends = column(rollouts, "dones"), column(rollouts, "episode_ends")
    assert (ends & ~dones).sum() == 0
    assert int(dones.sum()) >= 4 * int(ends.sum()) + 2
    assert (column(rollouts, "next_values")[dones] == 0).all()


def test_fire_that_replaced_an_action_is_stored(rollouts):
    lost = column(rollouts, "dones") & ~column(rollouts, "episode_ends")
    actions, logp = column(rollouts, "actions"), column(rollouts, "logp")
    after = torch.zeros_like(lost)
    after[1:] = lost[:-1]
    assert int(after.sum()) > 10
    assert (actions[after] == 1).all()
    assert logp.equal(-1.0 - actions.float() / 10)
    assert len(actions[~after].unique()) == 4
