"""OPR in Tianshou: the steps it observes, and what it does not support."""

from __future__ import annotations

import gymnasium as gym
import numpy as np
import pytest
import torch
from tianshou.algorithm.modelfree.reinforce import DiscreteActorPolicy
from tianshou.algorithm.optim import AdamOptimizerFactory
from tianshou.data import VectorReplayBuffer
from tianshou.trainer import OnPolicyTrainerParams
from tianshou.utils.net.common import Net, Recurrent
from tianshou.utils.net.discrete import DiscreteCritic

from optimist.core import OPRConfig
from optimist.errors import ConfigError
from optimist.integrations.tianshou import OPRPPO, rows_by_env
from tests.integrations.tianshou_tasks import (
    EVERYTHING,
    Film,
    Game,
    OneLifeAnEpisode,
    collect_from,
    make,
    observed,
    recorded_lives,
    remembered,
    train,
    update_by_hand,
)


def test_episode_statistics_give_ends_and_returns(monkeypatch):
    steps_seen = observed(monkeypatch)
    algorithm = train(make(OPRPPO, Game(), opr=EVERYTHING), [recorded_lives] * 2, rollout=24)
    (steps,) = steps_seen
    for n in range(2):
        assert steps.dones[:, n].tolist() == [False, False, True] * 4
        assert steps.episode_ends[:, n].tolist() == [*[False] * 5, True] * 2
    assert steps.rewards.tolist() == steps.actions.tolist()
    assert not steps.bootstraps.any()
    raw = 2.0 * steps.actions.view(2, 6, 2).sum(1)
    assert steps.raw_rewards.view(2, 6, 2).sum(1).tolist() == raw.tolist()
    kept = remembered(algorithm)
    assert len(kept) == 4
    assert sorted(episode.total_reward for episode in kept) == sorted(raw.flatten().tolist())
    assert {episode.length for episode in kept} == {6}


def test_episodes_longer_than_a_rollout_are_stored_whole_with_their_recorded_return():
    def clipped():
        return gym.wrappers.TransformReward(gym.wrappers.RecordEpisodeStatistics(Game()), lambda reward: reward / 2)

    algorithm = train(make(OPRPPO, Game(), opr=EVERYTHING), [clipped] * 2, rollout=8, updates=6)
    kept = remembered(algorithm)
    assert len(kept) == 8
    for episode in kept:
        assert episode.frames[:, 0].tolist() == pytest.approx([time / 6 for time in range(6)])
        assert episode.total_reward == 2 * episode.actions.sum() == 2 * episode.rewards.sum()
    assert len({episode.total_reward for episode in kept}) > 1


def test_lost_lives_before_the_first_recorded_end_need_the_setting():
    lives = [recorded_lives]
    with pytest.raises(ConfigError, match="set episode_statistics = True"):
        train(make(OPRPPO, Game()), lives, rollout=4, updates=3)
    algorithm = train(make(OPRPPO, Game(), opr=EVERYTHING, episode_statistics=True), lives, rollout=4, updates=3)
    assert [episode.length for episode in remembered(algorithm)] == [6, 6]
    learners = train(make(OPRPPO, Game(), opr=EVERYTHING, episode_statistics=False), lives, rollout=4, updates=3)
    assert [episode.length for episode in remembered(learners)] == [3, 3, 3, 3]
    resumed = make(OPRPPO, Game())
    resumed.load_state_dict(train(make(OPRPPO, Game()), lives, rollout=12).state_dict())
    train(resumed, lives, rollout=4)  # it has been seen before the checkpoint
    assert resumed.opr.finished == 2
    declared = make(OPRPPO, Game(), episode_statistics=True)
    declared.load_state_dict(learners.state_dict())
    assert train(declared, lives, rollout=12).opr.finished == 4 + 2


def test_a_time_limit_outside_the_recorder_is_an_error():
    def limited():
        recorder = gym.wrappers.RecordEpisodeStatistics(Game())
        return gym.wrappers.TimeLimit(recorder, 4)

    with pytest.raises(ConfigError, match=r"a time limit outside RecordEpisodeStatistics.*put the limit inside"):
        train(make(OPRPPO, Game(), episode_statistics=True), [limited], rollout=12)
    below = gym.wrappers.RecordEpisodeStatistics(gym.wrappers.TimeLimit(Game(), 4))
    algorithm = train(make(OPRPPO, Game(), opr=EVERYTHING), [lambda: below], rollout=12)
    assert [episode.length for episode in remembered(algorithm)] == [4, 4, 4]


def test_without_a_recorder_the_learners_rewards_and_ends_are_used(monkeypatch):
    steps_seen = observed(monkeypatch)
    train(make(OPRPPO, Game()), [lambda: OneLifeAnEpisode(Game())], rollout=12)
    (steps,) = steps_seen
    assert steps.episode_ends.equal(steps.dones)
    assert steps.raw_rewards.equal(steps.rewards.double())


@pytest.mark.parametrize("scaling", [False, True])
def test_a_time_limit_bootstraps_the_value_of_the_last_state(scaling, monkeypatch):
    algorithm = make(OPRPPO, Game(), return_scaling=scaling)
    algorithm.ret_rms.var = 4.0  # the critic learns half of every return
    values = []
    steps_seen = observed(monkeypatch, lambda: values.append(algorithm.critic(torch.tensor([[4 / 6]])).item()))
    train(algorithm, [lambda: Game(limit=4)] * 2, rollout=16)
    value = values[0] * (2 if scaling else 1)
    assert abs(value) > 0.01
    assert steps_seen[0].bootstraps.T.tolist() == [pytest.approx([0, 0, 0, value] * 2, abs=1e-5)] * 2
    assert steps_seen[0].dones[:, 0].tolist() == [False, False, False, True] * 2


