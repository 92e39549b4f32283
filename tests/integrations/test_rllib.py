"""OPR in RLlib: real algorithms, small tasks, one Ray session."""

from __future__ import annotations

import copy

import gymnasium as gym
import numpy as np
import pytest
import torch
from ray.rllib.algorithms.ppo import PPO
from ray.rllib.algorithms.ppo.torch.ppo_torch_learner import PPOTorchLearner
from ray.rllib.connectors.common.frame_stacking import FrameStacking
from ray.rllib.core import DEFAULT_MODULE_ID
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig
from ray.rllib.core.rl_module.rl_module import RLModuleSpec

from optimist.core import OPRConfig
from optimist.errors import ConfigError
from optimist.integrations.rllib import ModulePolicy, OPRLearner, with_opr
from tests.integrations.rllib_walk import (
    HalfTheReward,
    Own,
    Picture,
    Walk,
    built,
    games_of,
    learner_of,
    sampled,
    session,
    settings,
    trained,
    weights,
)
from tests.integrations.tasks import OneLifeAnEpisode

__all__ = ["session"]
NOTHING = OPRConfig(bc_coef=0.0, shaping_scale=0.0)
EVERYTHING = OPRConfig(bc_coef=0.0, shaping_scale=0.0, percentile=0.0)  # admits every episode


@pytest.mark.parametrize(("env", "updates"), [("CartPole-v1", 3), ("Pendulum-v1", 2)])
def test_zero_strength_equals_the_plain_learner_bit_for_bit(env, updates):
    plain, nothing, cloning = (
        trained(settings(env, opr), updates)[0] for opr in (None, NOTHING, OPRConfig(bc_weights="uniform"))
    )
    assert weights(nothing).equal(weights(plain))
    assert nothing.opr.memory.num_transitions > 0
    assert not weights(cloning).equal(weights(plain))


def test_one_step_takes_the_sum_of_ppo_and_cloning_gradients(monkeypatch):
    (episodes,) = sampled(settings(batch=128))
    fixed = torch.linspace(-1, 1, 32).reshape(8, 4), torch.arange(8) % 2

    def fixed_loss(self, policy):
        return -policy.log_prob(*fixed).mean()

    def first_gradients(learner):
        seen, steps = [], []
        apply, step = learner.apply_gradients, learner.get_optimizer(DEFAULT_MODULE_ID).step
        learner.apply_gradients = lambda given: (seen.append({k: v.clone() for k, v in given.items()}), apply(given))
        learner.get_optimizer(DEFAULT_MODULE_ID).step = lambda *given: (steps.append(1), step(*given))[1]
        learner.update(episodes=copy.deepcopy(episodes), minibatch_size=64, num_epochs=1)
        assert len(steps) == len(seen) > 1
        return torch.cat([seen[0][p].flatten() for p in learner.module[DEFAULT_MODULE_ID].parameters()])

    env = gym.make("CartPole-v1")
    alone = first_gradients(settings(batch=128).build_learner(env=env))
    fresh = settings(batch=128).build_learner(env=env).module[DEFAULT_MODULE_ID]
    fixed_loss(None, ModulePolicy(fresh)).backward()
    added = [torch.zeros_like(p) if p.grad is None else p.grad for p in fresh.parameters()]
    monkeypatch.setattr("optimist.core.regularizer.OptimisticRegularizer.loss", fixed_loss)
    both = first_gradients(settings(opr=OPRConfig(), batch=128).build_learner(env=env))
    torch.testing.assert_close(both, alone + torch.cat([gradient.flatten() for gradient in added]))
    assert not torch.allclose(both, alone)


