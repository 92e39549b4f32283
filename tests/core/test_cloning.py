import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from optimist.core.cloning import advantage_weights, bc_loss
from optimist.errors import ShapeMismatch


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
