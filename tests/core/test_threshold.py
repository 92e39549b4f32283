import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimist.core.threshold import ReturnWindow, Thresholds

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


def test_with_k_1_nothing_is_ever_above_the_threshold():
    window = ReturnWindow(1, 75.0)
    assert all(window.add(x) == x for x in (1.0, 5.0, -2.0, 100.0))


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=30), st.floats(0, 100))
def test_the_threshold_never_exceeds_the_best_and_never_falls_below_the_worst(returns, percentile):
    window = ReturnWindow(30, percentile)
    for total_reward in returns:
        window.add(total_reward)
        assert min(window.returns) <= window.threshold <= max(window.returns)


@given(st.floats(-1e3, 1e3), st.integers(1, 50), st.floats(0, 100))
def test_among_equal_returns_the_threshold_is_exactly_that_return(value, count, percentile):
    window = ReturnWindow(50, percentile)
    for _ in range(count):
        assert window.add(value) == value


def test_where_the_percentile_hits_a_return_it_is_exactly_that_return():
    # P/100 · (n − 1) in floating point is 14.000000000000002 for these; the return itself must still count as reached
    for percentile, count in [(28, 51), (56, 26), (14, 51), (58, 51), (70, 91)]:
        window = ReturnWindow(count, percentile, [float(x) for x in range(count)])
        assert window.threshold == percentile * (count - 1) / 100


def test_an_empty_window_has_no_threshold_to_fail():
    assert ReturnWindow(5, 75.0).threshold == float("-inf")


def test_a_window_per_group_keeps_groups_apart():
    thresholds = Thresholds(10, 50.0, shared=False)
    assert [thresholds.add(x, 0) for x in (0.0, 2.0)] == [0.0, 1.0]
    assert [thresholds.add(x, 7) for x in (100.0, 300.0)] == [100.0, 200.0]
    assert thresholds.window(0).threshold == 1.0


def test_a_shared_window_puts_all_groups_together():
    thresholds = Thresholds(10, 50.0, shared=True)
    assert [thresholds.add(x, group) for x, group in ((0.0, 0), (100.0, 7), (50.0, 3))] == [0.0, 50.0, 50.0]


@given(RETURNS, st.integers(1, 10))
def test_a_restored_window_goes_on_as_the_saved_one(returns, size):
    saved = Thresholds(size, 75.0, shared=False)
    for i, total_reward in enumerate(returns):
        saved.add(total_reward, i % 3)
    restored = Thresholds(size, 75.0, shared=False)
    restored.load_state_dict(saved.state_dict())
    for i, total_reward in enumerate(reversed(returns)):
        assert restored.add(total_reward, i % 4) == saved.add(total_reward, i % 4)
