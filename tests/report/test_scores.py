"""A score keeps its terms, and a column refuses scores of different kinds."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimist.errors import ConfigError
from optimist.report.scores import Score, check_alike, columns, same, short_number, short_steps

SCORE = Score(value=1.0, method="PPO", env="Pong", statistic="last-100", budget=10_000_000, sticky=0.0, source="a")
KINDS = st.builds(
    Score,
    value=st.floats(-5, 5),
    method=st.sampled_from(["PPO", "OPR"]),
    env=st.sampled_from(["Pong", "Qbert"]),
    statistic=st.sampled_from(["last-100", "final"]),
    budget=st.sampled_from([1_000_000, 10_000_000]),
    sticky=st.sampled_from([0.0, 0.25]),
)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"statistic": "best-epoch"}, "would mix statistics: last-100 \\(a\\) and best-epoch \\(b\\)"),
        ({"sticky": 0.25}, "would mix sticky-action probabilities: 0 \\(a\\) and 0.25"),
        ({"budget": 50_000_000}, "would mix budgets in steps: 10,000,000 \\(a\\) and 50,000,000"),
    ],
)
def test_unlike_scores_are_refused_in_one_line_that_names_both(change, words):
    other = replace(SCORE, source="b", **change)
    with pytest.raises(ConfigError, match=words) as error:
        check_alike([SCORE, other], where="the column PPO")
    assert "--unlike" in str(error.value)
    assert "\n" not in str(error.value)


def test_the_rest_of_a_budget_that_fills_no_update_makes_no_other_kind():
    check_alike([SCORE, replace(SCORE, budget=9_999_360, seed=1)], where="x")
    assert not same("budget", 60_000, 50_000)


def test_environments_of_a_column_may_differ_in_budget_unless_they_are_aggregated():
    scores = [SCORE, replace(SCORE, env="Qbert", budget=1_000_000)]
    assert list(columns(scores, unlike="refuse")) == ["PPO"]
    with pytest.raises(ConfigError, match="budgets"):
        columns(scores, unlike="refuse", across=True)


def test_each_kind_gets_its_column_and_mix_marks_the_column():
    scores = [SCORE, replace(SCORE, budget=1_000_000), replace(SCORE, budget=9_990_000)]
    assert {name: len(found) for name, found in columns(scores).items()} == {
        "PPO (10M steps)": 2,
        "PPO (1M steps)": 1,
    }
    assert {name: len(found) for name, found in columns(scores, unlike="mix").items()} == {"PPO *": 3}


@given(st.lists(KINDS, min_size=1, max_size=12), st.booleans())
def test_separated_columns_hold_every_score_once_and_are_alike(scores, across):
    found = columns(scores, across=across)
    assert sorted(id(score) for column in found.values() for score in column) == sorted(map(id, scores))
    for column in found.values():
        for env in {score.env for score in column}:
            check_alike([score for score in column if across or score.env == env], where="x")


def test_numbers_are_short():
    assert [short_steps(steps) for steps in (999, 59_392, 10_000_000)] == ["999", "59.4k", "10M"]
    assert [short_number(v) for v in (0.0, -1234.0, 123456.0, 0.00002, 2.5e6)] == [
        "0",
        "−1,234",
        "123k",
        "2.0e−5",
        "2.5M",
    ]
