import math

import pytest
from scipy import stats

from optimist.report.means import Interval, difference_interval, mean_interval, quantile_95


@pytest.mark.parametrize("degrees", [1, 1.01, 1.41, 1.5, 2, 2.5, 4, 9, 30, 31, 60.5, 400, 1e5, 1e12])
def test_quantiles_are_student_s(degrees):
    assert quantile_95(degrees) == pytest.approx(stats.t.ppf(0.975, degrees), rel=1e-5)


def test_less_than_one_degree_counts_as_one():
    assert quantile_95(0.5) == quantile_95(1)


def test_the_interval_of_a_mean():
    values = [-4.2, -5.0, -3.9, -4.4]
    low, high = stats.t.interval(0.95, 3, loc=sum(values) / 4, scale=stats.sem(values))
    found = mean_interval(values)
    assert (found.mean - found.half_width, found.mean + found.half_width) == pytest.approx((low, high), rel=1e-6)


def test_the_interval_of_a_difference_is_welch_s():
    values, others = [1.0, 2.0, 4.0, 3.0, 2.5], [0.0, 5.0, -4.0]
    found = difference_interval(values, others)
    expected = stats.ttest_ind(values, others, equal_var=False).confidence_interval(0.95)
    assert found.mean - found.half_width == pytest.approx(expected.low, rel=1e-6)
    assert found.mean + found.half_width == pytest.approx(expected.high, rel=1e-6)


def test_one_value_has_no_interval_and_equal_values_have_none_to_speak_of():
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
        (Interval(-0.001, 0.02), "0.00 ± 0.02"),  # no zero is negative
        (Interval(math.nan, math.nan), "nan"),
    ],
)
def test_numbers_too_small_for_two_decimals_are_shown_all_the_same(interval, shown):
    assert str(interval) == shown
