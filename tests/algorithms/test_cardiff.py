"""Cardiff's PPO: the update against a plain loop, Monte Carlo returns, and the scale of rewards."""

import copy
import dataclasses

import gymnasium as gym
import numpy as np
import pytest
import torch

from optimist.algorithms.cardiff import CardiffPPO, PolicyInRewards, monte_carlo_returns
from optimist.config import CardiffPPOConfig, EnvConfig, NetworkConfig, RunConfig
from optimist.core.config import OPRConfig
from optimist.core.regularizer import OptimisticRegularizer
from optimist.errors import ConfigError
from optimist.networks.actor_critic import make_actor_critic
from optimist.training.trainer import train
from tests.algorithms.tasks import TableActorCritic, random_rollout
from tests.algorithms.test_ppo import LN2, even_policy, hand_batch

CONFIG = CardiffPPOConfig()
ZERO, PAPER = OPRConfig(bc_coef=0), OPRConfig.paper("cage2")


def whole_episodes(num_steps=6, num_envs=3, seed=0, ignored=False):
    """A rollout of whole episodes: every stream stops at the horizon, which the learner sees or ignores."""
    over = torch.zeros(num_steps, num_envs, dtype=torch.bool)
    over[-1] = True
    dones = torch.zeros_like(over) if ignored else over
    return random_rollout(seed, num_steps, num_envs, dones=dones, episode_ends=over)


def plain_update(network, buffer, config):
    """Update the network by a plain loop over the buffer: obs, actions, logp, rewards, ends, in order of episodes."""
    obs, actions, logp_old, rewards, ends = buffer
    returns, following = [], 0.0
    for reward, end in zip(reversed(rewards), reversed(ends), strict=True):
        following = reward + config.gamma * (0.0 if end else following)
        returns.insert(0, following)
    returns = torch.tensor(returns)
    returns = (returns - returns.mean()) / (returns.std() + 1e-5)
    optimizer = torch.optim.Adam(network.parameters(), lr=config.learning_rate, betas=config.adam_betas)
    for _ in range(config.epochs):
        distribution = torch.distributions.Categorical(logits=network.actor(obs))
        values = network.critic(obs).squeeze(-1)
        ratio = torch.exp(distribution.log_prob(actions) - logp_old)
        advantages = returns - values.detach()
        first, second = ratio * advantages, torch.clamp(ratio, 0.8, 1.2) * advantages
        loss = -torch.min(first, second) + 0.5 * torch.nn.functional.mse_loss(values, returns)
        loss = (loss - 0.01 * distribution.entropy()).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@pytest.mark.parametrize("ignored", [True, False])
def test_an_update_equals_the_plain_loop(ignored):
    rollout = whole_episodes(num_steps=10, num_envs=8, ignored=ignored)
    generator = torch.Generator().manual_seed(5)
    rollout = dataclasses.replace(rollout, obs=torch.randn(10, 8, 4, generator=generator))
    torch.manual_seed(1)
    network = NetworkConfig(hidden=(64, 64), activation="relu", initialization="default")
    spaces = gym.spaces.Box(-1, 1, (4,), np.float32), gym.spaces.Discrete(3)
    policy = make_actor_critic(*spaces, network)
    plain = copy.deepcopy(policy)

    CardiffPPO(policy, CONFIG).update(rollout)

    in_turn = [column.transpose(0, 1).flatten(0, 1) for column in (rollout.obs, rollout.actions, rollout.logp)]
    ends = rollout.dones.T.flatten().tolist()
    plain_update(plain, (*in_turn, rollout.rewards.T.flatten().tolist(), ends), CONFIG)
    for ours, theirs in zip(policy.parameters(), plain.parameters(), strict=True):
        assert torch.allclose(ours, theirs, atol=1e-5)


