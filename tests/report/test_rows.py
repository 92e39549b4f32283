"""Runs are found below folders and in results files; each seed of a method counts once."""

import json
from pathlib import Path

import pytest

from optimist.errors import RunFolderError
from optimist.report.rows import collect, differences, read_rows
from optimist.report.runs import RETURN, Problem, count_seeds
from tests.report.fake_runs import write_run

RESULTS = Path(__file__).parents[2] / "results"


def test_of_two_runs_with_one_seed_the_one_with_an_unchanged_config_is_used(tmp_path):
    altered = write_run(tmp_path / "a", "deepsea/ppo")
    summary = json.loads((altered / "summary.json").read_text())
    (altered / "summary.json").write_text(json.dumps(summary | {"changes": ["at step 512: device cuda → cpu"]}))
    write_run(tmp_path / "b", "deepsea/ppo")
    runs, problems = collect([tmp_path])
    assert [Path(run.name).name for run in runs] == ["b"]
    assert any("device cuda → cpu" in problem.what for problem in problems)


def test_of_two_unfinished_runs_with_one_seed_the_longer_is_used(tmp_path):
    write_run(tmp_path / "a", "deepsea/ppo", finished=False, points=3)  # a third of its steps
    write_run(tmp_path / "b", "deepsea/ppo", finished=False, points=4)  # half of them
    runs, _ = collect([tmp_path])
    assert [Path(run.name).name for run in runs] == ["b"]


def test_runs_left_out_are_listed_with_the_differences_of_their_configs(tmp_path):
    write_run(tmp_path / "a", "atari/opr", game="Pong")
    write_run(tmp_path / "b", "atari/opr", game="Pong", changes={"checkpoint_every": 7, "save_when_stopped": True})
    write_run(tmp_path / "c", "atari/opr", game="Pong")
    _, (b, c) = collect([tmp_path])
    taken = f"{tmp_path.name}/a is used instead"
    every = "checkpoint_every is 7, there 1000000; save_when_stopped is True, there False"
    assert b == (f"{tmp_path.name}/b", f"{taken}; {every}", "repeated", tmp_path / "b")
    assert c == (f"{tmp_path.name}/c", f"{taken}; their configs are equal", "repeated", tmp_path / "c")


def test_settings_of_only_one_config_are_differences():
    assert differences({"env": {"id": "x", "kwargs": {"lanes": 2}}}, {"env": {"id": "x"}}) == (
        "env.kwargs.lanes is 2, there not set"
    )
    assert differences({}, {"seed": 1}) == "rows of results files have no config to compare"


def test_runs_with_two_budgets_are_one_seed_and_two_runs(tmp_path):
    write_run(tmp_path / "a", "deepsea/ppo", steps=1000)
    write_run(tmp_path / "b", "deepsea/ppo", steps=2000)
    runs, problems = collect([tmp_path])
    assert (len(runs), count_seeds(runs), problems) == (2, 1, [])


def test_runs_are_found_once_at_any_depth(tmp_path):
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


def test_committed_results_are_read():
    deepsea, problems = collect([RESULTS / "deepsea" / "runs.jsonl"])
    assert problems == []
    assert {run.method for run in deepsea} == {"PPO", "PPO+OPR", "PPO+OPR, literal"}
    assert {run.env for run in deepsea} == {"DeepSea-12"}
    assert sum(bool(run.summary["solved"]) for run in deepsea if run.method == "PPO+OPR") == 6
    claim, problems = collect([RESULTS / "cage2-claim"])
    assert problems == []
    run = next(run for run in claim if run.seed == 0 and run.method == "PPO, 145 actions" and "B_line" in run.env)
    assert run.scores["final-greedy"].value == -5.0958
    assert run.scores["final"].value == -4.716
    assert len(run.curves[RETURN].steps) == 50


def test_run_folder_without_config_is_reported(tmp_path):
    write_run(tmp_path / "whole", "deepsea/opr", seed=0)
    (write_run(tmp_path / "lost", "deepsea/opr", seed=1) / "config.toml").unlink()
    (run,), problems = collect([tmp_path])
    assert run.seed == 0
    assert problems == [
        Problem(f"{tmp_path.name}/lost", "a summary.json without a config.toml; left out", path=tmp_path / "lost")
    ]


def test_rows_of_a_sweep_are_read_where_the_run_folder_is_missing(tmp_path):
    folder = write_run(tmp_path / "runs" / "x" / "seed-0", "deepsea/opr", seed=0)
    row = {"run": "x/seed-0", "folder": "runs/x/seed-0", "state": "finished", "preset": "deepsea/opr", "seed": 0}
    row |= {"flags": {"size": 9}, "variant": "strong", "settings": {"opr": {"bc_coef": 1.0}}, "steps": 999}
    row |= {"value": 0.5, "statistic": "mean raw return of the last 100 training episodes (sampled actions)"}
    row["metrics"] = {}
    missing = {**row, "folder": "runs/elsewhere", "seed": 1}
    lines = [row, missing, {**missing, "state": "failed", "error": "out of memory"}, {"a": 1}, 3]
    (tmp_path / "runs.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (run,), problems = read_rows(tmp_path / "runs.jsonl", "sweep")
    assert (run.env, run.method, run.scores["last-100"].value) == ("DeepSea-9", "PPO+OPR · bc_coef=1.0", 0.5)
    failed, *others = problems
    assert failed == Problem("sweep: x/seed-0", "failed (out of memory)", "unfinished")
    assert [problem.what.split(" rows")[0] for problem in others] == ["2 of 5"]
    assert folder.exists()


def test_rows_of_a_sweep_bring_their_metrics_and_curve(tmp_path):
    row = {"run": "x/seed-0", "state": "finished", "preset": "cage2/cardiff", "flags": {}, "settings": {}, "seed": 0}
    row |= {"steps": 60, "value": None, "statistic": "mean raw return of the last 100 training episodes"}
    row |= {"curve": [[30, -9.0], [60, -7.0]]}
    row["metrics"] = {"sampled_return": -6.5, "argmax_return": -6.0, "score_episodes": 1000}
    (tmp_path / "runs.jsonl").write_text(json.dumps(row) + "\n")
    (run,), problems = read_rows(tmp_path / "runs.jsonl", "sweep")
    assert problems == []
    assert {name: (score.value, score.episodes) for name, score in run.scores.items()} == {
        "final": (-6.5, 1000),
        "final-greedy": (-6.0, 1000),
    }
    assert list(run.curves[RETURN].values) == [-9.0, -7.0]


def test_published_rows_keep_removed_settings_and_other_libraries_apart(tmp_path):
    row = {"state": "finished", "preset": "gym/opr", "flags": {"env": "CartPole-v1"}, "steps": 99, "metrics": {}}
    row |= {"value": 1.0, "statistic": "mean raw return of the last 100 training episodes (sampled actions)"}
    rows = [
        {**row, "run": "a/seed-0", "seed": 0, "settings": {"total_steps": 100}},
        {**row, "run": "b/seed-0", "seed": 0, "settings": {"opr": {"no_longer_there": 3}}},
        {**row, "run": "c/seed-0", "seed": 0, "settings": {}, "library": "stable-baselines3"},
    ]
    (tmp_path / "runs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    runs, problems = collect([tmp_path])
    assert problems == []
    assert [run.method for run in runs] == ["PPO+OPR", "PPO+OPR · no_longer_there=3", "PPO+OPR of stable-baselines3"]