def test_chunks_are_admitted_as_whole_episodes_by_their_raw_return():
    with built(settings(Walk, EVERYTHING, envs=3, fragment=4, batch=12)) as algorithm:
        for _ in range(10):  # no episode ends in the first
            algorithm.train()
        opr, games = learner_of(algorithm).opr, games_of(algorithm)
        played = [total for game in games for total in game.played]
        assert opr.steps == sum(6 * len(game.played) + game.time % 6 for game in games)
    assert len(played) > 15
    assert sorted(stored.total_reward for stored in opr.memory.episodes) == sorted(played)
    assert_whole(opr.memory)


def assert_whole(memory):
    """Every stored episode is one game from its first step to its last."""
    for stored in memory.episodes:
        times, numbers = memory.pools["frames"][stored.frames].unbind(1)
        assert times.tolist() == [0, 1, 2, 3, 4, 5]
        assert len(set(numbers.tolist())) == 1
        assert memory.pools["dones"][stored.rows].tolist() == [False] * 5 + [True]
        assert memory.pools["rewards"][stored.rows].sum() == stored.total_reward


@pytest.mark.slow
def test_remote_runners_and_a_remote_learner_store_whole_episodes():
    config = settings(Walk, EVERYTHING, fragment=4, batch=48).env_runners(num_env_runners=1).learners(num_learners=1)
    with built(config) as algorithm:
        for _ in range(2):
            algorithm.train()
        (memory,) = [result.get() for result in algorithm.learner_group.foreach_learner(lambda it: it.opr.memory)]
    assert len(memory.episodes) > 8
    assert_whole(memory)


def test_only_good_episodes_are_admitted_and_all_count_for_the_threshold():
    learner, result = trained(settings(Walk, NOTHING, batch=240))
    totals = [stored.total_reward for stored in learner.opr.memory.episodes]
    assert 0 < len(totals) < learner.opr.finished
    assert result["opr/memory_episodes"] == len(totals)
    assert result["opr/threshold"] <= max(totals)


def updated(config, episodes, env):
    """Return a learner after one pass over these chunks, and the rows of that pass."""
    learner, rows = config.build_learner(env=env), []
    loss = learner.compute_loss_for_module
    learner.compute_loss_for_module = lambda **given: (rows.append(given["batch"]), loss(**given))[1]
    learner.update(episodes=copy.deepcopy(episodes), num_epochs=1)
    return learner, rows[0]


def test_rewards_are_shaped_before_advantages(monkeypatch):
    monkeypatch.setattr(
        "optimist.core.regularizer.OptimisticRegularizer.shape", lambda _, steps, policy: 3 * steps.rewards - 1
    )
    config = settings(Walk, NOTHING, envs=2, fragment=10, batch=20, gamma=0.0)
    (episodes,) = sampled(config)
    _, rows = updated(config, episodes, Walk())
    seen = np.concatenate([episode.get_rewards() for episode in episodes])
    targets = rows["value_targets"][rows["loss_mask"]]  # without discounting the rewards themselves
    assert targets.tolist() == pytest.approx((3 * seen - 1).tolist(), abs=1e-5)
    assert not rows["rewards"][~rows["loss_mask"]].any()


def test_the_learner_trains_on_shaped_rewards():
    literal = OPRConfig(bc_coef=0.0, shaping_scale=0.5, shaping_bound=0.5, reference="cloned")
    batches, env = sampled(settings(Walk, envs=2, fragment=12, batch=24), times=2), Walk()
    shaped, plain = (settings(Walk, opr, batch=24, fragment=12).build_learner(env=env) for opr in (literal, None))
    for learner in (shaped, plain):
        for batch in batches:
            learner.update(episodes=copy.deepcopy(batch), num_epochs=2)
    assert not weights(shaped).equal(weights(plain))


def first_observed(config, episodes, env, monkeypatch):
    """Return the steps that OPR observes for these chunks, and the policy before training."""
    observed = []
    monkeypatch.setattr(
        "optimist.core.regularizer.OptimisticRegularizer.observe", lambda _, given: observed.append(given)
    )
    policy = ModulePolicy(config.build_learner(env=env).module[DEFAULT_MODULE_ID])
    updated(config, episodes, env)
    return observed[0], policy


