import math
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from optimist.stats.intervals import Interval, difference_interval, fisher_lower, mean_interval, wilson_interval

COUNTS = st.integers(0, 60).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@pytest.mark.parametrize(("runs", "quantile"), [(2, 12.7062), (3, 4.3027), (5, 2.7764), (10, 2.2622), (31, 2.0423)])
def test_half_width_is_the_tabulated_quantile_times_the_standard_error(runs, quantile):
    values = [float(number) for number in range(runs)]
    error = math.sqrt(sum((v - (runs - 1) / 2) ** 2 for v in values) / (runs - 1) / runs)
    assert mean_interval(values).half_width / error == pytest.approx(quantile, abs=5e-5)


def test_interval_of_a_mean_is_students():
    values = [-4.2, -5.0, -3.9, -4.4]
    low, high = stats.t.interval(0.95, 3, loc=sum(values) / 4, scale=stats.sem(values))
    found = mean_interval(values)
    assert (found.mean - found.half_width, found.mean + found.half_width) == pytest.approx((low, high), rel=1e-6)


def test_interval_of_a_difference_is_welchs():
    values, others = [1.0, 2.0, 4.0, 3.0, 2.5], [0.0, 5.0, -4.0]
    found = difference_interval(values, others)
    expected = stats.ttest_ind(values, others, equal_var=False).confidence_interval(0.95)
    assert found.mean - found.half_width == pytest.approx(expected.low, rel=1e-6)
    assert found.mean + found.half_width == pytest.approx(expected.high, rel=1e-6)


def test_single_value_has_no_interval_and_equal_values_have_width_zero():
    assert math.isnan(mean_interval([1.0]).half_width)
    assert str(mean_interval([1.0])) == "1.00"
    assert math.isnan(difference_interval([1.0], [2.0, 3.0]).half_width)
    assert difference_interval([1.0, 1.0], [2.0, 2.0]) == (-1.0, 0.0)


@pytest.mark.parametrize(
    ("interval", "shown"),
    [
        (Interval(0.0034, 0.0012), "0.0034 ± 0.0012"),
        (Interval(-0.0008, math.nan), "-0.0008"),
        (Interval(0.0, 0.0), "0.00 ± 0.00"),
        (Interval(0.001, 0.02), "0.00 ± 0.02"),
        (Interval(-0.001, 0.02), "0.00 ± 0.02"),  # no negative zero
        (Interval(math.nan, math.nan), "nan"),
    ],
)
def test_numbers_too_small_for_two_decimals_are_shown_with_two_digits(interval, shown):
    assert str(interval) == shown


@settings(deadline=None)
@given(COUNTS.filter(lambda pair: pair[1] > 0))
def test_wilson_bounds_are_the_proportions_at_distance_z(counts):
    successes, trials = counts
    share, z = successes / trials, 1.959964
    low, high = wilson_interval(successes, trials)
    assert 0.0 <= low <= share <= high <= 1.0
    for bound in (low, high):
        assert (bound - share) ** 2 == pytest.approx(z**2 * bound * (1 - bound) / trials, abs=1e-6)


def test_wilson_interval_by_hand():
    assert wilson_interval(0, 0) == (0.0, 1.0)
    assert wilson_interval(3, 10) == pytest.approx((0.10779, 0.60322), abs=1e-5)


@pytest.mark.parametrize(("first", "second"), [((1, 3), (2, 3)), ((0, 2), (2, 2)), ((2, 4), (1, 2)), ((0, 0), (1, 2))])
def test_fisher_p_value_counts_the_placements_with_at_most_as_many_successes(first, second):
    (a, n), (b, m) = first, second
    placements = list(combinations(range(n + m), a + b))
    at_most = [chosen for chosen in placements if sum(trial < n for trial in chosen) <= a]
    assert fisher_lower(a, n, b, m) == pytest.approx(len(at_most) / len(placements))
