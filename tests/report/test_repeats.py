"""A run that is there more than once counts once, and the page says which one was left out and how it differs."""

import json
from pathlib import Path

from optimist.report.repeats import differences
from optimist.report.rows import collect
from optimist.report.runs import count_seeds
from tests.report.made_up import write_run


def test_of_two_with_the_same_seed_the_one_that_was_not_changed_on_the_way_is_taken(tmp_path):
    altered = write_run(tmp_path / "a", "deepsea/ppo")
    summary = json.loads((altered / "summary.json").read_text())
    (altered / "summary.json").write_text(json.dumps(summary | {"changes": ["at step 512: device cuda → cpu"]}))
    write_run(tmp_path / "b", "deepsea/ppo")
    runs, problems = collect([tmp_path])
    assert [Path(run.name).name for run in runs] == ["b"]
    assert any("device cuda → cpu" in problem.what for problem in problems)


def test_of_two_unfinished_with_the_same_seed_the_one_that_got_further_is_taken(tmp_path):
    write_run(tmp_path / "a", "deepsea/ppo", finished=False, points=3)  # a third of the way
    write_run(tmp_path / "b", "deepsea/ppo", finished=False, points=4)  # half of it
    runs, _ = collect([tmp_path])
    assert [Path(run.name).name for run in runs] == ["b"]


def test_every_run_that_is_left_out_is_named_with_what_differs_in_its_config(tmp_path):
    write_run(tmp_path / "a", "atari/opr", game="Pong")
    write_run(tmp_path / "b", "atari/opr", game="Pong", changes={"checkpoint_every": 7, "save_when_stopped": True})
    write_run(tmp_path / "c", "atari/opr", game="Pong")
    _, (b, c) = collect([tmp_path])
    taken = f"{tmp_path.name}/a is taken instead"
    every = "checkpoint_every is 7, there 1000000; save_when_stopped is True, there False"
    assert b == (f"{tmp_path.name}/b", f"{taken}; {every}", "repeated")
    assert c == (f"{tmp_path.name}/c", f"{taken}; their configs are equal", "repeated")


def test_settings_that_only_one_config_has_differ_too():
    assert differences({"env": {"id": "x", "kwargs": {"lanes": 2}}}, {"env": {"id": "x"}}) == (
        "env.kwargs.lanes is 2, there not set"
    )
    assert differences({}, {"seed": 1}) == "rows of results files hold no config to compare"


def test_runs_of_two_budgets_are_one_seed_and_two_runs(tmp_path):
    write_run(tmp_path / "a", "deepsea/ppo", steps=1000)
    write_run(tmp_path / "b", "deepsea/ppo", steps=2000)
    runs, problems = collect([tmp_path])
    assert (len(runs), count_seeds(runs), problems) == (2, 1, [])
