"""L_BC and the weights of cloned steps: advantages, and how far an episode exceeds luck."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from optimist.core.admission import GroupWindows
from optimist.core.anchor import anchor_loss
from optimist.core.cloning import advantage_weights, bc_loss, luck_weights
from optimist.core.eviction import StoredEpisode
from optimist.errors import ShapeMismatch
from tests.core.tables import (
    LOG_HALF,
    LOG_THREE_QUARTERS,
    episodes,
    filled,
    stored_rows,
    two_state_policy,
)


def test_the_cloning_loss_is_the_mean_negative_log_probability():
    assert bc_loss(torch.tensor([-1.0, -3.0])).item() == 2.0


def test_weights_multiply_each_step_and_the_mean_is_over_all_steps():
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
    assert advantage_weights(returns, values).tolist() == [0.5, 0.0, 0.0, 1.0]


def test_advantage_weights_give_the_value_no_gradient():
    values = torch.tensor([0.5], requires_grad=True)
    assert not advantage_weights(torch.tensor([1.0]), values).requires_grad


def test_shapes_must_match():
    with pytest.raises(ShapeMismatch):
        bc_loss(torch.zeros(3), torch.zeros(1))
    with pytest.raises(ShapeMismatch):
        advantage_weights(torch.zeros(3), torch.zeros(1))


@given(st.floats(-100, 100, width=32), st.floats(-100, 100, width=32))
def test_advantage_weights_are_between_0_and_1_and_0_without_an_advantage(ret, value):
    weight = advantage_weights(torch.tensor([ret]), torch.tensor([value])).item()
    assert 0.0 <= weight <= 1.0
    if ret <= value:
        assert weight == 0.0


def stored(total_reward, group=0):
    row = torch.zeros(1, dtype=torch.int64)
    return StoredEpisode(total_reward, group, 0, False, row, row)


def recent(returns, groups=None):
    windows = GroupWindows(100, 75.0)
    for total_reward, group in zip(returns, groups or [0] * len(returns), strict=True):
        windows.admits(total_reward, group)
    return windows


def test_luck_weights_by_hand():
    # m = 2, s = 2: R = 5, 6, 7, 9 are 1.5, 2, 2.5 and 3.5 deviations above the mean
    found = luck_weights([stored(r) for r in (5.0, 6.0, 7.0, 9.0, -9.0)], recent([0.0, 4.0]), luck=2.0)
    assert found == [0.0, 0.0, 0.5, 1.0, 0.0]


def test_a_goal_reached_in_one_of_100_episodes_exceeds_luck_and_one_in_4_does_not():
    rare, frequent = recent([1.0] + [0.0] * 99), recent([1.0, 0.0, 0.0, 0.0] * 25)
    assert luck_weights([stored(1.0)], rare, luck=2.0) == [1.0]
    assert luck_weights([stored(1.0)], frequent, luck=2.0) == [0.0]


def test_any_return_above_equal_recent_returns_exceeds_luck():
    equal = recent([0.0] * 5)
    assert luck_weights([stored(1e-9), stored(0.0), stored(-1.0)], equal, luck=2.0) == [1.0, 0.0, 0.0]


def test_luck_is_measured_by_the_returns_of_an_episodes_group():
    windows = recent([0.0, 4.0, 100.0, 104.0], groups=[0, 0, 1, 1])
    assert luck_weights([stored(8.0, 0), stored(104.0, 1)], windows, luck=2.0) == [1.0, 0.0]


def test_the_cloning_loss_leaves_out_episodes_within_luck():
    # recent returns 1 and 2: m = 1.5, s = 0.5; the stored ones are 1 deviation below and above
    for luck, weight in ((0.0, 1.0), (0.25, 0.75), (1.0, 0.0)):
        opr = filled(bc_coef=0.5, bc_weights="uniform", bc_luck=luck)
        expected = -0.5 * weight * LOG_THREE_QUARTERS / 2
        assert anchor_loss(opr, two_state_policy(), stored_rows(opr)).item() == pytest.approx(expected, rel=1e-5)
        assert opr.metrics()["opr/beyond_luck"] == pytest.approx(weight / 2)
        assert opr.metrics()["opr/bc_weight"] == pytest.approx(weight / 2)


def test_luck_weights_multiply_advantage_weights():
    # R = 1, 2 and V = 0.75, 1.5: advantages 0.25 and 0.5; luck weights 0 and 0.5
    opr = filled(bc_coef=1.0, bc_weights="advantage", bc_luck=0.5)
    expected = -0.5 * 0.5 * LOG_THREE_QUARTERS / 2
    loss = anchor_loss(opr, two_state_policy((0.75, 1.5)), stored_rows(opr))
    assert loss.item() == pytest.approx(expected, rel=1e-5)


def test_a_stored_episode_exceeds_luck_again_once_recent_returns_are_low():
    opr = filled(bc_coef=1.0, bc_weights="uniform", bc_luck=1.0, return_window=3)
    assert anchor_loss(opr, two_state_policy(), stored_rows(opr)).item() == 0.0
    opr.observe(episodes([-1.0, -1.0, -1.0]))
    expected = -(LOG_HALF + LOG_THREE_QUARTERS) / 2
    assert anchor_loss(opr, two_state_policy(), stored_rows(opr)).item() == pytest.approx(expected, rel=1e-5)


def test_without_luck_every_stored_episode_is_cloned():
    opr = filled(bc_coef=1.0, bc_weights="uniform")
    expected = -(LOG_HALF + LOG_THREE_QUARTERS) / 2
    assert anchor_loss(opr, two_state_policy(), stored_rows(opr)).item() == pytest.approx(expected, rel=1e-5)
    assert "opr/beyond_luck" not in opr.metrics()