def test_ignored_ends_let_the_next_episodes_return_leak_into_the_one_before():
    rewards = torch.tensor([[1.0, 10.0], [2.0, 20.0]])  # [T, N]: the episodes [1, 2] and [10, 20]
    over = torch.tensor([[False, False], [True, True]])
    rollout = random_rollout(0, 2, 2, dones=torch.zeros(2, 2, dtype=torch.bool), episode_ends=over)
    returns = monte_carlo_returns(rewards, rollout, gamma=0.5)
    assert returns.T.tolist() == [[1 + 12 / 2, 2 + 20 / 2], [10 + 20 / 2, 20]]  # and nothing after the buffer


def test_returns_stop_at_ends_that_the_learner_sees():
    rewards = torch.tensor([[1.0, 10.0], [2.0, 20.0]])
    over = torch.tensor([[False, False], [True, True]])
    rollout = random_rollout(0, 2, 2, dones=over, episode_ends=over)
    assert monte_carlo_returns(rewards, rollout, gamma=0.5).T.tolist() == [[2, 2], [20, 20]]


def test_a_stream_that_stops_within_an_episode_is_cut_off():
    rewards = torch.tensor([[1.0, 10.0], [2.0, 20.0]])
    no_ends = torch.zeros(2, 2, dtype=torch.bool)
    rollout = random_rollout(0, 2, 2, dones=no_ends, episode_ends=no_ends)
    assert monte_carlo_returns(rewards, rollout, gamma=0.5).T.tolist() == [[2, 2], [20, 20]]


def test_advantages_are_computed_again_in_each_epoch():
    learner, seen = CardiffPPO(TableActorCritic(), CONFIG), []
    losses = learner.losses

    def record_values(batch, good):
        seen.append(learner.policy.value(batch.obs).detach().clone())
        return losses(batch, good)

    learner.losses = record_values
    learner.update(whole_episodes())
    assert len(seen) == CONFIG.epochs
    assert not torch.equal(seen[0], seen[-1])


def test_zero_strength_is_the_plain_learner_bit_for_bit():
    policies = [TableActorCritic() for _ in range(2)]
    policies[1].load_state_dict(policies[0].state_dict())
    learners = [
        CardiffPPO(policies[0], CONFIG),
        CardiffPPO(policies[1], CONFIG, OptimisticRegularizer(ZERO, gae_lambda=1.0)),
    ]
    for seed in range(4):
        metrics = [learner.update(whole_episodes(seed=seed)) for learner in learners]
        assert metrics[0]["loss/policy"] == metrics[1]["loss/policy"]
    for plain, anchored in zip(policies[0].parameters(), policies[1].parameters(), strict=True):
        assert torch.equal(plain, anchored)


def test_the_anchor_sees_values_in_units_of_reward():
    policy = TableActorCritic()
    view = PolicyInRewards(policy)
    returns = torch.tensor([-30.0, -10.0, -20.0])
    view.set_scale(returns)
    assert view.standardize(returns).tolist() == pytest.approx([-1.0, 1.0, 0.0], abs=1e-4)
    obs = torch.arange(6)
    assert torch.allclose(view.value(obs), -20.0 + 10.0 * policy.value(obs), atol=1e-3)
    assert torch.allclose(view.standardize(view.value(obs)), policy.value(obs), atol=1e-5)
    view.set_scale(torch.tensor([4.0]))
    assert torch.isfinite(view.value(obs)).all()


