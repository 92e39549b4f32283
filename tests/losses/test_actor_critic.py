"""Losses of actor-critic learners by hand: policy and value."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from optimist.errors import ShapeMismatch
from optimist.losses.actor_critic import (
    approximate_kl,
    clipped_squared_error,
    clipped_surrogate,
    policy_gradient,
    squared_error,
    standardize,
)

NUMBERS = st.floats(-10, 10, width=32)


def test_the_clipped_surrogate_by_hand():
    # ρ = 2, 2, 0.5, 0.5 and 1.1; A = 1, −1, 1, −1 and 2; ε = 0.2
    # min(ρA, clip(ρ)A) = 1.2, −2, 0.5, −0.8, 2.2
    logp = torch.tensor([2.0, 2.0, 0.5, 0.5, 1.1]).log()
    advantages = torch.tensor([1.0, -1.0, 1.0, -1.0, 2.0])
    expected = -(1.2 - 2.0 + 0.5 - 0.8 + 2.2) / 5
    assert clipped_surrogate(logp, torch.zeros(5), advantages, 0.2).item() == pytest.approx(expected, rel=1e-5)


def test_the_surrogate_has_no_gradient_where_it_is_clipped():
    logp = torch.tensor([2.0, 2.0, 0.5, 0.5]).log().requires_grad_()
    clipped_surrogate(logp, torch.zeros(4), torch.tensor([1.0, -1.0, 1.0, -1.0]), 0.2).backward()
    assert logp.grad.tolist() == pytest.approx([0.0, 0.5, -0.125, 0.0])  # −ρA / 4, or 0


def test_the_first_gradient_of_ppo_is_the_policy_gradient():
    logp, advantages = torch.randn(8, requires_grad=True), torch.randn(8)
    clipped_surrogate(logp, logp.detach(), advantages, 0.2).backward()
    first = logp.grad.clone()
    logp.grad = None
    policy_gradient(logp, advantages).backward()
    torch.testing.assert_close(first, logp.grad)


def test_the_policy_gradient_by_hand():
    logp, advantages = torch.tensor([-1.0, -2.0]), torch.tensor([3.0, -1.0])
    assert policy_gradient(logp, advantages).item() == 0.5  # −(3·−1 + −1·−2) / 2
    assert policy_gradient(logp, advantages, torch.tensor([0.5, 1.0])).item() == -0.25


def test_weights_multiply_rows_and_the_mean_is_over_all_rows():
    logp, advantages = torch.zeros(4), torch.tensor([1.0, 2.0, 3.0, 4.0])
    weighted = clipped_surrogate(logp, logp, advantages, 0.2, torch.tensor([1.0, 1.0, 0.5, 0.0]))
    assert weighted.item() == -(1.0 + 2.0 + 1.5) / 4


def test_values_are_standardised_by_the_given_statistics():
    values, others = torch.tensor([4.0, 6.0, 100.0]), torch.tensor([1.0, 3.0])  # mean 2, standard deviation √2
    expected = (values - 2.0) / math.sqrt(2.0)
    torch.testing.assert_close(standardize(values, others), expected)


def test_a_single_value_is_centred_and_not_divided_by_zero():
    assert standardize(torch.tensor([5.0]), torch.tensor([5.0])).tolist() == [0.0]


def test_equal_values_do_not_become_nan():
    assert standardize(torch.full((4,), 3.0), torch.full((4,), 3.0)).tolist() == [0.0] * 4


def test_the_approximate_kl_by_hand():
    logp = torch.tensor([math.log(2.0), 0.0], requires_grad=True)
    kl = approximate_kl(logp, torch.zeros(2))
    assert kl.item() == pytest.approx((2.0 - 1.0 - math.log(2.0)) / 2)
    assert not kl.requires_grad


@given(st.lists(st.floats(-5, 5, width=32), min_size=1, max_size=10))
def test_the_approximate_kl_is_never_negative(log_ratios):
    assert approximate_kl(torch.tensor(log_ratios), torch.zeros(len(log_ratios))).item() >= -1e-6


@given(
    st.lists(st.tuples(st.floats(-2, 2, width=32), st.floats(-5, 5, width=32)), min_size=1, max_size=8),
    st.floats(0.01, 0.5),
)
def test_the_clipped_surrogate_is_never_below_the_unclipped_loss(rows, eps):
    logp, advantages = torch.tensor(rows).double().T
    plain = -(logp.exp() * advantages).mean()
    assert clipped_surrogate(logp, torch.zeros_like(logp), advantages, eps) >= plain - 1e-9


def test_shapes_of_policy_losses_must_match():
    with pytest.raises(ShapeMismatch):
        clipped_surrogate(torch.zeros(3), torch.zeros(3), torch.zeros(3, 1), 0.2)
    with pytest.raises(ShapeMismatch):
        policy_gradient(torch.zeros(3), torch.zeros(1))


def test_the_squared_error_by_hand():
    values, returns = torch.tensor([1.0, 2.0]), torch.tensor([0.0, 5.0])
    assert squared_error(values, returns).item() == 5.0  # (1 + 9) / 2
    assert squared_error(values, returns, torch.tensor([1.0, 0.0])).item() == 1.0  # the second row has no weight
    assert squared_error(values, returns, torch.tensor([1.0, 3.0])).item() == 7.0  # (1 + 3 · 9) / 4


def test_the_clipped_squared_error_by_hand():
    # V_clip = 0 + clip(V, ± 0.5): 0.5 and 0.25; R = 1 and 1
    # max((1 − 1)², (0.5 − 1)²) = 0.25; max((0.25 − 1)², the same) = 0.5625
    values, old, returns = torch.tensor([1.0, 0.25]), torch.zeros(2), torch.ones(2)
    assert clipped_squared_error(values, old, returns, 0.5).item() == (0.25 + 0.5625) / 2
    assert clipped_squared_error(values, old, returns, 0.5, torch.tensor([0.0, 1.0])).item() == 0.5625


def test_a_value_clipped_away_from_the_target_has_no_gradient():
    values = torch.tensor([1.0], requires_grad=True)
    clipped_squared_error(values, torch.zeros(1), torch.tensor([1.2]), 0.5).backward()
    assert values.grad.item() == 0.0


@given(st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS), min_size=1, max_size=8), st.floats(0.1, 5))
def test_the_clipped_error_is_never_below_the_squared_error(rows, clip):
    values, old, returns = torch.tensor(rows).T
    assert clipped_squared_error(values, old, returns, clip) >= squared_error(values, returns)


def test_shapes_of_value_losses_must_match():
    with pytest.raises(ShapeMismatch):
        squared_error(torch.zeros(3, 1), torch.zeros(3))
    with pytest.raises(ShapeMismatch):
        clipped_squared_error(torch.zeros(3), torch.zeros(3), torch.zeros(1), 0.1)