def test_rollouts_may_be_whole_episodes_of_any_length(monkeypatch):
    steps_seen = observed(monkeypatch)
    games = [lambda: Game(2), lambda: Game(7), lambda: Game(3)]
    algorithm = make(OPRPPO, Game(), opr=EVERYTHING)
    rollout = {"collection_step_num_env_steps": None, "collection_step_num_episodes": 8}
    params = OnPolicyTrainerParams(
        training_collector=collect_from(algorithm, games),
        max_epochs=1,
        epoch_num_steps=40,
        **rollout,
        batch_size=None,
        verbose=False,
        show_progress=False,
    )
    result = algorithm.run_training(params)
    assert len(steps_seen) > 1
    assert steps_seen[0].valid is not None
    assert algorithm.opr.finished == result.train_episode == 8 * len(steps_seen)
    assert algorithm.opr.steps == result.train_step
    assert {episode.length for episode in remembered(algorithm)} == {2, 3, 7}
    for episode in remembered(algorithm):
        times = [time / episode.length for time in range(episode.length)]
        assert episode.frames[:, 0].tolist() == pytest.approx(times)


def test_unfinished_episodes_are_dropped_where_environments_restart():
    algorithm = make(OPRPPO, Game(), opr=EVERYTHING)
    collector = collect_from(algorithm, [Game] * 2)
    for _ in range(2):
        train(algorithm, None, rollout=16, updates=2, collector=collector)
    assert [episode.length for episode in remembered(algorithm)] == [6] * 8  # two games and four steps, twice


@pytest.mark.parametrize("stacked_by", ["wrapper", "buffer"])
def test_stacked_frames_are_stored_once_and_restored_exactly(stacked_by):
    seen = []

    class Watching(gym.ObservationWrapper):
        def observation(self, observation):
            seen.append(torch.tensor(np.array(observation)))
            return observation

    def stacked():
        return Watching(gym.wrappers.FrameStackObservation(Film(), 4, padding_type="reset"))

    algorithm = make(OPRPPO, stacked(), opr=OPRConfig(percentile=0.0, bc_coef=0.0), frame_stack=4)
    buffer = VectorReplayBuffer(64, 2, stack_num=4, save_only_last_obs=True, ignore_obs_next=True)
    collector = collect_from(algorithm, [stacked] * 2, buffer=buffer if stacked_by == "buffer" else None)
    train(algorithm, None, rollout=16, updates=3, collector=collector)
    rows = algorithm.opr.memory.sample(64, torch.Generator().manual_seed(0))
    assert rows.obs.shape[1:] == (4, 5, 5)
    everything = torch.stack(seen)
    for row in rows.obs:
        assert (everything == row).flatten(1).all(1).any()
    assert {len(episode.frames) for episode in remembered(algorithm)} == {6 + 3}


def test_a_buffer_that_lost_steps_is_an_error():
    algorithm = make(OPRPPO, Game())
    with pytest.raises(ConfigError, match="holds 8 of the 16 steps"):
        train(algorithm, None, rollout=16, collector=collect_from(algorithm, [Game] * 2, size=8))
    with pytest.raises(ConfigError, match="does not hold every step"):
        update_by_hand(algorithm, steps=16, size=10)
    update_by_hand(algorithm, steps=16, size=16)


class Seen(Game):
    observation_space = gym.spaces.Dict({"time": Game.observation_space})

    def _seen(self):
        return {"time": super()._seen()}


class SeesTime(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 2)

    def forward(self, obs, state=None, info=None):
        return self.layer(torch.as_tensor(obs.time, dtype=torch.float32)), None


def with_actor(actor):
    algorithm = make(OPRPPO, Game())
    algorithm.policy.actor = actor
    return algorithm


@pytest.mark.parametrize(
    ("algorithm", "game", "message"),
    [
        (lambda: with_actor(SeesTime()), Seen, "needs array observations"),
        (
            lambda: with_actor(Recurrent(layer_num=1, state_shape=1, action_shape=2, hidden_layer_size=4)),
            Game,
            "a policy that is not recurrent",
        ),
        (lambda: make(OPRPPO, Game(), frame_stack=4), Game, r"frame_stack is 4, but observations are \[1\]"),
    ],
)
def test_unsupported_algorithms_are_errors(algorithm, game, message):
    with pytest.raises(ConfigError, match=message):
        train(algorithm(), [game] * 2, rollout=12)


def test_rows_are_ordered_by_time_and_environment():
    edges, dones = np.array([0, 5, 10, 15]), np.array([False, True, False, False, True])
    rows = rows_by_env(np.array([0, 1, 10, 11, 12]), edges, dones)
    assert rows.tolist() == [[0, -1, 2], [1, -1, 3], [-1, -1, 4]]
    together = rows_by_env(np.array([0, 1, 5, 6, 10, 11]), edges, np.zeros(6, bool))
    assert together.tolist() == [[0, 2, 4], [1, 3, 5]]
    with pytest.raises(ConfigError, match="did not step together"):  # an unfinished episode would have a gap
        rows_by_env(np.array([0, 1, 10, 11, 12]), edges, ~dones)


def test_replayed_rows_and_policies_with_their_own_forward_are_errors():
    class Masked(DiscreteActorPolicy):
        def forward(self, batch, state=None):
            return super().forward(batch, state)

    with pytest.raises(ConfigError, match="set augment_share = 0"):
        make(OPRPPO, Game(), opr=OPRConfig.paper("atari"))
    net = Net(state_shape=1, action_shape=2)
    with pytest.raises(ConfigError, match="Masked overrides forward"):
        OPRPPO(
            policy=Masked(actor=net, action_space=Game.action_space),
            critic=DiscreteCritic(preprocess_net=net),
            optim=AdamOptimizerFactory(),
        )
