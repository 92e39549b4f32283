import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from optimist.report.proportions import fisher_lower, wilson_interval

COUNTS = st.integers(0, 60).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@settings(deadline=None)
@given(COUNTS.filter(lambda pair: pair[1] > 0))
def test_the_wilson_interval_is_scipys(counts):
    successes, trials = counts
    expected = stats.binomtest(successes, trials).proportion_ci(0.95, method="wilson")
    assert wilson_interval(successes, trials) == pytest.approx((expected.low, expected.high), abs=1e-7)


def test_the_wilson_interval_of_nothing_is_everything():
    assert wilson_interval(0, 0) == (0.0, 1.0)


def test_another_z_gives_another_level():
    expected = stats.binomtest(3, 10).proportion_ci(0.9, method="wilson")
    assert wilson_interval(3, 10, z=1.644854) == pytest.approx((expected.low, expected.high), abs=1e-6)


@settings(deadline=None)
@given(COUNTS, COUNTS)
def test_fishers_one_sided_p_value_is_scipys(one, other):
    (a, n), (b, m) = one, other
    expected = stats.fisher_exact([[a, n - a], [b, m - b]], alternative="less").pvalue
    assert fisher_lower(a, n, b, m) == pytest.approx(expected, abs=1e-9)


def test_fisher_by_hand():
    # 0 of 2 against 2 of 2: one of the six ways to place two successes among four
    assert fisher_lower(0, 2, 2, 2) == pytest.approx(1 / 6)
    assert fisher_lower(2, 2, 0, 2) == 1.0
