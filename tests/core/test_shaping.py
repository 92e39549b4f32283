"""The log-ratio Δ, its bound Δ̃ and the shaped rewards (paper, eqs. 3 to 5)."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from optimist.core.shaping import bound_log_ratio, log_ratio, shape_rewards
from optimist.errors import ShapeMismatch

FLOATS = st.floats(-50, 50, width=32)


def test_the_log_ratio_is_good_minus_current():
    good, current = torch.tensor([-0.5, -2.0]), torch.tensor([-1.5, -1.0])
    assert log_ratio(good, current).tolist() == [1.0, -1.0]


def test_the_bounded_log_ratio_by_hand():
    # 2 tanh(Δ/2) = 2 (e^Δ − 1)/(e^Δ + 1): Δ = ln 3 gives 1, Δ = −ln 3 gives −1
    delta = torch.tensor([math.log(3.0), -math.log(3.0), 0.0])
    torch.testing.assert_close(bound_log_ratio(delta, 5.0), torch.tensor([1.0, -1.0, 0.0]))
    torch.testing.assert_close(bound_log_ratio(delta, 0.25), torch.tensor([0.25, -0.25, 0.0]))


def test_a_small_log_ratio_is_nearly_unchanged():
    assert bound_log_ratio(torch.tensor([0.002]), 0.01).item() == pytest.approx(0.002, rel=1e-5)


def test_rewards_shaped_as_in_the_paper_by_hand():
    rewards, bounded = torch.tensor([2.0, -1.0, 0.0]), torch.tensor([0.1, 0.1, 0.1])
    torch.testing.assert_close(shape_rewards(rewards, bounded, 0.5), torch.tensor([2.1, -1.05, 0.0]))


def test_the_published_settings_change_a_reward_by_half_a_percent_at_most():
    bounded = bound_log_ratio(torch.tensor([100.0, -100.0]), 0.01)
    torch.testing.assert_close(shape_rewards(torch.ones(2), bounded, 0.5), torch.tensor([1.005, 0.995]))


def test_no_gradient_flows_through_the_shaping():
    delta = torch.tensor([0.3], requires_grad=True)
    assert not shape_rewards(torch.ones(1), bound_log_ratio(delta, 1.0), 0.5).requires_grad


def test_shapes_must_match():
    with pytest.raises(ShapeMismatch):
        log_ratio(torch.zeros(3), torch.zeros(3, 1))
    with pytest.raises(ShapeMismatch):
        shape_rewards(torch.zeros(3), torch.zeros(1), 0.5)


@given(delta=FLOATS, bound=st.floats(0, 2))
def test_the_bound_holds_and_the_sign_is_kept(delta, bound):
    bounded = bound_log_ratio(torch.tensor(delta, dtype=torch.float64), bound).item()
    assert abs(bounded) <= bound
    assert bounded * delta >= 0


@given(reward=FLOATS, bounded=st.floats(0, 2, width=32), scale=st.floats(0, 1))
def test_a_positive_log_ratio_enlarges_a_reward_in_its_own_direction(reward, bounded, scale):
    shaped = shape_rewards(torch.tensor([reward]), torch.tensor([bounded]), scale).item()
    assert abs(shaped) >= abs(reward)
    assert shaped * reward >= 0.0


@given(reward=FLOATS, bounded=st.floats(-2, 2, width=32))
def test_a_scale_of_zero_changes_nothing(reward, bounded):
    assert shape_rewards(torch.tensor([reward]), torch.tensor([bounded]), 0.0).item() == reward
