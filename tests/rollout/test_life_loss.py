"""A lost life ends the episode for the learner only."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from gymnasium.vector import AutoresetMode

from optimist.config import EnvConfig
from optimist.core.config import OPRConfig
from optimist.core.regularizer import OptimisticRegularizer
from optimist.rollout.collector import Collector
from optimist.rollout.stepper import VectorStepper
from tests.envs.toy import ToyVectorEnv, episode_length, episode_return
from tests.rollout.counting import CountingPolicy


class ToyWithLives(ToyVectorEnv):
    """The toy; every second step of an episode loses a life. At an end `life_lost` is set too, and has no effect."""

    def step(self, actions):
        before = self.elapsed.copy()
        obs, rewards, terminated, truncated, infos = super().step(actions)
        infos["life_lost"] = before % 2 == 1
        return obs, rewards, terminated, truncated, infos


def collect(mode, truncation="bootstrap", rounds=5):
    envs = ToyWithLives(3, mode)
    config = EnvConfig(id="Toy", num_envs=3, truncation=truncation)
    collector = Collector(envs, config, CountingPolicy(), 7, torch.Generator().manual_seed(0))
    collector.restart(0)
    return [(collector.collect(), collector.finished) for _ in range(rounds)]


@pytest.mark.parametrize(
    ("mode", "truncation"),
    [
        (mode, truncation)
        for mode in AutoresetMode
        for truncation in ("bootstrap", "end", "ignored")
        if (mode, truncation) != (AutoresetMode.NEXT_STEP, "ignored")  # refused by the collector
    ],
)
def test_the_learner_sees_an_end_and_the_episode_continues(mode, truncation):
    lost_lives = 0
    for rollout, _ in collect(mode, truncation):
        valid = torch.ones_like(rollout.dones) if rollout.valid is None else rollout.valid
        for t, n in valid.nonzero().tolist():
            env, episode, step = (int(x) for x in rollout.obs[t, n])
            end = step == episode_length(env, episode) - 1
            assert bool(rollout.episode_ends[t, n]) == end
            if end:
                continue
            lost = step % 2 == 1
            lost_lives += lost
            assert bool(rollout.dones[t, n]) == lost
            following = 0.0 if lost else float(1 + 100 * env + 10 * episode + step + 1)
            assert float(rollout.next_values[t, n]) == following  # no return is expected after a lost life
            assert float(rollout.bootstraps[t, n]) == 0.0
    assert lost_lives > 10


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_records_and_memory_have_whole_episodes(mode):
    opr = OptimisticRegularizer(OPRConfig(percentile=0.0, return_window=1, retention="fifo"))
    records = []
    for rollout, finished in collect(mode, rounds=6):
        opr.observe(rollout)
        records += finished
    whole = {round(episode_return(e, i), 3): episode_length(e, i) for e in range(3) for i in range(40)}
    assert len(records) > 20
    assert all(whole[round(r.raw_return, 3)] == r.length for r in records)
    stored = opr.memory.episodes
    assert [round(e.total_reward, 3) for e in stored] == [round(r.raw_return, 3) for r in records]
    assert [len(e.rows) for e in stored] == [r.length for r in records]
    for episode in stored:  # with the steps at which lives were lost
        dones = opr.memory.pools["dones"][episode.rows].bool().tolist()
        assert dones == [step % 2 == 1 or step == len(dones) - 1 for step in range(len(dones))]


def test_environments_without_the_entry_lose_no_lives():
    stepper = VectorStepper(ToyVectorEnv(3))
    stepper.reset(0)
    assert not stepper.step(np.zeros(3, np.int64)).life_lost.any()


def test_entries_of_environments_that_did_not_give_them_are_ignored():
    class Sparse(ToyVectorEnv):
        def step(self, actions):
            *rest, infos = super().step(actions)
            return *rest, infos | {"life_lost": np.ones(3, bool), "_life_lost": np.array([False, True, False])}

    stepper = VectorStepper(Sparse(3, AutoresetMode.DISABLED))
    stepper.reset(0)
    transition = stepper.step(np.zeros(3, np.int64))
    assert transition.life_lost.tolist() == [False, not transition.ended[1], False]
