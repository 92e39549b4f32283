"""Run folders: creation, locks, reading, resuming, and errors."""

import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from optimist.config import RunConfig
from optimist.errors import CheckpointError, RunFolderError, UnknownName
from optimist.tracking import run_dir
from optimist.tracking.run_dir import RunDir, default_path
from optimist.tracking.writers import read_metrics

CONFIG = RunConfig(preset="deepsea/opr", seed=4)


def content(path: Path) -> set[str]:
    return {entry.name for entry in path.iterdir()}


def test_a_new_run_has_its_config(tmp_path):
    with RunDir.create(tmp_path / "a" / "b", CONFIG) as run:
        assert content(run.path) == {".lock", "config.toml"}
    assert RunDir.read(tmp_path / "a" / "b").config == CONFIG


def test_the_default_name_has_preset_seed_and_time(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert default_path(CONFIG).match("runs/deepsea-opr-4-[0-9]*-[0-9]*")
    assert default_path(RunConfig()).name.startswith("CartPole-v1-0-")


def test_two_runs_created_in_the_same_second_have_two_folders(tmp_path, monkeypatch):
    monkeypatch.setattr(run_dir, "default_path", lambda _: tmp_path / "runs" / "x")
    with RunDir.create(None, CONFIG) as first, RunDir.create(None, CONFIG) as second:
        assert (first.path.name, second.path.name) == ("x", "x-2")


def test_an_empty_folder_is_used_and_one_with_content_is_refused_and_unchanged(tmp_path):
    (tmp_path / "empty").mkdir()
    RunDir.create(tmp_path / "empty", CONFIG).close()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("x")
    with pytest.raises(RunFolderError, match="mine is not empty; choose another --out"):
        RunDir.create(tmp_path / "mine", CONFIG)
    assert content(tmp_path / "mine") == {"thesis.txt"}


def test_creating_over_a_run_is_refused_with_the_command_that_resumes_it(tmp_path):
    RunDir.create(tmp_path / "r", CONFIG).close()
    with pytest.raises(RunFolderError, match=r"resume it with `optimist resume .*r`, or choose another --out"):
        RunDir.create(tmp_path / "r", CONFIG)
    RunDir.open(tmp_path / "r").close()  # the refused attempt freed the lock


def test_a_file_in_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "f").write_text("")
    with pytest.raises(RunFolderError, match="is a file"):
        RunDir.create(tmp_path / "f", CONFIG)


@pytest.mark.parametrize("open_run", [RunDir.open, RunDir.read])
def test_a_folder_without_a_run_is_refused(tmp_path, open_run):
    with pytest.raises(RunFolderError, match=r"is not a run folder; it has no config.toml"):
        open_run(tmp_path)
    assert content(tmp_path) == set()


def test_a_run_in_use_can_be_read_and_not_written(tmp_path):
    with RunDir.create(tmp_path / "r", CONFIG) as run:
        run.save_checkpoint(1, {"a": 1})
        with pytest.raises(RunFolderError, match="in use by another process"):
            RunDir.open(run.path)
        with pytest.raises(RunFolderError, match="in use by another process"):
            RunDir.create(run.path, CONFIG)
        assert RunDir.read(run.path).load_checkpoint() == {"a": 1}


def test_a_reader_changes_nothing(tmp_path):
    with RunDir.create(tmp_path / "r", CONFIG) as run:
        run.save_checkpoint(1, {})
        run.metrics.append(2, {})
        reader = RunDir.read(run.path)
        reader.load_checkpoint()
        assert [line["step"] for line in read_metrics(run.path / "metrics.jsonl")] == [2]
        for write in (lambda: reader.save_checkpoint(1, {}), lambda: reader.write_summary({}), lambda: reader.metrics):
            with pytest.raises(RunFolderError, match="opened read only"):
                write()


