import json
import os
import signal
import subprocess
import sys
import time

import pytest

import optimist
from optimist.cli.main import main
from optimist.core.settings import REMOVED
from optimist.tracking.run_dir import RunDir
from optimist.tracking.writers import read_metrics
from tests.metrics import undocumented, without_time

SMALL = ["deepsea/opr", "--size", "4", "--total-steps", "4096", "--no-tensorboard"]


def last_json(capsys):
    return json.loads(capsys.readouterr().out.splitlines()[-1])


def lines_of(path):
    return [without_time(line) for line in read_metrics(path / "metrics.jsonl")]


@pytest.fixture
def trained(tmp_path, capsys):
    path = tmp_path / "run"
    assert main(["train", *SMALL, "--out", str(path), "--json"]) == 0
    return path, last_json(capsys)


def test_a_trained_run_folder_has_all_files(trained):
    path, summary = trained
    names = {entry.name for entry in path.iterdir()}
    assert names == {".lock", "checkpoints", "config.toml", "final.safetensors", "metrics.jsonl", "summary.json"}
    assert summary == json.loads((path / "summary.json").read_text())
    assert {"statistic", "episodes", "seed", "goal_seen", "solved"} <= summary.keys()
    assert RunDir.read(path).config.env.kwargs == {"size": 4}


def test_every_logged_metric_is_documented(trained):
    names = {name for line in read_metrics(trained[0] / "metrics.jsonl") for name in line}
    assert "opr/threshold" in names
    assert undocumented(names) == []


def test_the_trained_policy_is_evaluated(trained, capsys):
    path, _ = trained
    before = {entry.name for entry in path.iterdir()}
    assert main(["evaluate", str(path), "--episodes", "20", "--greedy", "--json"]) == 0
    result = last_json(capsys)
    assert result["episodes"] == 20
    assert result["actions"] == "greedy"
    assert {entry.name for entry in path.iterdir()} == before


def test_a_finished_run_is_neither_trained_over_nor_changed_by_resume(trained, capsys):
    path, summary = trained
    before = {entry: entry.read_bytes() for entry in path.rglob("*") if entry.is_file()}
    assert main(["train", *SMALL, "--out", str(path)]) == 2
    assert "is not empty; resume it with `optimist resume" in capsys.readouterr().err
    assert main(["resume", str(path), "--json"]) == 0
    assert last_json(capsys) == summary
    assert {entry: entry.read_bytes() for entry in path.rglob("*") if entry.is_file()} == before


def test_an_absent_run_is_refused_in_one_line(tmp_path, capsys):
    assert main(["resume", str(tmp_path / "absent")]) == 2
    assert "absent is not a run folder; it has no config.toml" in capsys.readouterr().err
    assert main(["evaluate", str(tmp_path / "absent")]) == 2
    assert "absent" in capsys.readouterr().err


def test_an_unknown_environment_is_refused_and_leaves_no_folder(tmp_path, capsys):
    assert main(["train", "gym/ppo", "--env", "CartPoole-v1", "--out", str(tmp_path / "run")]) == 2
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "did you mean 'CartPole-v1'?" in err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)])
def test_a_run_stopped_by_a_signal_and_resumed_equals_an_uninterrupted_one(tmp_path, capsys, number, code):
    flags = ["deepsea/opr", "--size", "5", "--total-steps", "20480", "--checkpoint-every", "4096", "--no-tensorboard"]
    assert main(["train", *flags, "--out", str(tmp_path / "whole"), "--quiet"]) == 0

    stopped = tmp_path / "stopped"
    command = [sys.executable, "-m", "optimist", "train", *flags, "--out", str(stopped), "--quiet"]
    process = subprocess.Popen(command, env=os.environ | {"OMP_NUM_THREADS": "1"}, stderr=subprocess.PIPE, text=True)
    checkpoints = stopped / "checkpoints"
    deadline = time.monotonic() + 60
    while not (checkpoints.exists() and list(checkpoints.glob("step-*"))) and time.monotonic() < deadline:
        time.sleep(0.005)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == code, err
    assert "Traceback" not in err
    assert not (stopped / "summary.json").exists()

    assert main(["resume", str(stopped), "--quiet"]) == 0
    assert (stopped / "final.safetensors").read_bytes() == (tmp_path / "whole" / "final.safetensors").read_bytes()
    assert lines_of(stopped) == lines_of(tmp_path / "whole")


def test_a_damaged_checkpoint_is_set_aside_and_the_one_before_continues(tmp_path, capsys):
    path = tmp_path / "run"
    assert main(["train", *SMALL, "--checkpoint-every", "1024", "--out", str(tmp_path / "whole"), "--quiet"]) == 0
    assert main(["train", *SMALL, "--checkpoint-every", "1024", "--out", str(path), "--quiet"]) == 0
    (path / "summary.json").unlink()  # as if the run were unfinished
    newest, older = sorted((path / "checkpoints").iterdir(), reverse=True)
    with (newest / "tensors.safetensors").open("r+b") as file:
        file.seek(-1, os.SEEK_END)
        file.write(b"\x7f")
    capsys.readouterr()
    assert main(["resume", str(path), "--quiet"]) == 0
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"optimist: checkpoint {newest} is damaged: tensors.safetensors does not match its checksum")
    assert line.endswith(f"it is now damaged-{newest.name}; {older.name} is used instead")
    assert lines_of(path) == lines_of(tmp_path / "whole")


