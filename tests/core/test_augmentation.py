"""Replayed rows: their ratio, their weights, their advantages, and their part in statistics, entropy and value loss."""

import dataclasses
import math

import pytest
import torch

from optimist.algorithms.ppo import PPO
from optimist.config import PPOConfig
from optimist.core.advantages import gae
from optimist.core.augmentation import replayed_batch, shape_replayed
from optimist.core.config import OPRConfig
from optimist.core.memory import GoodEpisodeMemory
from optimist.core.steps import Batch
from tests.algorithms.tasks import TableActorCritic
from tests.core.tables import TablePolicy, make_episode

GAMMA, LAMBDA = 0.9, 0.8


def config(**changes):
    return OPRConfig(augment_share=0.5, **changes)


def good_rows(logp=None, **columns):
    """One stored episode of three steps in states 0, 1, 2, its actions 0, 1, 2."""
    memory = GoodEpisodeMemory(100, 10, gamma=GAMMA)
    columns = {
        "frames": torch.arange(3),
        "actions": torch.arange(3),
        "rewards": torch.tensor([1.0, 0.0, 2.0]),
    } | columns
    memory.add(make_episode(3, logp=torch.full((3,), -1.0) if logp is None else logp, **columns))
    return memory.sample_episodes(3, torch.Generator().manual_seed(0))


def replayed(policy, good, cfg):
    return replayed_batch(policy, good, None, cfg, GAMMA, LAMBDA)


def test_decoupled_weights_are_the_truncated_ratio_of_current_to_recorded_probability():
    policy = TablePolicy()
    now = policy.log_prob(torch.arange(3), torch.arange(3)).detach()
    good = good_rows(logp=now - torch.tensor([math.log(0.25), 0.0, math.log(4.0)]))  # ratios 0.25, 1 and 4
    batch = replayed(policy, good, config(augment_rows="decoupled"))
    torch.testing.assert_close(batch.weights, torch.tensor([0.25, 1.0, 1.0]))
    assert batch.logp_old.equal(now)


@pytest.mark.parametrize("augment_rows", ["recorded", "full"])
def test_recorded_rows_clip_around_the_recorded_probability_with_full_weight(augment_rows):
    good = good_rows(logp=torch.tensor([-0.1, -2.0, -5.0]))
    batch = replayed(TablePolicy(), good, config(augment_rows=augment_rows))
    assert batch.logp_old.tolist() == pytest.approx([-0.1, -2.0, -5.0])
    assert batch.weights.tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(("augment_rows", "weight"), [("decoupled", 0.0), ("recorded", 0.0), ("full", 1.0)])
def test_only_full_rows_have_a_value_loss(augment_rows, weight):
    batch = replayed(TablePolicy(), good_rows(), config(augment_rows=augment_rows))
    assert batch.value_weights.tolist() == [weight] * 3


def test_advantages_are_gae_of_the_stored_episode_under_the_current_value():
    policy, good = TablePolicy(), good_rows(bootstraps=torch.tensor([0.0, 0.0, 7.0]))
    batch = replayed(policy, good, config())
    values = policy.values.detach()[:3]
    following = torch.tensor([values[1], values[2], 7.0])
    expected, returns = gae(good.rewards, values, following, good.dones, GAMMA, LAMBDA)
    torch.testing.assert_close(batch.advantages, expected)
    torch.testing.assert_close(batch.returns, returns)
    assert batch.values_old.equal(values)


def test_advantages_of_one_episode_do_not_depend_on_the_next():
    memory = GoodEpisodeMemory(100, 10, gamma=GAMMA)
    memory.add(make_episode(1, frames=torch.tensor([0]), actions=torch.tensor([0]), rewards=torch.tensor([1.0])))
    good = memory.sample_episodes(4, torch.Generator().manual_seed(0))
    policy = TablePolicy()
    batch = replayed(policy, good, config())
    torch.testing.assert_close(batch.advantages, (1.0 - policy.values.detach()[0]).expand(4))


def test_replayed_rows_carry_no_gradient():
    batch = replayed(TablePolicy(), good_rows(), config(augment_rows="full"))
    columns = (batch.logp_old, batch.advantages, batch.returns, batch.values_old, batch.weights, batch.value_weights)
    assert not any(column.requires_grad for column in columns)


