"""Columns of runs: one kind each, by sticky actions and budget."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimist.errors import ConfigError
from optimist.report.formatting import short_number, short_steps
from optimist.report.identify import Identity
from optimist.report.runs import Run, same
from optimist.report.study import columns


def make_run(name="a", method="PPO", env="Pong", budget=10_000_000, sticky=0.0):
    return Run(name, Identity("Atari", env, method, (), ""), 0, budget, sticky, finished=True, steps=budget)


RUN = make_run()
RUNS = st.builds(
    make_run,
    method=st.sampled_from(["PPO", "OPR"]),
    env=st.sampled_from(["Pong", "Qbert"]),
    budget=st.sampled_from([1_000_000, 10_000_000]),
    sticky=st.sampled_from([0.0, 0.25]),
)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"sticky": 0.25}, r"PPO, Pong, would mix sticky-action probabilities: 0 \(a\) and 0.25 \(b\); --unlike"),
        ({"budget": 50_000_000}, r"PPO, Pong, would mix budgets in steps: 10,000,000 \(a\) and 50,000,000 \(b\); --un"),
    ],
)
def test_runs_of_different_kinds_are_rejected_in_one_line_that_names_both(change, words):
    with pytest.raises(ConfigError, match=words) as error:
        columns([RUN, replace(RUN, name="b", **change)], unlike="refuse")
    assert "\n" not in str(error.value)


def test_budgets_that_differ_by_less_than_an_update_are_one_kind():
    assert list(columns([RUN, replace(RUN, budget=9_999_360, seed=1)], unlike="refuse")) == ["PPO"]
    assert not same("budget", 60_000, 50_000)


def test_environments_of_a_column_may_differ_in_budget_unless_aggregated():
    runs = [RUN, make_run(env="Qbert", budget=1_000_000)]
    assert list(columns(runs, unlike="refuse")) == ["PPO"]
    with pytest.raises(ConfigError, match="the column PPO would mix budgets"):
        columns(runs, unlike="refuse", across=True)


def test_each_kind_has_its_column_and_mix_marks_the_column():
    runs = [RUN, replace(RUN, budget=1_000_000), replace(RUN, budget=9_990_000)]
    assert {name: len(found) for name, found in columns(runs).items()} == {"PPO (10M steps)": 2, "PPO (1M steps)": 1}
    assert {name: len(found) for name, found in columns(runs, unlike="mix").items()} == {"PPO *": 3}


@given(st.lists(RUNS, min_size=1, max_size=12), st.booleans())
def test_separate_columns_have_every_run_once_and_one_kind_each(runs, across):
    found = columns(runs, across=across)
    assert sorted(id(run) for column in found.values() for run in column) == sorted(map(id, runs))
    for column in found.values():
        assert list(columns(column, unlike="refuse", across=across).values()) == [column]


def test_numbers_are_short():
    assert [short_steps(steps) for steps in (999, 59_392, 10_000_000)] == ["999", "59.4k", "10M"]
    assert [short_number(v) for v in (0.0, -1234.0, 123456.0, 0.00002, 2.5e6)] == [
        "0",
        "−1,234",
        "123k",
        "2.0e−5",
        "2.5M",
    ]
