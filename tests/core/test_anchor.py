"""The base class of anchors, the anchor of a plain learner, and an anchor written by a third party."""

import dataclasses

import pytest
import torch

from optimist.algorithms.ppo import PPO
from optimist.config import PPOConfig
from optimist.core.anchor import Anchor, NoAnchor, anchor_loss, evaluate_together
from optimist.core.config import OPRConfig
from optimist.core.memory import GoodRows
from optimist.core.regularizer import OptimisticRegularizer
from tests.algorithms.tasks import TableActorCritic, random_rollout
from tests.core.tables import TablePolicy, filled, make_batch, make_steps, stored_rows, two_state_policy


def test_opr_is_an_anchor():
    assert isinstance(NoAnchor(), Anchor)
    assert isinstance(OptimisticRegularizer(OPRConfig()), Anchor)
    assert not isinstance(OptimisticRegularizer(OPRConfig()), NoAnchor)


def test_no_anchor_changes_nothing():
    anchor, policy, losses = NoAnchor(), TablePolicy(), []
    steps, batch = make_steps([[1.0]], [[1]]), make_batch(3)
    anchor.observe(steps)
    assert anchor.shape(steps, policy) is steps.rewards
    assert anchor.replay(batch, policy) is None
    assert anchor.join(batch, make_batch(2)) is batch
    assert list(anchor.sample([4, 4], policy)) == [None, None]
    anchor.after_update(policy, losses.append)
    anchor.forget_unfinished()
    assert (losses, anchor.metrics(), anchor.state_dict()) == ([], {}, {})
    assert list(anchor.in_place_tensors()) == []
    assert anchor.capturable
    anchor.load_state_dict({}, policy)


def test_the_loss_without_rows_is_zero_and_has_no_gradient():
    for loss in (
        anchor_loss(NoAnchor(), TablePolicy(), None),
        evaluate_together(TableActorCritic(), hand_rows(), None).anchor_loss(NoAnchor(), None),
    ):
        assert loss.item() == 0.0
        assert not loss.requires_grad


def hand_rows():
    batch = make_batch(4)
    return dataclasses.replace(batch, obs=torch.tensor([0, 1, 1, 0]), actions=torch.tensor([1, 0, 1, 0]))


def test_rows_of_the_memory_are_evaluated_with_the_minibatch_in_one_pass():
    class Counting(TableActorCritic):
        passes = 0

        def evaluate(self, obs, actions):
            self.passes += 1
            return super().evaluate(obs, actions)

    opr, policy, rows = filled(bc_coef=0.5), Counting(num_states=2, num_actions=2), hand_rows()
    policy.load_state_dict(two_state_policy((0.5, 1.25)).state_dict())
    good = stored_rows(opr)
    found = evaluate_together(policy, rows, good)
    assert policy.passes == 1
    for column, expected in zip(found[:3], policy.evaluate(rows.obs, rows.actions), strict=True):
        torch.testing.assert_close(column, expected)
    expected = anchor_loss(opr, policy, good)
    assert found.anchor_loss(opr, good).item() == pytest.approx(expected.item(), rel=1e-6)
    assert expected.item() > 0.0


class LikesActionZero(Anchor):
    """An anchor of one idea: in every minibatch it clones action 0 in state 2, and it shifts the rewards."""

    def __init__(self):
        self.observed, self.losses, self.phases = 0, 0, 0

    def observe(self, steps):
        self.observed += 1

    def shape(self, steps, policy):
        return steps.rewards + 1.0

    def sample(self, sizes, policy):
        zeros = torch.zeros(2, dtype=torch.int64)
        return iter([GoodRows(obs=zeros + 2, actions=zeros, returns=torch.ones(2), rows=zeros)] * len(sizes))

    def loss_on(self, good, logp, values):
        self.losses += 1
        assert logp.shape == values.shape == (2,)
        return -logp.mean()

    def after_update(self, policy, step):
        self.phases += 1
        step(-policy.log_prob(torch.tensor([3]), torch.tensor([1])).mean())

    def metrics(self):
        return {"likes/observed": float(self.observed)}


def test_an_anchor_acts_at_the_stations_it_overrides():
    anchor, policy = LikesActionZero(), TableActorCritic()
    learner = PPO(policy, PPOConfig(rollout_steps=16, minibatch_size=16, epochs=2, learning_rate=0.05), anchor)
    before = policy.logits.detach().log_softmax(-1)
    for seed in range(5):
        metrics = learner.update(random_rollout(seed))
    after = policy.logits.detach().log_softmax(-1)
    assert isinstance(anchor, Anchor)
    assert (anchor.observed, anchor.losses, anchor.phases) == (5, 5 * 2 * 4, 5)
    assert metrics["likes/observed"] == 5.0
    assert metrics["loss/anchor"] > 0.0
    assert after[2, 0] > before[2, 0] + 0.5
    assert after[3, 1] > before[3, 1]


def test_shaped_rewards_reach_the_value_targets():
    class Shifts(Anchor):
        def shape(self, steps, policy):
            return steps.rewards + 1.0

    losses = []
    for anchor in (None, Shifts()):
        learner = PPO(TableActorCritic(), PPOConfig(rollout_steps=16, minibatch_size=999, epochs=1), anchor)
        losses.append(learner.update(random_rollout(0))["loss/value"])
    assert losses[0] != losses[1]