def test_without_an_intact_checkpoint_a_run_is_refused_in_one_line(tmp_path, capsys):
    path = tmp_path / "run"
    assert main(["train", *SMALL, "--out", str(path), "--quiet"]) == 0
    (path / "summary.json").unlink()
    for checkpoint in (path / "checkpoints").iterdir():
        (checkpoint / "state.json").write_text("{}")
    capsys.readouterr()
    assert main(["resume", str(path)]) == 2
    err = capsys.readouterr().err
    assert err.endswith("; there is no other to continue from\n")
    assert err.count("\n") == 1


@pytest.fixture
def unfinished(tmp_path):
    """A run with a checkpoint and no summary."""
    path = tmp_path / "run"
    assert main(["train", *SMALL, "--checkpoint-every", "1024", "--out", str(path), "--quiet"]) == 0
    (path / "summary.json").unlink()
    return path


def edit(path, before, after):
    text = (path / "config.toml").read_text()
    assert text.count(before) == 1
    (path / "config.toml").write_text(text.replace(before, after))


def test_a_config_changed_since_the_checkpoint_is_reported(unfinished, capsys):
    assert main(["resume", str(unfinished)]) == 0
    assert "config.toml was changed" not in capsys.readouterr().err
    (unfinished / "summary.json").unlink()
    edit(unfinished, "\nepochs = 4\n", "\nepochs = 2\n")
    edit(unfinished, "\ntotal_steps = 4096\n", "\ntotal_steps = 8192\n")
    assert main(["resume", str(unfinished), "--json"]) == 0
    printed = capsys.readouterr()
    changes = "total_steps 4096 → 8192, algorithm.epochs 4 → 2"
    assert f"config.toml was changed since the checkpoint: {changes}" in " ".join(printed.err.split())
    summary = json.loads(printed.out.splitlines()[-1])
    assert summary["steps"] == 8192
    assert summary["changes"] == [f"at step 4,096: {change}" for change in changes.split(", ")]
    assert main(["report", str(unfinished), "--out", str(unfinished.parent / "report")]) == 0
    assert (
        "its config was changed during the run (at step 4,096: total_steps 4096 → 8192; at step 4,096: algorithm"
        in (unfinished.parent / "report" / "report.html").read_text(encoding="utf-8")
    )


def test_another_seed_is_another_run(unfinished, capsys):
    edit(unfinished, "\nseed = 0\n", "\nseed = 77\n")
    capsys.readouterr()
    assert main(["resume", str(unfinished)]) == 2
    assert "cannot resume: the run has seed 0, and config.toml says 77" in capsys.readouterr().err


def test_a_finished_run_with_a_larger_budget_prints_how_to_continue(unfinished, capsys):
    assert main(["resume", str(unfinished)]) == 0
    edit(unfinished, "\ntotal_steps = 4096\n", "\ntotal_steps = 6144\n")
    assert main(["resume", str(unfinished), "--json"]) == 0
    printed = capsys.readouterr()
    assert "total_steps was raised since: delete summary.json to continue it" in printed.err
    assert json.loads(printed.out.splitlines()[-1])["steps"] == 4096
    (unfinished / "summary.json").unlink()
    assert main(["resume", str(unfinished), "--json"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["steps"] == 6144


def test_a_config_that_changes_the_steps_of_an_update_is_refused(unfinished, capsys):
    edit(unfinished, "\nnum_envs = 16\n", "\nnum_envs = 8\n")
    capsys.readouterr()
    assert main(["resume", str(unfinished)]) == 2
    assert capsys.readouterr().err.startswith("optimist: error: cannot resume: config.toml was changed, an update had ")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("\ncapacity_transitions = 50000\n", "\ncapacity_transitions = 20\n"),
        ("\n[opr]\n", '\n[opr]\nshaping_scale = 0.5\nreference = "cloned"\n'),
        ("\n    64,\n    64,\n", "\n    32,\n    32,\n"),
        ("\nsize = 4\n", "\nsize = 5\n"),
    ],
)
def test_a_config_that_does_not_fit_the_checkpoint_is_refused_in_one_line(unfinished, before, after, capsys):
    edit(unfinished, before, after)
    capsys.readouterr()
    assert main(["resume", str(unfinished)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("optimist: error: cannot resume: config.toml was changed (")
    assert line.endswith("the checkpoint does not fit it; undo the change, or train a new run")


def test_a_run_saved_with_removed_settings_is_not_resumed_and_is_still_evaluated(unfinished, capsys, monkeypatch):
    (saved := unfinished / "config.toml").write_text(saved.read_text().replace("[opr]\n", "[opr]\ngone = true\n"))
    monkeypatch.setitem(REMOVED, "opr.gone", "it changed nothing (docs/paper.md)")
    assert main(["evaluate", str(unfinished), "--episodes", "2", "--json"]) == 0
    capsys.readouterr()
    assert main(["resume", str(unfinished)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"optimist: error: {saved}, saved by optimist {optimist.__version__}, cannot be resumed: ")
    assert line.endswith("opr.gone no longer exists: it changed nothing (docs/paper.md); its weights can still be used")