def test_replayed_rewards_are_shaped_by_the_recorded_probability():
    # π_good = 2/3, π_θ = 1/3: Δ = ln 2 → 2 tanh(ln 2 / 2) = 2/3, bounded by δ = 0.5; α = 0.5: r (1 + 0.25)
    policy, good = TablePolicy(num_states=3, num_actions=3), good_rows(logp=torch.full((3,), math.log(2 / 3)))
    with torch.no_grad():
        policy.logits.zero_()  # π_θ = 1/3 everywhere
    shaped = OPRConfig(shaping_scale=0.5, shaping_bound=0.5)
    logp = policy.log_prob(good.obs, good.actions).detach()
    torch.testing.assert_close(shape_replayed(good, logp, None, shaped), torch.tensor([1.25, 0.0, 2.5]))
    wide = dataclasses.replace(shaped, shaping_bound=10.0)
    expected = good.rewards * (1 + 0.5 * 2 / 3)
    torch.testing.assert_close(shape_replayed(good, logp, None, wide), expected)


def test_a_cloned_reference_replaces_the_recorded_probability():
    class Fixed:
        def log_prob(self, obs, actions):
            return torch.zeros(len(obs))

    good = good_rows()
    shaped = OPRConfig(shaping_scale=1.0, shaping_bound=10.0)
    logp = torch.full((3,), -math.log(3.0))  # Δ = ln 3 → 1
    torch.testing.assert_close(shape_replayed(good, logp, Fixed(), shaped), 2.0 * good.rewards)


def test_stored_rewards_are_unchanged_without_shaping():
    good = good_rows()
    assert shape_replayed(good, torch.zeros(3), None, config()) is good.rewards


@pytest.mark.parametrize(("num_fresh", "counted"), [(0, 2), (-1, 4)], ids=["recorded", "full"])
def test_full_rows_count_in_statistics_entropy_kl_and_value_loss_by_hand(num_fresh, counted):
    """Two fresh rows in state 0, two replayed ones in state 1; only the latter is certain about its action."""
    policy = TableActorCritic(num_states=2, num_actions=2)
    with torch.no_grad():
        policy.logits.copy_(torch.tensor([[0.0, 0.0], [math.log(3.0), 0.0]]))  # π(0|s) = 1/2 and 3/4
        policy.values.copy_(torch.tensor([1.0, 2.0]))
    fresh = Batch(
        obs=torch.zeros(2, dtype=torch.int64),
        actions=torch.zeros(2, dtype=torch.int64),
        logp_old=torch.full((2,), math.log(1 / 2)),
        advantages=torch.tensor([1.0, 3.0]),
        returns=torch.tensor([2.0, 1.0]),  # squared errors 1 and 0
        values_old=torch.zeros(2),
    )
    replayed = dataclasses.replace(
        fresh,
        obs=torch.ones(2, dtype=torch.int64),
        logp_old=torch.full((2,), math.log(3 / 8)),  # ratio 2
        advantages=torch.tensor([5.0, 7.0]),
        returns=torch.tensor([5.0, 2.0]),  # squared errors 9 and 0
        weights=torch.ones(2),
        value_weights=torch.full((2,), float(num_fresh == -1)),
        num_fresh=num_fresh,
    )
    learner = PPO(policy, PPOConfig(normalize_advantages="minibatch", clip_eps=100.0, value_coef=1.0, entropy_coef=1.0))
    terms = learner.losses(fresh.joined(replayed))
    advantages = torch.tensor([1.0, 3.0, 5.0, 7.0])
    known = advantages[:counted]
    standardized = (advantages - known.mean()) / known.std()
    ratios = torch.tensor([1.0, 1.0, 2.0, 2.0])
    assert terms.policy.item() == pytest.approx(-(ratios * standardized).mean().item(), rel=1e-4)
    assert terms.value.item() == pytest.approx((1 + 0) / 2 if counted == 2 else (1 + 0 + 9 + 0) / 4)
    even, certain = math.log(2.0), -(0.75 * math.log(0.75) + 0.25 * math.log(0.25))
    assert terms.mean_entropy.item() == pytest.approx(even if counted == 2 else (even + certain) / 2, rel=1e-5)
    kl = 2.0 - 1.0 - math.log(2.0)
    assert terms.kl.item() == pytest.approx(0.0 if counted == 2 else kl / 2, abs=1e-6)