def test_resuming_truncates_the_metrics_to_the_checkpoint(tmp_path):
    with RunDir.create(tmp_path / "r", CONFIG) as run:
        run.metrics.append(1, {})
        run.save_checkpoint(1, {"update": 1})
        run.metrics.append(2, {})
    with (tmp_path / "r" / "metrics.jsonl").open("ab") as file:
        file.write(b'{"step": 3, "ha')
    with RunDir.open(tmp_path / "r") as run:
        assert run.load_checkpoint() == {"update": 1}
        run.metrics.append(2, {"again": 1})
    assert read_metrics(tmp_path / "r" / "metrics.jsonl") == [{"step": 1}, {"step": 2, "again": 1}]


def test_a_run_resumed_before_its_first_checkpoint_restarts(tmp_path):
    with RunDir.create(tmp_path / "r", CONFIG) as run:
        run.metrics.append(1, {})
    with RunDir.open(tmp_path / "r") as run:
        assert run.load_checkpoint() is None
        assert run.metrics.offset == 0


def test_opening_a_run_removes_leftovers_of_a_killed_writer(tmp_path):
    with RunDir.create(tmp_path / "r", CONFIG) as run:
        run.save_checkpoint(1, {})
    (tmp_path / "r" / ".tmp-summary.json").write_text("{")
    (tmp_path / "r" / "checkpoints" / ".tmp-step-2").mkdir()
    with RunDir.open(tmp_path / "r"):
        assert content(tmp_path / "r") == {".lock", "config.toml", "metrics.jsonl", "checkpoints"}
        assert content(tmp_path / "r" / "checkpoints") == {"step-1"}


def test_a_checkpoint_that_was_not_saved_by_a_run_is_refused(tmp_path):
    with RunDir.create(tmp_path / "r", CONFIG) as run:
        run_dir.checkpoint.save_checkpoint(run.checkpoints, 1, [1, 2])
        with pytest.raises(CheckpointError, match="not saved by a training run"):
            run.load_checkpoint()


def test_summary_and_final_policy_are_read_as_written(tmp_path):
    shared = torch.ones(2)
    with RunDir.create(tmp_path / "r", CONFIG) as run:
        assert run.read_summary() is None
        with pytest.raises(
            RunFolderError, match=r"has no final policy: the run is not finished; finish it with `optimist resume"
        ):
            run.read_final()
        run.write_summary({"solved": True, "τ": 0.5, "interval": (math.nan, math.inf)})
        run.write_final({"w": shared, "tied": shared, "t": torch.ones(2, 3).T}, {"step": "7"})
    run = RunDir.read(tmp_path / "r")
    state, metadata = run.read_final()
    assert run.read_summary() == {"solved": True, "τ": 0.5, "interval": [None, None]}  # JSON has no NaN
    assert state["tied"].tolist() == [1, 1]
    assert state["t"].shape == (3, 2)
    assert metadata == {"step": "7"}


def test_equal_final_policies_are_equal_files(tmp_path):
    files = []
    for name in ("a", "b", "c"):
        with RunDir.create(tmp_path / name, CONFIG) as run:
            run.write_final({"w": torch.ones(2), "v": torch.zeros(3)}, {"x": "1", "y": "2", "z": "3"})
        files.append((run.path / "final.safetensors").read_bytes())
    assert files[0] == files[1] == files[2]


def fail_after(run, lines):
    with run:
        for step in range(lines):
            run.metrics.append(step, {})
        raise UnknownName("no environment")


def test_a_run_refused_before_its_first_line_leaves_no_files(tmp_path):
    (tmp_path / "existing").mkdir()
    for name in ("new", "existing"):
        with pytest.raises(UnknownName):
            fail_after(RunDir.create(tmp_path / name, CONFIG), lines=0)
    assert content(tmp_path) == {"existing"}
    assert content(tmp_path / "existing") == set()


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_a_run_stopped_before_its_first_line_can_be_resumed(tmp_path, error):
    with pytest.raises(error), RunDir.create(tmp_path / "r", CONFIG):
        raise error
    assert RunDir.read(tmp_path / "r").config == CONFIG


