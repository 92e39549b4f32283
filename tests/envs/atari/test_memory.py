"""What the memory keeps of real games: single frames that stack up to exactly what was seen."""

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
    kwargs={"game": "Breakout", "sticky": 0.0, "threads": 1},
    clip_rewards=True,
    frame_stack=4,
)


class RandomPlayer(Module):
    """Plays anything at all; knows the probability of each action."""

    def __init__(self, num_actions):
        super().__init__()
        self.num_actions, self.unused = num_actions, Parameter(torch.zeros(1))

    def act(self, obs, generator=None):
        return torch.randint(self.num_actions, (len(obs),), generator=generator)

    def chances(self, rows, generator):
        return (torch.randint(self.num_actions, (rows,), generator=generator),)

    def act_on(self, obs, chances):
        return chances[0]

    def evaluate(self, obs, actions):
        return self.log_prob(obs, actions), torch.zeros(len(obs)), self.value(obs)

    def log_prob(self, obs, actions):
        return -1.0 - actions.float() / 10

    def value(self, obs):
        return torch.full((len(obs),), 0.5)


@pytest.fixture(scope="module")
def rollouts():
    """Two games side by side for 560 steps, cut into rollouts of 70; several games end, and many lives."""
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


@pytest.mark.parametrize(("deciding", "longest"), [("raw", 4000), ("raw", 90), ("learner", 4000)])
def test_stored_frames_stack_up_to_the_observations(rollouts, deciding, longest):
    opr = OptimisticRegularizer(
        OPRConfig(percentile=0.0, return_window=1, retention="fifo", deciding_return=deciding,
                  max_episode_steps=longest),
        frame_stack=4,
    )  # fmt: skip
    for rollout, _ in rollouts:
        opr.observe(rollout)
    ends = column(rollouts, "dones" if deciding == "learner" else "episode_ends")
    expected = episodes(ends)
    memory, obs, actions = opr.memory, column(rollouts, "obs"), column(rollouts, "actions")
    assert memory.pools["frames"].shape[1:] == (84, 84)
    assert len(memory.episodes) == len(expected) >= (15 if deciding == "learner" else 3)
    for stored, (n, start, end) in zip(memory.episodes, expected, strict=True):
        start = max(start, end + 1 - longest)
        drawn = memory.at(stored.rows, memory._stacked(stored.frames))
        assert drawn.obs.equal(obs[start : end + 1, n])
        assert drawn.actions.equal(actions[start : end + 1, n])


def test_the_full_game_and_its_raw_return_decide(rollouts):
    opr = OptimisticRegularizer(OPRConfig(percentile=0.0, return_window=1, retention="fifo"), frame_stack=4)
    for rollout, _ in rollouts:
        opr.observe(rollout)
    records = [record for _, finished in rollouts for record in finished]
    assert [e.total_reward for e in opr.memory.episodes] == [record.raw_return for record in records]
    assert [len(e.rows) for e in opr.memory.episodes] == [record.length for record in records]
    lives_ended = [int(opr.memory.pools["dones"][e.rows].sum()) for e in opr.memory.episodes]
    assert set(lives_ended) == {5}  # five lives a game, the last of them its end


def collect(config, steps, rounds, seed):
    envs = make_envs(config, seed=0)
    player = RandomPlayer(int(envs.single_action_space.n))
    collector = Collector(envs, config, player, steps, torch.Generator().manual_seed(1))
    collector.restart(seed)
    found = [(collector.collect(), list(collector.finished)) for _ in range(rounds)]
    envs.close()
    return found


def test_the_learner_sees_signs_and_the_game_points():
    qbert = replace(BREAKOUT, kwargs=BREAKOUT.kwargs | {"game": "Qbert"})
    ((rollout, _),) = collect(qbert, steps=250, rounds=1, seed=5)
    assert rollout.raw_rewards.max() >= 25
    assert rollout.rewards.max() == 1
    assert rollout.rewards.equal(rollout.raw_rewards.sign())


def test_the_learner_sees_lives_and_the_game_games(rollouts):
    dones, ends = column(rollouts, "dones"), column(rollouts, "episode_ends")
    assert (ends & ~dones).sum() == 0
    assert int(dones.sum()) >= 4 * int(ends.sum()) + 2
    assert (column(rollouts, "next_values")[dones] == 0).all()


def test_fire_that_was_pressed_for_the_player_is_what_is_learnt_from(rollouts):
    lost = column(rollouts, "dones") & ~column(rollouts, "episode_ends")
    actions, logp = column(rollouts, "actions"), column(rollouts, "logp")
    after = torch.zeros_like(lost)
    after[1:] = lost[:-1]
    assert int(after.sum()) > 10
    assert (actions[after] == 1).all()
    assert logp.equal(-1.0 - actions.float() / 10)
    assert len(actions[~after].unique()) == 4
