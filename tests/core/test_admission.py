"""The window of recent returns, its percentile τ, and which returns are admitted."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimist.core.admission import GroupWindows, ReturnWindow, is_admitted

RETURNS = st.lists(st.floats(-1e3, 1e3, width=32), min_size=1, max_size=40)


@given(RETURNS, st.integers(1, 20), st.floats(0, 100))
def test_the_threshold_is_numpys_percentile_of_the_last_k_returns(returns, size, percentile):
    window = ReturnWindow(size, percentile)
    for i, total_reward in enumerate(returns):
        threshold = window.add(total_reward)
        recent = returns[max(0, i + 1 - size) : i + 1]
        assert list(window.returns) == recent
        assert threshold == pytest.approx(np.percentile(recent, percentile), rel=1e-12, abs=1e-9)


def test_the_threshold_by_hand():
    window = ReturnWindow(4, 75.0)
    # position 0.75 · (n − 1) among the sorted returns
    assert [window.add(x) for x in (1.0, 3.0, 2.0, 10.0, 0.0)] == [1.0, 2.5, 2.5, 4.75, 4.75]


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=30), st.floats(0, 100))
def test_the_threshold_is_between_the_lowest_and_the_highest_return(returns, percentile):
    window = ReturnWindow(30, percentile)
    for total_reward in returns:
        window.add(total_reward)
        assert min(window.returns) <= window.threshold <= max(window.returns)


@given(st.floats(-1e3, 1e3), st.integers(1, 50), st.floats(0, 100))
def test_the_threshold_of_equal_returns_is_exactly_that_return(value, count, percentile):
    window = ReturnWindow(50, percentile)
    for _ in range(count):
        assert window.add(value) == value


def test_a_percentile_at_a_stored_return_is_exactly_that_return():
    # P/100 · (n − 1) in floating point is 14.000000000000002 for these; the return itself must still reach τ
    for percentile, count in [(28, 51), (56, 26), (14, 51), (58, 51), (70, 91)]:
        window = ReturnWindow(count, percentile, [float(x) for x in range(count)])
        assert window.threshold == percentile * (count - 1) / 100


def test_the_threshold_of_an_empty_window_is_minus_infinity():
    assert ReturnWindow(5, 75.0).threshold == float("-inf")


def test_each_group_has_a_window_of_its_own():
    windows = GroupWindows(10, 50.0)
    assert [windows.admits(x, 0)[1] for x in (0.0, 2.0)] == [0.0, 1.0]
    assert [windows.admits(x, 7)[1] for x in (100.0, 300.0)] == [100.0, 200.0]
    assert windows.windows[0].threshold == 1.0


@pytest.mark.parametrize(("rule", "admitted"), [("paper", [False, False, True]), ("gated", [True, True, True])])
def test_a_return_is_compared_with_the_threshold_that_includes_it(rule, admitted):
    windows = GroupWindows(10, 50.0, rule)
    assert [windows.admits(x, 0) for x in (1.0, 1.0, 2.0)] == list(zip(admitted, (1.0, 1.0, 1.0), strict=True))


@given(RETURNS, st.integers(1, 10))
def test_restored_windows_continue_like_the_saved_ones(returns, size):
    saved = GroupWindows(size, 75.0)
    for i, total_reward in enumerate(returns):
        saved.admits(total_reward, i % 3)
    restored = GroupWindows(size, 75.0)
    restored.load_state_dict(saved.state_dict())
    for i, total_reward in enumerate(reversed(returns)):
        assert restored.admits(total_reward, i % 4) == saved.admits(total_reward, i % 4)


def test_the_papers_rule_does_not_admit_a_return_equal_to_the_threshold():
    assert not is_admitted(5.0, 5.0, "paper")
    assert is_admitted(5.000001, 5.0, "paper")


def test_the_gated_rule_admits_a_return_equal_to_the_threshold():
    assert is_admitted(5.0, 5.0, "gated")
    assert not is_admitted(4.999999, 5.0, "gated")


@given(st.lists(st.floats(-1e3, 1e3), max_size=50))
def test_a_window_of_one_return_admits_nothing_under_the_papers_rule_and_everything_under_the_gated(returns):
    window = ReturnWindow(1, 75.0)
    for total_reward in returns:
        threshold = window.add(total_reward)
        assert threshold == total_reward
        assert not is_admitted(total_reward, threshold, "paper")
        assert is_admitted(total_reward, threshold, "gated")


def test_ties_at_the_highest_return_are_admitted_by_the_gated_rule_only():
    window = ReturnWindow(100, 75.0, [0.0] * 70 + [1.0] * 29)
    threshold = window.add(1.0)  # 30 of 100 at the best return: τ is that return
    assert threshold == 1.0
    assert not is_admitted(1.0, threshold, "paper")
    assert is_admitted(1.0, threshold, "gated")