@pytest.mark.parametrize("limit", [4, None])
def test_a_time_limit_bootstraps_the_value_of_the_last_state(limit, monkeypatch):
    config = settings(Walk, NOTHING, envs=1, fragment=12, batch=12, env_config={"limit": limit})
    steps, policy = first_observed(config, *sampled(config), Walk(), monkeypatch)
    length = limit or 6
    games = torch.arange(1.0, 1 + 12 // length)
    with torch.no_grad():
        after = policy.value(torch.stack([torch.full_like(games, length), games], 1))
    expected = torch.zeros(12)
    if limit:
        expected[length - 1 :: length] = after
    assert steps.bootstraps[:, 0].tolist() == pytest.approx(expected.tolist(), abs=1e-5)
    assert steps.dones[:, 0].tolist() == ([False] * (length - 1) + [True]) * (12 // length)
    assert steps.raw_rewards[length - 1 :: length, 0].tolist() == steps.rewards.view(-1, length).sum(1).tolist()


@pytest.mark.parametrize(("lives", "length", "factor"), [(False, 6, 2), (True, 3, 1)])
def test_the_recorded_return_counts_if_it_has_the_same_steps(lives, length, factor, monkeypatch):
    def make(_):
        env = gym.wrappers.RecordEpisodeStatistics(Walk())
        return OneLifeAnEpisode(env) if lives else HalfTheReward(env)  # the former halves rewards too

    config = settings(make, NOTHING, envs=2, fragment=12, batch=24)
    steps, _ = first_observed(config, *sampled(config), Walk(), monkeypatch)
    assert steps.rewards.sum() > 0
    seen = steps.rewards.view(-1, length).sum(1)
    assert steps.raw_rewards.view(-1, length).sum(1).tolist() == (factor * seen).tolist()


def test_a_resumed_learner_ends_with_the_weights_of_an_uninterrupted_one():
    cloned = OPRConfig(reference="cloned", shaping_scale=0.5, shaping_bound=0.5, bc_weights="uniform")
    # RLlib's own state leaves its coefficient of the KL term out.
    config, env = settings(Walk, cloned, envs=3, fragment=8, batch=24, use_kl_loss=False), Walk()
    batches = sampled(config, times=4)
    whole, stopped = config.build_learner(env=env), config.build_learner(env=env)
    for batch in batches[:2]:
        whole.update(episodes=copy.deepcopy(batch), num_epochs=1)
        stopped.update(episodes=copy.deepcopy(batch), num_epochs=1)
    assert stopped.unfinished.episodes
    state = copy.deepcopy(stopped.get_state())
    resumed = config.copy(copy_frozen=False).debugging(seed=1).build_learner(env=env)
    assert not weights(resumed).equal(weights(whole))
    resumed.set_state(state)
    for batch in batches[2:]:
        whole.update(episodes=copy.deepcopy(batch), num_epochs=1)
        resumed.update(episodes=copy.deepcopy(batch), num_epochs=1)
    assert resumed.opr.memory.num_transitions == whole.opr.memory.num_transitions > 0
    assert resumed.opr.finished == whole.opr.finished > stopped.opr.finished
    assert weights(resumed).equal(weights(whole))
    assert "opr" not in whole.get_state(components="rl_module")  # the part sent to the runners


def test_an_algorithms_checkpoint_holds_the_memory(tmp_path):
    with built(settings(Walk, EVERYTHING, fragment=32, batch=64)) as algorithm:
        algorithm.train()
        algorithm.save_to_path(str(tmp_path))
        totals = [stored.total_reward for stored in learner_of(algorithm).opr.memory.episodes]
    algorithm = PPO.from_checkpoint(str(tmp_path))
    try:
        assert [stored.total_reward for stored in learner_of(algorithm).opr.memory.episodes] == totals != []
        algorithm.train()
        assert_whole(learner_of(algorithm).opr.memory)
    finally:
        algorithm.stop()


def test_a_state_of_plain_ppo_loads():
    env = gym.make("CartPole-v1")
    plain, learner = settings().build_learner(env=env), settings(opr=NOTHING).build_learner(env=env)
    learner.set_state(plain.get_state())
    assert weights(learner).equal(weights(plain))


def test_cloning_phases_raise_the_probability_of_stored_actions():
    phases = OPRConfig(bc_coef=0.0, bc_phase_interval=1, bc_phase_epochs=10, bc_weights="uniform")
    pulls = []

    class Watching(OPRLearner):
        def after_gradient_based_update(self, *, timesteps):
            rows = self.opr.memory.sample(256, torch.Generator().manual_seed(0))
            before = self.policy.log_prob(rows.obs, rows.actions).mean().item()
            super().after_gradient_based_update(timesteps=timesteps)
            pulls.append(self.policy.log_prob(rows.obs, rows.actions).mean().item() - before)

    trained(with_opr(settings(lr=1e-3).learners(learner_class=Watching), phases))
    assert len(pulls) == 3
    assert min(pulls) > 0


@pytest.mark.parametrize("space", [gym.spaces.Box(-1, 1, (2,)), gym.spaces.MultiDiscrete([2, 3])])
def test_continuous_and_multi_discrete_actions_are_cloned(space):
    class Free(Walk):
        action_space = space

    _, result = trained(settings(Free, OPRConfig()))
    assert result["opr/memory_episodes"] > 0
    assert np.isfinite(result["loss/bc"])


def test_stacked_frames_are_stored_once_and_restored_exactly():
    config = (
        settings(Picture, envs=2, fragment=10, batch=20)
        .env_runners(env_to_module_connector=lambda env, spaces, device: FrameStacking(num_frames=3))
        .env_runners(episode_lookback_horizon=3)
        .learners(learner_connector=lambda obs, actions: FrameStacking(num_frames=3, as_learner_connector=True))
        .rl_module(model_config=DefaultModelConfig(conv_filters=[[4, 4, 2]], conv_activation="relu"))
    )
    seen = []

    class Watching(OPRLearner):
        def compute_loss_for_module(self, **given):
            seen.append(given["batch"]["obs"][given["batch"]["loss_mask"]])
            return super().compute_loss_for_module(**given)

    config = with_opr(config.learners(learner_class=Watching), EVERYTHING, frame_stack=3)
    learner, _ = trained(config, updates=4)
    rows = learner.opr.memory.sample(16, torch.Generator().manual_seed(0))
    assert learner.opr.memory.pools["frames"].shape[1:] == (8, 8)
    everything = torch.cat(seen).movedim(-1, 1)
    direct = learner.module[DEFAULT_MODULE_ID].compute_values({"obs": torch.cat(seen)})
    assert learner.policy.value(everything).equal(direct)
    assert len(everything[:, :, 0, 0].unique(dim=0)) > 20
    for row in rows.obs:
        assert (everything == row).flatten(1).all(1).any()


def test_a_custom_learner_combines_with_opr():
    class Doubled(PPOTorchLearner):
        def compute_loss_for_module(self, **given):
            return 2 * super().compute_loss_for_module(**given)

    class Both(OPRLearner, Doubled):
        pass

    alone, _ = trained(settings().learners(learner_class=Doubled))
    both, _ = trained(with_opr(settings().learners(learner_class=Both), NOTHING))
    assert weights(both).equal(weights(alone))
    assert both.opr.memory.episodes
    with pytest.raises(ConfigError, match="Doubled is not an OPRLearner: derive it from OPRLearner"):
        with_opr(settings().learners(learner_class=Doubled))


def test_a_custom_module_is_cloned():
    learner, result = trained(settings(Walk, OPRConfig()).rl_module(rl_module_spec=RLModuleSpec(module_class=Own)))
    assert isinstance(learner.policy.module, Own)
    assert result["loss/bc"] > 0
