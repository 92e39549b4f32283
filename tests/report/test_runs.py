"""Run folders and results files are read as far as they can be; what is missing is said, never raised."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimist.errors import RunFolderError
from optimist.report import run_pages
from optimist.report.rows import collect, read_rows
from optimist.report.runs import CONFIG, METRICS, MOST_POINTS, RETURN, SUMMARY, Problem, make_curve, read_run
from optimist.tracking.metrics import undocumented
from tests.report.made_up import write_run

RESULTS = Path(__file__).parents[2] / "results"


def test_a_finished_run_has_all_its_statistics_with_their_terms(tmp_path):
    run, problems = read_run(write_run(tmp_path / "r", "atari/opr", seed=3, score=20.0, game="Pong"), "r")
    assert problems == []
    assert {name: round(score.value, 3) for name, score in run.scores.items()} == {
        "last-100": 20.0,
        "final": 18.0,
        "best-epoch": 22.0,
    }
    score = run.scores["final"]
    assert (score.env, score.method, score.seed, score.sticky, score.budget) == ("Pong", "PPO+OPR", 3, 0.0, 10_000_000)
    assert len(run.curves[RETURN].steps) == 12


def test_the_budget_is_what_was_done(tmp_path):
    folder = write_run(tmp_path / "r", "deepsea/ppo", steps=8000)
    summary = json.loads((folder / SUMMARY).read_text())
    (folder / SUMMARY).write_text(json.dumps(summary | {"steps": 7168}))
    assert read_run(folder, "r")[0].scores["last-100"].budget == 7168


def test_an_unfinished_run_has_curves_and_no_score(tmp_path):
    run, (problem,) = read_run(write_run(tmp_path / "r", "deepsea/ppo", finished=False, steps=1200), "r")
    assert not run.finished
    assert run.scores == {}
    assert "not finished (600 of 1,200 steps)" in problem.what


def test_damaged_lines_are_counted_and_a_line_being_written_is_not(tmp_path):
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
        (SUMMARY, b"{}", "holds no score"),
    ],
)
def test_damaged_files_are_named(tmp_path, name, content, words):
    folder = write_run(tmp_path / "r", "deepsea/ppo")
    (folder / name).write_bytes(content)
    assert any(words in problem.what for problem in read_run(folder, "r")[1])


def test_a_run_without_metrics_is_still_a_run(tmp_path):
    folder = write_run(tmp_path / "r", "deepsea/ppo")
    (folder / METRICS).unlink()
    run, (problem,) = read_run(folder, "r")
    assert run.scores["last-100"].value == 1.0
    assert "metrics.jsonl cannot be read: No such file" in problem.what


@given(st.sampled_from([CONFIG, METRICS, SUMMARY]), st.floats(0, 1), st.binary(max_size=12))
def test_cut_anywhere_and_continued_with_anything_a_run_is_read_or_refused(tmp_path_factory, name, share, rest):
    folder = write_run(tmp_path_factory.mktemp("cut") / "r", "deepsea/opr", points=3)
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[: int(share * len(content))] + rest)
    run, problems = read_run(folder, "r")
    assert run is not None or problems


def test_a_tests_curve_stands_at_the_steps_its_policies_are_of(tmp_path):
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


def test_runs_are_found_at_any_depth_once(tmp_path):
    for seed in (0, 1):
        write_run(tmp_path / "a" / "b" / f"s{seed}", "deepsea/ppo", seed=seed)
    write_run(tmp_path / "again", "deepsea/ppo", seed=1)
    write_run(tmp_path / "z-unfinished", "deepsea/ppo", seed=0, finished=False)
    runs, problems = collect([tmp_path, tmp_path / "a"])
    assert sorted((run.seed, run.finished) for run in runs) == [(0, True), (1, True)]
    name = tmp_path.name
    assert {(p.kind, p.where) for p in problems} == {
        ("repeated", f"{name}/again"),
        ("repeated", f"{name}/z-unfinished"),
        ("unfinished", f"{name}/z-unfinished"),
    }
    with pytest.raises(RunFolderError, match="no folder"):
        collect([tmp_path / "nowhere"])


def test_the_same_seed_with_another_budget_is_another_run(tmp_path):
    write_run(tmp_path / "a", "deepsea/ppo", steps=1000)
    write_run(tmp_path / "b", "deepsea/ppo", steps=2000)
    assert len(collect([tmp_path])[0]) == 2


def test_committed_results_are_read():
    deepsea, problems = collect([RESULTS / "deepsea" / "runs.jsonl"])
    assert problems == []
    assert {run.method for run in deepsea} == {"PPO", "PPO+OPR", "PPO+OPR, literal"}
    assert {run.env for run in deepsea} == {"DeepSea-12"}
    assert sum(bool(run.summary["solved"]) for run in deepsea if run.method == "PPO+OPR") == 6
    claim, problems = collect([RESULTS / "cage2" / "claim"])
    assert problems == []
    run = next(run for run in claim if run.seed == 0 and run.method == "PPO, 145 actions" and "B_line" in run.env)
    assert run.scores["final-greedy"].value == -5.0958
    assert run.scores["final"].value == -4.716
    assert len(run.curves[RETURN].steps) == 50


def test_rows_that_are_summaries_of_runs_are_read(tmp_path):
    row = {"preset": "atari/opr", "env": "optimist/Atari-v0", "env_kwargs": {"game": "Pong", "sticky": 0.25}, "seed": 2}
    row |= {
        "steps": 10_000_000,
        "last_100_return": 19.0,
        "final_evaluation": {"actions": "greedy", "mean_return": 20.0},
    }
    (tmp_path / "runs.jsonl").write_text(json.dumps(row) + "\n")
    (run,), problems = read_rows(tmp_path / "runs.jsonl", "atari")
    assert problems == []
    assert (run.env, run.method, run.sticky, run.budget) == ("Pong", "PPO+OPR", 0.25, 10_000_000)
    assert {name: score.value for name, score in run.scores.items()} == {"last-100": 19.0, "final-greedy": 20.0}


def test_long_curves_are_thinned_and_keep_their_ends():
    curve = make_curve([(float(step), 2.0 * step) for step in range(1, 30_001)])
    assert len(curve.steps) == MOST_POINTS
    assert (curve.steps[0], curve.steps[-1], curve.values[-1]) == (1.0, 30_000.0, 60_000.0)


def test_what_a_run_page_shows_is_documented():
    shown = {*run_pages.MEMORY, *run_pages.STATIONS, *(name for _, names in run_pages.CURVES for name in names)}
    assert undocumented(shown) == []


def test_a_run_that_lost_its_config_is_named(tmp_path):
    write_run(tmp_path / "whole", "deepsea/opr", seed=0)
    (write_run(tmp_path / "lost", "deepsea/opr", seed=1) / "config.toml").unlink()
    (run,), problems = collect([tmp_path])
    assert run.seed == 0
    assert problems == [Problem(f"{tmp_path.name}/lost", "a summary.json without a config.toml; left out")]


def test_rows_of_a_sweep_are_read_where_the_run_folder_is_not(tmp_path):
    folder = write_run(tmp_path / "runs" / "x" / "seed-0", "deepsea/opr", seed=0)
    row = {"run": "x/seed-0", "folder": "runs/x/seed-0", "state": "finished", "preset": "deepsea/opr", "seed": 0}
    row |= {"flags": {"size": 9}, "variant": "strong", "settings": {"opr": {"bc_coef": 1.0}}, "steps": 999}
    row |= {"value": 0.5, "statistic": "mean raw return of the last 100 training episodes (sampled actions)"}
    missing = {**row, "folder": "runs/elsewhere", "seed": 1}
    lines = [row, missing, {**missing, "state": "failed", "error": "it fell"}, {"a": 1}, 3]
    (tmp_path / "runs.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (run,), problems = read_rows(tmp_path / "runs.jsonl", "sweep")
    assert (run.env, run.method, run.scores["last-100"].value) == ("DeepSea-9", "PPO+OPR · bc_coef=1.0", 0.5)
    fallen, *others = problems
    assert fallen == Problem("sweep: x/seed-0", "failed (it fell)", "unfinished")
    assert [problem.what.split(" rows")[0] for problem in others] == ["1 of 5", "1 of 5"]
    assert folder.exists()