def test_a_run_that_fails_after_its_first_line_keeps_its_files(tmp_path):
    with pytest.raises(UnknownName):
        fail_after(RunDir.create(tmp_path / "r", CONFIG), lines=1)
    assert content(tmp_path / "r") == {".lock", "config.toml", "metrics.jsonl"}
    with pytest.raises(UnknownName), RunDir.open(tmp_path / "r"):
        raise UnknownName("no environment")
    assert content(tmp_path / "r") == {".lock", "config.toml", "metrics.jsonl"}


def test_all_files_of_a_run_have_the_same_permissions(tmp_path):
    with RunDir.create(tmp_path / "r", CONFIG) as run:
        run.save_checkpoint(1, {"w": torch.ones(2)})
        run.write_final({"w": torch.ones(2)})
        modes = {path.stat().st_mode for path in run.path.rglob("*") if path.is_file() and path.name != ".lock"}
    assert len(modes) == 1


def test_a_damaged_summary_is_one_line(tmp_path):
    with RunDir.create(tmp_path / "r", RunConfig()) as run:
        run.write_summary({"steps": 1})
        (tmp_path / "r" / "summary.json").write_text("xx")
        with pytest.raises(RunFolderError, match=r"summary\.json is damaged"):
            run.read_summary()


def test_a_damaged_final_policy_is_one_line(tmp_path):
    with RunDir.create(tmp_path / "r", CONFIG) as run:
        run.write_final({"w": torch.ones(2)})
        (run.path / "final.safetensors").write_bytes(b"1234")
        with pytest.raises(CheckpointError, match=r"final.safetensors is damaged"):
            run.read_final()


HOLDER = """
import os, sys, time
from pathlib import Path
from optimist.tracking.run_dir import RunDir
from optimist.config import RunConfig
run = RunDir.create(Path(sys.argv[1]), RunConfig())
if os.fork() == 0:  # like an environment worker
    print(os.getpid(), flush=True)  # by the worker, after it released the lock
time.sleep(60)
os._exit(0)
"""


def test_a_killed_trainer_releases_the_folder_while_its_worker_is_alive(tmp_path):
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, tmp_path / "r"], stdout=subprocess.PIPE, text=True)
    worker = int(holder.stdout.readline())
    try:
        with pytest.raises(RunFolderError, match="in use"):
            RunDir.open(tmp_path / "r")
        holder.kill()
        holder.wait()
        os.kill(worker, 0)  # still alive
        RunDir.open(tmp_path / "r").close()
    finally:
        holder.kill()
        holder.wait()
        holder.stdout.close()
        os.kill(worker, signal.SIGKILL)


SAVER = """
import itertools, sys
from pathlib import Path
import torch
from optimist.tracking.run_dir import RunDir
from optimist.config import RunConfig
path = Path(sys.argv[1])
run = RunDir.open(path) if path.exists() else RunDir.create(path, RunConfig())
state = run.load_checkpoint()
for step in itertools.count(1 if state is None else state["step"] + 1):
    run.metrics.append(step, {"loss/total": 0.5})
    run.save_checkpoint(step, {"step": step, "w": torch.full((1000,), float(step))})
    print(step, flush=True)
"""


def test_a_run_killed_at_any_time_has_a_complete_checkpoint_and_its_metrics(tmp_path):
    path = tmp_path / "r"
    reached = 0
    for round_number in range(4):
        saver = subprocess.Popen([sys.executable, "-c", SAVER, path], stdout=subprocess.PIPE, text=True)
        saver.stdout.readline()
        time.sleep(0.02 + 0.013 * round_number)
        saver.send_signal(signal.SIGKILL)
        printed = saver.communicate()[0].split()
        with RunDir.open(path) as run:
            state = run.load_checkpoint()
        assert state["step"] >= max([reached, *map(int, printed)])
        assert state["w"].unique().tolist() == [state["step"]]
        steps = [json.loads(line)["step"] for line in (path / "metrics.jsonl").read_text().splitlines()]
        assert steps == list(range(1, state["step"] + 1))
        reached = state["step"]
