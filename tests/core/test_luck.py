"""What lies within the spread of recent returns is luck, and is not cloned."""

import math
from statistics import pstdev

import pytest
import torch

from optimist.core.luck import beyond_luck
from optimist.core.retention import Stored
from optimist.core.threshold import Thresholds
from optimist.errors import ConfigError
from tests.core.test_regularizer import (
    LOG_HALF,
    LOG_THREE_QUARTERS,
    episodes,
    filled,
    in_order,
    policy_with,
    regularizer,
)


def stored(total_reward, group=0):
    return Stored(total_reward, group, 0, False, torch.zeros(1, dtype=torch.int64), torch.zeros(1, dtype=torch.int64))


def recent(returns, groups=None, *, shared=False):
    thresholds = Thresholds(100, 75.0, shared=shared)
    for total_reward, group in zip(returns, groups or [0] * len(returns), strict=True):
        thresholds.add(total_reward, group)
    return thresholds


def test_by_hand():
    # m = 2, s = 2: R = 5, 6, 7, 9 lie 1.5, 2, 2.5 and 3.5 deviations above
    window = recent([0.0, 4.0])
    found = beyond_luck([stored(r) for r in (5.0, 6.0, 7.0, 9.0, -9.0)], window, luck=2.0)
    assert found == [0.0, 0.0, 0.5, 1.0, 0.0]


def test_a_goal_that_one_episode_in_a_hundred_reaches_is_beyond_luck_and_every_fourth_is_not():
    seldom, often = recent([1.0] + [0.0] * 99), recent([1.0, 0.0, 0.0, 0.0] * 25)
    assert beyond_luck([stored(1.0)], seldom, luck=2.0) == [1.0]
    assert beyond_luck([stored(1.0)], often, luck=2.0) == [0.0]


def test_where_recent_returns_are_all_alike_anything_above_them_is_beyond_luck():
    forgotten = recent([0.0] * 5)
    assert beyond_luck([stored(1e-9), stored(0.0), stored(-1.0)], forgotten, luck=2.0) == [1.0, 0.0, 0.0]


def test_a_group_is_measured_by_its_own_returns_unless_they_are_shared():
    returns, groups = [0.0, 4.0, 100.0, 104.0], [0, 0, 1, 1]
    both = [stored(8.0, 0), stored(104.0, 1)]
    assert beyond_luck(both, recent(returns, groups), luck=2.0) == [1.0, 0.0]
    z = (104.0 - 52.0) / pstdev(returns)
    assert beyond_luck(both, recent(returns, groups, shared=True), luck=0.5) == pytest.approx([0.0, z - 0.5])


def test_the_cloning_loss_leaves_out_what_is_luck():
    # recent returns 1 and 2: m = 1.5, s = 0.5; the stored ones lie 1 deviation below and above
    for luck, weight in ((0.0, 1.0), (0.25, 0.75), (1.0, 0.0)):
        opr = filled(bc_coef=0.5, bc_weights="uniform", bc_luck=luck)
        expected = -0.5 * weight * LOG_THREE_QUARTERS / 2
        assert opr.loss(policy_with(), in_order(opr)).item() == pytest.approx(expected, rel=1e-5)
        assert opr.metrics()["opr/beyond_luck"] == pytest.approx(weight / 2)
        assert opr.metrics()["opr/bc_weight"] == pytest.approx(weight / 2)


def test_it_multiplies_the_other_weights():
    # R = 1, 2 and V = 0.5, 1: advantages 0.5 and 1, of which the scale of 2 makes 0.25 and 0.5
    opr = filled(bc_coef=1.0, bc_weights="advantage", bc_advantage_scale=2.0, bc_luck=0.5)
    expected = -0.5 * 0.5 * LOG_THREE_QUARTERS / 2
    assert opr.loss(policy_with((0.5, 1.0)), in_order(opr)).item() == pytest.approx(expected, rel=1e-5)


def test_what_the_policy_can_no_longer_do_comes_back():
    """The same two episodes, once all recent returns are −1: now both are beyond luck."""
    opr = filled(bc_coef=1.0, bc_weights="uniform", bc_luck=1.0, return_window=3)
    assert opr.loss(policy_with(), in_order(opr)).item() == 0.0
    opr.observe(episodes([-1.0, -1.0, -1.0]))
    expected = -(LOG_HALF + LOG_THREE_QUARTERS) / 2
    assert opr.loss(policy_with(), in_order(opr)).item() == pytest.approx(expected, rel=1e-5)


def test_without_the_rule_everything_in_memory_is_cloned():
    opr = filled(bc_coef=1.0, bc_weights="uniform")
    expected = -(LOG_HALF + LOG_THREE_QUARTERS) / 2
    assert opr.loss(policy_with(), in_order(opr)).item() == pytest.approx(expected, rel=1e-5)
    assert "opr/beyond_luck" not in opr.metrics()


@pytest.mark.parametrize("value", [-0.1, math.nan])
def test_less_than_no_deviation_is_refused(value):
    with pytest.raises(ConfigError, match=r"opr\.bc_luck must be at least 0 or None"):
        regularizer(bc_luck=value)
