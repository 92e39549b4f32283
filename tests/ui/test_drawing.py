import math

import numpy as np
import pytest

from optimist.ui.drawing import axis_text, duration, figure_text, histogram, histogram_figure, spark_path, ticks


@pytest.mark.parametrize(
    ("value", "text"),
    [(3825.4, "3,825"), (-7.184, "−7.18"), (12.34, "12.3"), (0.0034, "0.003"), (-0.0001, "0.000"), (None, "–"),
     (math.nan, "–"), (0.67, "0.67"), (99.96, "100"), (0.0, "0")],
)  # fmt: skip
def test_numbers_follow_the_rules_of_figures(value, text):
    assert figure_text(value) == text


def test_differences_carry_a_sign():
    assert [figure_text(v, signed=True) for v in (0.21, -0.41, 0.0)] == ["+0.21", "−0.41", "0"]


def test_ticks_are_1_2_or_5_times_a_power_of_ten():
    assert ticks(0, 10) == [0, 5, 10]
    assert ticks(-7.8, 0) == [-6, -4, -2, 0]
    assert [axis_text(t) for t in ticks(0, 1e7)] == ["0", "5M", "10M"]


def test_every_return_is_in_one_bin():
    random = np.random.default_rng(0)
    stored, recent = random.normal(5, 2, 40).tolist(), random.normal(3, 2, 100).tolist()
    bins = histogram(stored, recent)
    assert sum(one.stored for one in bins) == 40
    assert sum(one.recent for one in bins) == 100
    widths = {round(one.high - one.low, 6) for one in bins}
    assert len(widths) == 1


@pytest.mark.parametrize("value", [0.0, 1.0, -30.0])
def test_equal_returns_are_one_bin_that_contains_them(value):
    (one,) = histogram([value] * 3, [value])
    assert one.low <= value <= one.high
    figure = histogram_figure([one], value, 0)
    assert figure["areas"][0]["x"] <= figure["tau"] <= figure["areas"][0]["x"] + figure["areas"][0]["width"]


def test_no_returns_are_no_bins():
    assert histogram([], []) == []


def test_durations_and_sparklines():
    assert [duration(s) for s in (16, 130, 7200, None)] == ["16 s", "2 min", "2.0 h", "–"]
    assert spark_path([(0, 0), (50, 1)], 100) == "M0.0 23.0L48.0 3.0"
    assert spark_path([(0, 0)], 100) == ""