def test_replayed_rows_have_the_scale_of_fresh_ones():
    rollout = whole_episodes(num_steps=8, num_envs=6)
    anchor = OptimisticRegularizer(dataclasses.replace(PAPER, augment_share=1.0, bc_batch_size=8), gae_lambda=1.0)
    learner, batches = CardiffPPO(TableActorCritic(), CONFIG, anchor), []
    losses, learner.losses = learner.losses, lambda batch, good: (batches.append(batch), losses(batch, good))[1]
    learner.update(rollout)
    learner.update(dataclasses.replace(rollout, rewards=rollout.rewards + 1.0))
    augmented = batches[-1]
    assert augmented.num_fresh == 48
    assert len(augmented) == 96
    stored = monte_carlo_returns(rollout.rewards, rollout, CONFIG.gamma)
    again = monte_carlo_returns(rollout.rewards + 1.0, rollout, CONFIG.gamma)
    known = torch.cat([stored.flatten(), again.flatten()])
    replayed = augmented.returns[48:]
    gaps = (replayed[:, None] - known[None]).abs().min(1).values
    assert gaps.max() < 0.02 * known.abs().max()  # returns in units of reward, shaped by at most half a percent


def test_entropy_and_kl_are_of_fresh_rows():
    policy = even_policy()
    with torch.no_grad():
        policy.logits[1, 0] = 9.0  # nearly deterministic in state 1, which only the replayed row visits
    terms = CardiffPPO(policy, CONFIG).losses(hand_batch(num_fresh=1))
    assert terms.entropy.item() == pytest.approx(-CONFIG.entropy_coef * LN2)
    assert terms.mean_entropy.item() == pytest.approx(LN2)
    assert terms.kl.item() == pytest.approx(2 - 1 - LN2)  # ρ = 2


def test_reset_steps_do_not_count_in_the_scale_of_the_returns():
    rewards = torch.tensor([[1.0], [100.0], [3.0]])  # episodes of one step; the second is a reset step
    valid = torch.tensor([[True], [False], [True]])
    learner = CardiffPPO(TableActorCritic(), CONFIG)
    learner.update(random_rollout(0, 3, 1, rewards=rewards, dones=torch.ones(3, 1, dtype=torch.bool), valid=valid))
    assert float(learner.in_rewards.mean) == pytest.approx(2.0)
    assert float(learner.in_rewards.scale) == pytest.approx(2**0.5, abs=1e-4)


@pytest.mark.parametrize("reference", ["recorded", "cloned"])
def test_a_resumed_learner_continues_exactly(reference):
    config = dataclasses.replace(PAPER, reference=reference, bc_batch_size=8, capacity_transitions=200)

    def make():
        torch.manual_seed(3)
        return CardiffPPO(TableActorCritic(), CONFIG, OptimisticRegularizer(config, gae_lambda=1.0))

    whole = make()
    for seed in range(3):
        whole.update(whole_episodes(seed=seed))
    resumed = make()
    resumed.load_state_dict(copy.deepcopy(whole.state_dict()))
    for learner in (whole, resumed):
        for seed in range(3, 6):
            learner.update(whole_episodes(seed=seed))
    for one, other in zip(whole.policy.parameters(), resumed.policy.parameters(), strict=True):
        assert torch.equal(one, other)


def test_bootstrapping_is_refused():
    with pytest.raises(ConfigError, match=r"env.truncation to 'end' or 'ignored'"):
        RunConfig(algorithm=CONFIG)
    assert RunConfig(algorithm=CONFIG, env=EnvConfig(truncation="end")).algorithm.gae_lambda == 1.0


@pytest.mark.parametrize(
    "wrong",
    [{"epochs": 0}, {"clip_eps": 0.0}, {"adam_betas": (0.9, 1.0)}, {"learning_rate": 0.0}, {"rollout_steps": 0}],
)
def test_a_value_out_of_range_is_an_error_with_its_name(wrong):
    with pytest.raises(ConfigError, match=rf"algorithm\.{next(iter(wrong))} must be"):
        CardiffPPOConfig(**wrong)


def test_a_rollout_of_reset_steps_alone_changes_nothing(tmp_path):
    config = RunConfig(
        total_steps=200,
        env=EnvConfig(id="CartPole-v1", num_envs=1, truncation="end"),
        algorithm=CardiffPPOConfig(rollout_steps=1),
        tensorboard=False,
    )
    assert train(config, tmp_path / "run", progress=False)["steps"] == 200
