"""A2C: losses by hand, replayed rows, and its RMSprop."""

import copy
import dataclasses
import math

import pytest
import torch

from optimist.algorithms.a2c import A2C
from optimist.config import A2CConfig
from optimist.core.config import OPRConfig
from optimist.core.regularizer import OptimisticRegularizer
from optimist.core.steps import Batch
from optimist.errors import NonFiniteLoss
from tests.algorithms.tasks import TableActorCritic, one_step_task, random_rollout
from tests.algorithms.test_ppo import LN2, even_policy, hand_batch

PLAIN = A2CConfig(value_coef=0.5, entropy_coef=0.1)


def test_every_term_of_the_loss_by_hand():
    terms = A2C(even_policy(), PLAIN).losses(hand_batch(advantages=torch.tensor([3.0, -1.0])))
    assert terms.policy.item() == pytest.approx(LN2 * (3.0 - 1.0) / 2)  # −A ln ½
    assert terms.value.item() == pytest.approx(0.5 * (4.0 + 1.0) / 2)
    assert terms.entropy.item() == pytest.approx(-0.1 * LN2)
    assert terms.total.item() == pytest.approx(LN2 + 1.25 - 0.1 * LN2)


def test_replayed_rows_carry_their_weights_and_use_the_fresh_statistics():
    columns = {
        name: torch.cat([getattr(hand_batch(), name)] * 2) for name in ("obs", "actions", "returns", "values_old")
    }
    batch = Batch(
        **columns,
        logp_old=torch.zeros(4),
        advantages=torch.tensor([1.0, 3.0, 6.0, 2.0]),
        weights=torch.tensor([1.0, 1.0, 0.5, 0.0]),
        value_weights=torch.tensor([1.0, 1.0, 0.0, 0.0]),
        num_fresh=2,
    )
    assert A2C(even_policy(), PLAIN).losses(batch).policy.item() == pytest.approx(LN2 * (1 + 3 + 3) / 4)
    standardised = dataclasses.replace(batch, statistics_of=torch.tensor([1.0, 3.0]))  # mean 2, deviation √2
    expected = LN2 * (-1 + 1 + 0.5 * 4) / math.sqrt(2) / 4
    assert A2C(even_policy(), PLAIN).losses(standardised).policy.item() == pytest.approx(expected, rel=1e-5)


def test_entropy_and_kl_are_of_fresh_rows():
    policy = even_policy()
    with torch.no_grad():
        policy.logits[1, 0] = 9.0  # nearly deterministic in state 1, which only the replayed row visits
    terms = A2C(policy, PLAIN).losses(hand_batch(num_fresh=1))
    assert terms.entropy.item() == pytest.approx(-0.1 * LN2)
    assert terms.mean_entropy.item() == pytest.approx(LN2)
    assert terms.kl.item() == pytest.approx(2 - 1 - LN2)  # ρ = 2


def test_an_update_is_one_step_on_the_whole_rollout():
    policy = TableActorCritic()
    learner, steps = A2C(policy, A2CConfig()), []
    taken, learner.step = learner.step, lambda loss: (steps.append(loss.item()), taken(loss))
    learner.update(random_rollout(0))
    assert len(steps) == 1


def test_with_lambda_1_the_targets_are_n_step_returns():
    rollout = random_rollout(2, num_steps=3, num_envs=1, dones=torch.zeros(3, 1, dtype=torch.bool))
    seen = []
    learner = A2C(TableActorCritic(), A2CConfig(gamma=0.5, gae_lambda=1.0))
    losses, learner.losses = learner.losses, lambda batch, good: (seen.append(batch), losses(batch, good))[1]
    rollout = dataclasses.replace(rollout, next_values=torch.cat([rollout.values[1:], torch.tensor([[8.0]])]))
    learner.update(rollout)
    r = rollout.rewards.flatten().tolist()
    expected = [r[0] + 0.5 * r[1] + 0.25 * r[2] + 1.0, r[1] + 0.5 * r[2] + 2.0, r[2] + 4.0]
    assert seen[0].returns.tolist() == pytest.approx(expected, rel=1e-5)


def test_rmsprop_has_the_configs_constants_and_a_falling_rate():
    config = A2CConfig(learning_rate=0.4, learning_rate_schedule="linear", rmsprop_alpha=0.9, rmsprop_eps=1e-3)
    learner = A2C(TableActorCritic(), config)
    learner.update(random_rollout(0, progress=0.25))
    group = learner.optimizer.param_groups[0]
    assert (group["lr"], group["alpha"], group["eps"]) == (pytest.approx(0.3), 0.9, 1e-3)


def test_tensorflows_rmsprop_takes_smaller_steps_for_small_gradients():
    changes = []
    for form in ("torch", "tensorflow"):
        policy = TableActorCritic()
        before = policy.logits.detach().clone()
        A2C(policy, A2CConfig(rmsprop_form=form, max_grad_norm=1e-2)).update(random_rollout(0))
        changes.append((policy.logits - before).abs().max().item())
    assert 0 < 100 * changes[1] < changes[0]


def test_a_nan_loss_is_an_error():
    rollout = random_rollout(0)
    rollout.values[3, 1] = math.nan
    with pytest.raises(NonFiniteLoss, match="became nan"):
        A2C(TableActorCritic(), A2CConfig()).update(rollout)


def test_a_rollout_of_reset_steps_alone_changes_nothing():
    policy = TableActorCritic()
    before = policy.logits.detach().clone()
    assert A2C(policy, A2CConfig()).update(random_rollout(0, 1, 2, valid=torch.zeros(1, 2, dtype=torch.bool))) == {}
    assert policy.logits.equal(before)


def test_a_restored_learner_continues_like_the_saved_one():
    config = A2CConfig(learning_rate=1e-2)
    learner = A2C(TableActorCritic(), config, OptimisticRegularizer(OPRConfig(shaping_scale=0.5, augment_share=0.5)))
    for seed in range(3):
        learner.update(random_rollout(seed))
    other = A2C(
        TableActorCritic(seed=9), config, OptimisticRegularizer(OPRConfig(shaping_scale=0.5, augment_share=0.5), seed=4)
    )
    other.load_state_dict(copy.deepcopy(learner.state_dict()))
    for seed in range(3, 6):
        assert other.update(random_rollout(seed)) == learner.update(random_rollout(seed))
    assert other.policy.logits.equal(learner.policy.logits)


@pytest.mark.parametrize("space", ["discrete", "multi-discrete", "gaussian"])
@pytest.mark.parametrize("anchored", [False, True])
def test_every_kind_of_action_is_learned(space, anchored):
    policy, collector = one_step_task(space, num_steps=4)
    opr = (
        OptimisticRegularizer(OPRConfig(shaping_scale=0.5, augment_share=0.25, bc_batch_size=64)) if anchored else None
    )
    learner = A2C(policy, A2CConfig(learning_rate=1e-2, entropy_coef=0.0), opr)
    means = []
    for update in range(60):
        rollout = collector.collect(progress=update / 60)
        learner.update(rollout)
        means.append(rollout.raw_rewards.mean().item())
    assert means[0] < 0.6
    assert sum(means[-5:]) / 5 > 0.8
