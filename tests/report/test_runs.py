"""Run folders are read as far as possible; missing and damaged files are problems, not errors."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimist.report import run_pages
from optimist.report.runs import CONFIG, MAX_POINTS, METRICS, RETURN, SUMMARY, make_curve, read_run
from tests.metrics import undocumented
from tests.report.fake_runs import write_run


def test_finished_run_has_all_its_statistics_with_their_terms(tmp_path):
    run, problems = read_run(write_run(tmp_path / "r", "atari/opr", seed=3, score=20.0, game="Pong"), "r")
    assert problems == []
    assert {name: round(score.value, 3) for name, score in run.scores.items()} == {
        "last-100": 20.0,
        "final": 18.0,
        "best-epoch": 22.0,
    }
    assert (run.scores["last-100"].episodes, run.scores["final"].episodes) == (100, 30)
    assert (run.env, run.method, run.seed, run.sticky, run.budget) == ("Pong", "PPO+OPR", 3, 0.0, 10_000_000)
    assert len(run.curves[RETURN].steps) == 12


def test_budget_is_the_number_of_steps_done(tmp_path):
    folder = write_run(tmp_path / "r", "deepsea/ppo", steps=8000)
    summary = json.loads((folder / SUMMARY).read_text())
    (folder / SUMMARY).write_text(json.dumps(summary | {"steps": 7168}))
    assert read_run(folder, "r")[0].budget == 7168


def test_unfinished_run_has_curves_and_no_score(tmp_path):
    run, (problem,) = read_run(write_run(tmp_path / "r", "deepsea/ppo", finished=False, steps=1200), "r")
    assert not run.finished
    assert run.scores == {}
    assert "not finished (600 of 1,200 steps)" in problem.what


def test_damaged_lines_are_counted_but_not_a_line_being_written(tmp_path):
    folder = write_run(tmp_path / "r", "deepsea/ppo")
    with (folder / METRICS).open("a") as file:
        file.write('not json\n[1]\n{"step": null}\n{"step": 9, "loss')
    run, (problem,) = read_run(folder, "r")
    assert "3 of 15 lines left out: damaged" in problem.what
    assert len(run.curves[RETURN].steps) == 12


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        (CONFIG, b"seed = ", "config.toml cannot be read"),
        (CONFIG, b"\xff\xfe", "config.toml cannot be read"),
        (CONFIG, b"seed = 1\n", "config.toml is not that of a run"),
        (CONFIG, b"env = 3\nseed = 1\ntotal_steps = 2\n", "config.toml is not that of a run"),
        (SUMMARY, b"{", "summary.json is damaged"),
        (SUMMARY, b"[]", "summary.json is damaged"),
        (SUMMARY, b"{}", "has no score"),
    ],
)
def test_damaged_files_are_reported(tmp_path, name, content, words):
    folder = write_run(tmp_path / "r", "deepsea/ppo")
    (folder / name).write_bytes(content)
    assert any(words in problem.what for problem in read_run(folder, "r")[1])


def test_run_without_metrics_keeps_its_score(tmp_path):
    folder = write_run(tmp_path / "r", "deepsea/ppo")
    (folder / METRICS).unlink()
    run, (problem,) = read_run(folder, "r")
    assert run.scores["last-100"].value == 1.0
    assert "metrics.jsonl cannot be read: No such file" in problem.what


@given(st.sampled_from([CONFIG, METRICS, SUMMARY]), st.floats(0, 1), st.binary(max_size=12))
def test_truncated_or_corrupt_files_never_raise(tmp_path_factory, name, share, rest):
    folder = write_run(tmp_path_factory.mktemp("cut") / "r", "deepsea/opr", points=3)
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[: int(share * len(content))] + rest)
    run, problems = read_run(folder, "r")
    assert run is not None or problems


def test_evaluation_curve_is_at_the_steps_of_the_evaluated_policies(tmp_path):
    folder = write_run(tmp_path / "r", "deepsea/ppo")
    rows = [
        {"step": 30, "evaluation/step": 10, "evaluation/mean_return": 1.0, "loss/value": 5.0},
        {"step": 40, "evaluation/step": 30, "evaluation/mean_return": 2.0},
        {"step": 40, "evaluation/step": 40, "evaluation/mean_return": 3.0, "loss/value": 6.0},
    ]
    (folder / METRICS).write_text("".join(json.dumps(row) + "\n" for row in rows))
    curves = read_run(folder, "r")[0].curves
    assert list(curves["evaluation/mean_return"].steps) == [10, 30, 40]
    assert list(curves["evaluation/mean_return"].values) == [1.0, 2.0, 3.0]
    assert list(curves["loss/value"].steps) == [30, 40]


def test_long_curves_are_thinned_and_keep_their_ends():
    curve = make_curve([(float(step), 2.0 * step) for step in range(1, 30_001)])
    assert len(curve.steps) == MAX_POINTS
    assert (curve.steps[0], curve.steps[-1], curve.values[-1]) == (1.0, 30_000.0, 60_000.0)


def test_metrics_on_run_pages_are_documented():
    shown = {*run_pages.MEMORY, *run_pages.PHASES, *(name for _, names in run_pages.CURVES for name in names)}
    assert undocumented(shown) == []
