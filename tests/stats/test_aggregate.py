"""Aggregates by hand, by property, and against rliable: points exactly, intervals within bootstrap error."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from optimist.errors import ConfigError, ShapeMismatch
from optimist.stats import aggregate
from optimist.stats.aggregate import (
    bootstrap,
    bootstrap_improvement,
    iqm,
    median,
    optimality_gap,
    paired_ratio,
    performance_profile,
    probability_of_improvement,
    sample_efficiency,
    score_matrix,
)

MATRICES = arrays(
    float, st.tuples(st.integers(1, 6), st.integers(1, 7)), elements=st.floats(-5, 20, allow_nan=False, width=32)
)
STATISTICS = {
    "aggregate_iqm": iqm,
    "aggregate_median": median,
    "aggregate_mean": aggregate.mean,
    "aggregate_optimality_gap": optimality_gap,
}


def skewed(runs, games, seed=0):
    return np.random.default_rng(seed).lognormal(0.0, 0.7, (runs, games))


def test_iqm_excludes_a_quarter_at_each_end():
    assert iqm([[0.0, 100.0, 2.0, 4.0]]) == 3.0
    assert iqm([[1.0, 2.0, 6.0]]) == 3.0  # a quarter of three is less than one: none is excluded


def test_optimality_gap_counts_scores_above_the_target_as_the_target():
    assert optimality_gap([[0.5], [3.0]]) == 0.25


def test_profile_is_the_share_strictly_above_the_threshold():
    assert performance_profile([[1.0, 2.0], [3.0, 4.0]], [0.0, 1.0, 2.5, 4.0]).tolist() == [1.0, 0.75, 0.5, 0.0]


def test_improvement_counts_ties_half():
    assert probability_of_improvement([[1.0], [2.0]], [[1.0], [0.0]]) == (0.5 + 1 + 1 + 1) / 4


def test_missing_runs_are_ignored():
    matrix = score_matrix({"Pong": [1.0, 2.0, 3.0], "Breakout": [5.0]})
    assert np.isnan(matrix).sum() == 2
    assert aggregate.mean(matrix) == 3.5
    assert iqm(matrix) == 2.5  # of 1, 2, 3, 5
    assert performance_profile(matrix, [2.5]) == 0.5
    interval = bootstrap(matrix, aggregate.mean)
    assert 3.0 <= interval.low < 3.5 < interval.high <= 4.0  # Breakout's only run is always drawn
    assert probability_of_improvement(matrix, matrix) == 0.5


def test_game_without_runs_is_named():
    with pytest.raises(ConfigError, match="no scores for Breakout"):
        score_matrix({"Pong": [1.0], "Breakout": []})
    with pytest.raises(ConfigError, match="no finite score"):
        iqm([[np.nan, 1.0]])


def test_wrong_shapes_are_rejected():
    with pytest.raises(ShapeMismatch, match=r"\[R, G\]"):
        iqm([1.0, 2.0])
    with pytest.raises(ShapeMismatch, match="same games"):
        probability_of_improvement([[1.0, 2.0]], [[1.0]])
    with pytest.raises(ShapeMismatch, match=r"\[S, R, G\]"):
        sample_efficiency([[1.0, 2.0]])


@given(MATRICES)
def test_statistics_are_between_the_extremes_and_ignore_the_order_of_runs(scores):
    for statistic in (iqm, median, aggregate.mean):
        assert scores.min() - 1e-9 <= statistic(scores) <= scores.max() + 1e-9
        assert statistic(scores[::-1]) == pytest.approx(statistic(scores))


@given(MATRICES, MATRICES)
def test_improvement_in_both_directions_sums_to_1(first, second):
    games = min(first.shape[1], second.shape[1])
    first, second = first[:, :games], second[:, :games]
    forward, backward = probability_of_improvement(first, second), probability_of_improvement(second, first)
    assert forward + backward == pytest.approx(1.0)


@given(MATRICES)
def test_interval_stays_within_the_scores_of_the_runs(scores):
    low, high = bootstrap(scores, iqm, reps=50)[1:]
    if len(scores) == 1:
        assert np.isnan([low, high]).all()
    else:
        assert scores.min() - 1e-9 <= low <= high <= scores.max() + 1e-9


def test_one_run_per_game_has_no_interval():
    one, two = skewed(1, 6), skewed(2, 6)
    assert np.isnan(bootstrap(one, iqm)[1:]).all()
    assert np.isnan(bootstrap(one, lambda scores: performance_profile(scores, [0.5, 1.0]))[1:]).all()
    assert np.isnan(sample_efficiency(np.stack([one, one]), reps=20)[1:]).all()
    for pair in ((one, two), (two, one)):
        assert np.isnan(bootstrap_improvement(*pair, reps=20)[1:]).all()
    partly = np.where(np.arange(6) < 5, two, [[np.nan], [1.0]])  # one game with two runs is enough for an interval
    assert np.isfinite(bootstrap(partly, iqm)[1:]).all()


@pytest.mark.parametrize(("runs", "others", "games"), [(3, 4, 49), (12, 3, 14), (2, 2, 3)])
def test_improvement_over_a_method_with_a_different_number_of_runs(runs, others, games):
    value, low, high = bootstrap_improvement(skewed(runs, games), skewed(others, games, 1), reps=2000)
    assert 0.0 <= low <= value <= high <= 1.0


def test_batch_size_does_not_change_the_resamples(monkeypatch):
    whole = bootstrap(skewed(3, 5), iqm, reps=100)
    monkeypatch.setattr(aggregate, "CHUNK", 15 * 7)
    assert bootstrap(skewed(3, 5), iqm, reps=100) == whole


def test_interval_has_its_nominal_coverage():
    generator = np.random.default_rng(1)
    inside = 0
    for number in range(200):
        low, high = bootstrap(generator.normal(1.0, 1.0, (10, 20)), aggregate.mean, reps=300, seed=number)[1:]
        inside += bool(low <= 1.0 <= high)
    assert 0.88 <= inside / 200 <= 0.99


def test_sample_efficiency_at_one_point_is_the_statistic_there():
    curves = np.stack([skewed(4, 6, seed) for seed in range(3)])
    estimate = sample_efficiency(curves, reps=200)
    assert estimate.value.tolist() == [pytest.approx(float(iqm(moment))) for moment in curves]
    assert (estimate.low <= estimate.value).all()
    assert (estimate.value <= estimate.high).all()


class TestAgainstRliable:
    metrics = pytest.importorskip("rliable.metrics", reason="rliable is a development dependency: pip install rliable")

    @pytest.mark.parametrize("name", STATISTICS)
    @pytest.mark.parametrize("shape", [(3, 49), (5, 7), (1, 4), (10, 26)])
    def test_points_are_equal(self, name, shape):
        scores = skewed(*shape)
        assert STATISTICS[name](scores) == pytest.approx(float(getattr(self.metrics, name)(scores)), rel=1e-12)

    @given(MATRICES, MATRICES)
    def test_improvement_is_equal(self, first, second):
        games = min(first.shape[1], second.shape[1])
        first, second = first[:, :games], second[:, :games]
        theirs = self.metrics.probability_of_improvement(first, second)
        assert probability_of_improvement(first, second) == pytest.approx(float(theirs))

    def test_profiles_are_equal(self):
        from rliable.library import score_distributions

        scores, levels = skewed(5, 10), np.linspace(0, 4, 21)
        assert performance_profile(scores, levels) == pytest.approx(score_distributions(scores, levels))

    @pytest.mark.parametrize("name", STATISTICS)
    def test_intervals_agree_within_bootstrap_error(self, name):
        from rliable.library import get_interval_estimates

        scores = skewed(5, 12)
        np.random.seed(0)  # rliable draws from the global generator
        theirs = get_interval_estimates({"x": scores}, lambda x: np.array([getattr(self.metrics, name)(x)]), reps=2000)
        ours = bootstrap(scores, STATISTICS[name], reps=20_000)
        assert self.agree(ours, theirs[1]["x"][:, 0])

    def test_intervals_of_improvement_agree(self):
        from rliable.library import get_interval_estimates

        first, second = skewed(5, 6), skewed(4, 6, 1) * 0.8
        np.random.seed(0)
        function = lambda x, y: np.array([self.metrics.probability_of_improvement(x, y)])  # noqa: E731
        theirs = get_interval_estimates({"x": [first, second]}, function, reps=500)
        assert self.agree(bootstrap_improvement(first, second, reps=10_000), theirs[1]["x"][:, 0], share=0.15)

    def test_efficiency_agrees_at_every_point(self):
        from rliable.library import get_interval_estimates

        curves = np.stack([skewed(4, 5, seed) * (1 + seed) for seed in range(3)])  # [S, R, G]
        np.random.seed(0)
        function = lambda x: np.array([self.metrics.aggregate_iqm(x[..., s]) for s in range(3)])  # noqa: E731
        points, bounds = get_interval_estimates({"x": np.moveaxis(curves, 0, -1)}, function, reps=1000)
        ours = sample_efficiency(curves, reps=10_000)
        assert ours.value == pytest.approx(points["x"], rel=1e-12)
        for moment in range(3):
            one = aggregate.Estimate(*(part[moment] for part in ours))
            assert self.agree(one, bounds["x"][:, moment], share=0.12)

    @staticmethod
    def agree(ours, theirs, share=0.08):
        """Whether bounds agree to within a small share of the interval's width; 2,000 draws give no more precision."""
        width = ours.high - ours.low
        return abs(ours.low - theirs[0]) < share * width and abs(ours.high - theirs[1]) < share * width


def test_the_paired_ratio_by_hand():
    # ratios 2 and 1/2 in the first task, 4 and 4 in the second: exp(mean log) = 16^(1/4) = 2
    estimate = paired_ratio([[2.0, 4.0], [1.0, 8.0]], [[1.0, 1.0], [2.0, 2.0]], reps=500)
    assert estimate.value == pytest.approx(2.0)
    assert (estimate.low, estimate.high) == pytest.approx((2.0**0.5, 8.0**0.5))  # both pairs alike, drawn twice
    with pytest.raises(ConfigError, match="scores above 0"):
        paired_ratio([[0.0]], [[1.0]])
    with pytest.raises(ShapeMismatch, match="expected pairs"):
        paired_ratio([[1.0]], [[1.0, 2.0]])
