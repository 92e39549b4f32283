"""The demos train all methods, print a table and write their results to a folder."""

import json
import sys
from dataclasses import replace

import pytest

from optimist.cli.demo import cage2, deepsea, main, shared
from optimist.errors import ConfigError, MissingExtra, OptimistError, RunFolderError, UnknownName


def test_demo_ends_with_a_table_and_a_folder(tmp_path, capsys):
    arguments = [
        "deepsea",
        "--seeds",
        "2",
        "--total-steps",
        "2048",
        "--jobs",
        "1",
        "--out",
        str(tmp_path / "demo"),
        "--json",
    ]
    assert main(arguments) == 0
    shown = capsys.readouterr().out
    assert "deepsea/opr" in shown
    assert (
        "No run reached the goal, so there was nothing to keep.\n\nNext:\n  optimist demo deepsea --seeds 16" in shown
    )
    assert "optimist watch" not in shown
    result = json.loads(shown.splitlines()[-1])
    assert [row["method"] for row in result["rows"]] == ["deepsea/ppo", "deepsea/opr"] * 2
    assert "| goal_seen | solved | solved/goal_seen |" in (tmp_path / "demo" / "table.md").read_text()
    assert len(list((tmp_path / "demo").glob("runs/*/*/summary.json"))) == 4


def test_cage2_demo_compares_three_methods_and_writes_table_and_figure(tmp_path, capsys):
    out = tmp_path / "demo"
    assert main(["--seeds", "1", "--total-steps", "40000", "--jobs", "2", "--out", str(out), "--json"]) == 0
    *_, last = capsys.readouterr().out.splitlines()
    rows = json.loads(last)["rows"]
    assert [row["method"] for row in rows] == ["cage2/ppo", "cage2/cardiff", "cage2/cardiff-opr"]
    assert all(-400 < row["metrics"][name] < 0 for row in rows for name in ("argmax_return", "sampled_return"))
    assert "shortened: 40,000 of the paper's 3,000,000 steps" in (out / "table.md").read_text()
    assert "1 short run" in (out / "table.md").read_text()
    assert (out / "curves.svg").read_text().count("<svg") == 1


def test_unknown_demo_gets_a_suggestion():
    with pytest.raises(UnknownName, match="did you mean 'cage2'"):
        main(["cage"])


@pytest.mark.parametrize("flag", ["--seeds", "--jobs", "--total-steps"])
def test_bad_numbers_are_refused_by_flag(flag):
    with pytest.raises(ConfigError, match=f"{flag} must be at least 1, got 0"):
        main(["deepsea", flag, "0"])


def test_folder_with_content_is_refused_before_training(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(RunFolderError, match="is not empty; choose another --out"):
        main(["deepsea", "--out", str(tmp_path)])
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_missing_packages_and_folders_are_reported_before_training(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtra, match=r"'.\[report\]'"):
        main(["cage2", "--out", str(tmp_path / "demo")])
    assert capsys.readouterr().err == ""
    assert not (tmp_path / "demo").exists()
    (tmp_path / "file").touch()
    with pytest.raises(RunFolderError, match="cannot write"):
        main(["deepsea", "--out", str(tmp_path / "file" / "demo")])
    assert capsys.readouterr().err == ""


def demo_rows(*runs):
    names = ("solved", "goal_rate", "goal_seen")
    return [{"run": f"run-{n}", "metrics": dict(zip(names, run, strict=True))} for n, run in enumerate(runs)]


def test_a_run_that_saw_the_goal_is_recommended(tmp_path, capsys, monkeypatch):
    rows = demo_rows((False, 0.0, False), (False, 0.1, True), (False, 0.0, False))
    monkeypatch.setattr(deepsea, "train_demo", lambda *arguments: rows)
    monkeypatch.setattr(deepsea, "show_comparison", lambda *arguments: None)
    deepsea.main(["--out", str(tmp_path / "demo")])
    shown = capsys.readouterr().out
    assert f"The best run is {tmp_path}/demo/runs/run-1\n" in shown
    assert f"  optimist watch {tmp_path}/demo/runs/run-1\n" in shown


def test_the_run_that_learned_the_goal_is_recommended():
    unseen, forgotten = (False, 0.0, False), (False, 0.0, True)
    assert shared.best_run(demo_rows(unseen, forgotten), deepsea.BEST) == "run-1"
    assert shared.best_run(demo_rows(forgotten, (True, 0.9, True), unseen), deepsea.BEST) == "run-1"
    assert shared.best_run(demo_rows((True, 0.9, True), (True, 0.95, True)), deepsea.BEST) == "run-1"


@pytest.mark.parametrize(
    ("with_opr", "note"),
    [
        (
            [-4.9, -5.1, -6.4],
            "With 3 short runs of each, cage2/cardiff-opr and cage2/cardiff do not differ significantly "
            "(argmax_return, sampled_return).",
        ),
        ([-1.9, -2.0, -2.1], ""),
        ([-9.9, -9.8, -9.7], ""),
        ([-5.0], "With 1 short run of each"),
    ],
)
def test_overlapping_results_are_not_ranked(with_opr, note):
    plain = [-5.0, -5.5, -6.0][: len(with_opr)]
    rows = [
        {"method": method, "metrics": {"argmax_return": mean, "sampled_return": mean}}
        for method, means in (("cage2/cardiff", plain), ("cage2/cardiff-opr", with_opr))
        for mean in means
    ]
    assert cage2.verdict(rows).startswith(note)
    assert bool(cage2.verdict(rows)) == bool(note)


def test_failed_run_ends_the_demo_with_its_error(tmp_path):
    options = shared.parse_demo(["--out", str(tmp_path / "demo")], "deepsea", "", seeds=1, total_steps=2_048)
    plan = shared.plan_demo(options, presets=["deepsea/ppo"])
    (run,) = plan.runs
    broken = replace(run, config=replace(run.config, env=replace(run.config.env, id="CartPol-v1", kwargs={})))
    with pytest.raises(OptimistError, match=r"seed-0 failed: no environment 'CartPol-v1'; did you mean 'CartPole-v1'"):
        shared.train_demo(replace(plan, runs=(broken,)), options, "broken")
