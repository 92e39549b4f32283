import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from optimist.core.batch import Batch
from optimist.core.cloning import advantage_weights, bc_loss
from optimist.core.config import OPRConfig
from optimist.core.episode import Steps
from optimist.core.regularizer import OptimisticRegularizer
from optimist.errors import ShapeMismatch
from tests.core.test_regularizer import LOG_HALF, LOG_THREE_QUARTERS, episodes, filled, in_order, policy_with


def test_the_cloning_loss_is_the_mean_negative_log_probability():
    assert bc_loss(torch.tensor([-1.0, -3.0])).item() == 2.0


def test_weights_multiply_each_step_and_the_mean_is_over_all_of_them():
    # (0.5 · 1 + 0 · 3) / 2
    assert bc_loss(torch.tensor([-1.0, -3.0]), torch.tensor([0.5, 0.0])).item() == 0.25


def test_weights_get_no_gradient():
    logp = torch.tensor([-1.0, -3.0], requires_grad=True)
    weights = torch.tensor([0.5, 1.0], requires_grad=True)
    bc_loss(logp, weights).backward()
    assert weights.grad is None
    assert logp.grad.tolist() == [-0.25, -0.5]


def test_advantage_weights_by_hand():
    returns, values = torch.tensor([1.0, 0.2, 0.0, 5.0]), torch.tensor([0.5, 0.2, 1.0, 1.0])
    assert advantage_weights(returns, values, 1.0).tolist() == [0.5, 0.0, 0.0, 1.0]
    assert advantage_weights(returns, values, 2.0).tolist() == [0.25, 0.0, 0.0, 1.0]


def test_advantage_weights_give_the_value_no_gradient():
    values = torch.tensor([0.5], requires_grad=True)
    assert not advantage_weights(torch.tensor([1.0]), values, 1.0).requires_grad


def test_shapes_must_match():
    with pytest.raises(ShapeMismatch):
        bc_loss(torch.zeros(3), torch.zeros(1))
    with pytest.raises(ShapeMismatch):
        advantage_weights(torch.zeros(3), torch.zeros(1), 1.0)


@given(st.floats(-100, 100, width=32), st.floats(-100, 100, width=32), st.floats(0.125, 10, width=32))
def test_weights_lie_between_0_and_1_and_are_0_where_nothing_was_gained(ret, value, scale):
    weight = advantage_weights(torch.tensor([ret]), torch.tensor([value]), scale).item()
    assert 0.0 <= weight <= 1.0
    if ret <= value:
        assert weight == 0.0


@pytest.mark.parametrize("size", [0.01, 1.0, 100.0])
def test_in_deviations_weights_do_not_depend_on_the_size_of_rewards(size):
    """Full weight at 2 deviations of the fresh advantages: 0.5 of it weighs a quarter, whatever a reward is worth."""
    config = OPRConfig(bc_advantage_unit="deviation", bc_advantage_scale=2.0, bc_coef=1.0, shaping_scale=0.0)
    opr = OptimisticRegularizer(config, gamma=1.0)
    policy = Fixed(value=0.0)
    obs = torch.zeros(1, 1, 1)
    rewards = torch.full((1, 1), 0.5 * size)
    ends = torch.ones(1, 1, dtype=torch.bool)
    opr.observe(Steps(obs=obs, actions=torch.zeros(1, 1), rewards=rewards, logp=torch.zeros(1, 1), dones=ends))
    advantages = torch.tensor([-1.0, 0.0, 1.0]) * size  # standard deviation: size
    nothing = torch.zeros(3)
    batch = Batch(
        obs=torch.zeros(3, 1),
        actions=nothing,
        logp_old=nothing,
        advantages=advantages,
        returns=advantages,
        values_old=nothing,
    )
    opr.augment(batch, policy)
    assert opr.loss(policy).item() == pytest.approx(0.25, rel=1e-5)  # weight 0.25 of −log π = 1


class Fixed:
    def __init__(self, value):
        self.worth = value

    def log_prob(self, obs, actions):
        return torch.full((len(obs),), -1.0)

    def value(self, obs):
        return torch.full((len(obs),), self.worth)


def test_the_loss_on_the_same_rows_falls_with_lambda():
    opr, policy = filled(bc_coef=0.5, bc_schedule="linear", bc_weights="uniform"), policy_with()
    rows, losses = in_order(opr), []
    for progress in (0.0, 0.5, 0.75):
        opr.observe(episodes([0.0], progress=progress))
        losses.append(opr.loss(policy, rows).item())
    first = -0.5 * (LOG_HALF + LOG_THREE_QUARTERS) / 2
    assert losses == pytest.approx([first, first / 2, first / 4], rel=1e-5)
