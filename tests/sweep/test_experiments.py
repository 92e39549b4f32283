"""The sweep files in experiments/, and the published rows that belong to them."""

import json
from pathlib import Path

import pytest

from optimist.cli.main import main
from optimist.presets import all_presets
from optimist.sweep.driver import run_sweep
from optimist.sweep.plan import make_plan, read_plan
from tests.sweep.test_local import snapshot

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "experiments").glob("*.toml"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_run_of_an_experiment_is_published_and_not_run_again(file):
    plan = read_plan(file)
    if plan.out is None:
        pytest.skip("not published")
    before, lines = snapshot(plan.out), []
    rows = run_sweep(plan, plan.out, message=lines.append)
    assert [row["run"] for row in rows] == [run.name for run in plan.runs]
    assert lines == [f"{len(plan.runs)} runs found, none run again; --out DIR for a fresh rerun"]
    assert snapshot(plan.out) == before


def test_report_of_an_experiment_is_the_folder_of_its_claim(tmp_path, capsys):
    file, out = ROOT / "experiments" / "deepsea-fresh.toml", tmp_path / "out"
    assert main(["report", "--experiment", str(file), "-o", str(out)]) == 0
    written = capsys.readouterr().out.splitlines()
    assert written == [f"written to {out / name}" for name in ("README.md", "table.md", "figures/goals-deepsea.svg")]
    assert "4/4 (0.51 – 1.00)" in (out / "table.md").read_text()
    assert main(["report", str(tmp_path), "--experiment", str(file)]) == 2
    assert "one of the two" in capsys.readouterr().err


def test_a_claim_is_not_written_over_other_files(tmp_path, capsys):
    (tmp_path / "thesis.tex").write_text("mine")
    assert main(["report", "--experiment", str(ROOT / "experiments" / "deepsea-fresh.toml"), "-o", str(tmp_path)]) == 2
    assert "is not empty and holds no claim; choose another -o" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_report_of_an_unpublished_experiment_says_what_to_do(tmp_path, capsys):
    (tmp_path / "mine.toml").write_text('presets = ["deepsea/ppo"]\nseeds = 1\n')
    assert main(["report", "--experiment", str(tmp_path / "mine.toml"), "-o", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert "has no published rows; run optimist sweep" in error
    assert error.count("\n") == 1


def test_the_claim_on_deepsea_is_96_runs(capsys):
    assert main(["sweep", str(ROOT / "experiments" / "deepsea.toml")]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("96 runs found, none run again; --out DIR for a fresh rerun\n")


def test_the_numbers_of_the_first_published_tables_have_not_changed():
    deepsea = (ROOT / "results" / "deepsea" / "table.md").read_text()
    assert "| 32 | 6/32 (0.09 – 0.35) | 6/32 (0.09 – 0.35) | 6/6 (0.61 – 1.00) | p = 0.63 |" in deepsea
    claim = (ROOT / "results" / "cage2-claim" / "table.md").read_text()
    assert "| 10 | -6.91 ± 1.45 | -7.07 ± 1.48 | -2.53 ± 1.46 |" in claim
    assert "mean over red rules=competition | 2,997,000 | 5 | -15.39 ± 7.36 | -16.42 ± 7.09 | -10.04 ± 7.36 |" in claim
    minatar = (ROOT / "results" / "minatar" / "table.md").read_text()
    assert "| gym/opr | MinAtar/Breakout-v1 | 999,424 | 3 | 14.23 ± 8.36 | 8.63 ± 1.18 |" in minatar


def test_the_tables_of_methods_have_every_method_of_their_families():
    presets = {preset.name for preset in all_presets()}
    cage2 = {run.config.preset for run in read_plan(ROOT / "experiments" / "cage2-methods.toml").runs}
    later = {"cage2/best", "cage2/cardiff-ends", "cage2/cardiff-opening", "cage2/cardiff-corrected"}
    assert cage2 == {name for name in presets if name.startswith("cage2/")} - later
    tasks = {run.config.preset for run in read_plan(ROOT / "experiments" / "methods.toml").runs}
    methods = [
        {name.partition("/")[2] for name in presets if name.startswith(task)} for task in ("deepsea/", "keydoor/")
    ]
    assert {name.partition("/")[2] for name in tasks} == methods[0] & methods[1]


def test_cage2_runs_are_scored_and_a_missing_score_is_made_up_for(tmp_path):
    plan = make_plan(
        {
            "presets": ["cage2/a2c-opr", "cage2/dqn-opr"],
            "flags": {"red": "Meander"},
            "seeds": 1,
            "score_episodes": 20,
            "settings": {"total_steps": 2_880, "final_episodes": 0, "tensorboard": False},
            "measures": ["argmax_return", "sampled_return"],
        }
    )
    rows = run_sweep(plan, tmp_path, quiet=True)
    for row in rows:
        assert row["metrics"]["score_episodes"] == 20
        assert row["metrics"]["argmax_return"] < 0
        assert row["metrics"]["sampled_return"] < 0
        assert row["curve"][-1][0] == row["steps"]
    score = tmp_path / "runs" / plan.runs[0].name / "score.json"
    before = score.read_text()
    score.unlink()
    assert run_sweep(plan, tmp_path, quiet=True) == rows
    assert score.read_text() == before
    assert json.loads(before)["argmax_return"] == rows[0]["metrics"]["argmax_return"]


def test_a_delayed_mujoco_run_has_a_row_with_its_curve(tmp_path):
    pytest.importorskip("mujoco")
    settings = {"total_steps": 4_096, "tensorboard": False}
    document = {"presets": ["mujoco/ppo-sil"], "flags": {"env": "Hopper-v5", "delay": 20}, "seeds": 1}
    plan = make_plan(document | {"settings": settings})
    (row,) = run_sweep(plan, tmp_path, quiet=True)
    assert (row["env"], row["method"], row["steps"]) == ("Hopper-v5 delay=20", "mujoco/ppo-sil", 4_096)
    assert [step for step, _ in row["curve"]] == [2_048, 4_096]
    assert row["metrics"]["mean_return"] == pytest.approx(sum(value for _, value in row["curve"]) / 2)


def test_the_settings_for_minatar_are_found_without_registering_its_games(tmp_path):
    pytest.importorskip("minatar")
    plan = read_plan(ROOT / "experiments" / "minatar.toml")
    run = next(run for run in plan.runs if run.method == "gym/opr")
    document = {"presets": ["gym/opr"], "flags": run.origin["flags"], "seeds": 1}
    small = {**run.origin["settings"], "total_steps": 2_048}
    (row,) = run_sweep(make_plan(document | {"settings": small}), tmp_path, quiet=True)
    assert (row["state"], row["env"]) == ("finished", "MinAtar/Asterix-v1")
