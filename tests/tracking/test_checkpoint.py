"""Checkpoints: exact restoring, atomic saving, and detection of damage."""

import errno
import json
import resource
import shutil
import signal
import subprocess
import sys

import numpy as np
import pytest
import torch

from optimist.errors import CheckpointError, RunFolderError
from optimist.tracking import checkpoint
from optimist.tracking.checkpoint import clean_leftovers, latest_checkpoint, load_checkpoint, save_checkpoint

STATE = {"weights": {"w": torch.arange(100.0)}, "window": np.arange(5), "seed": 2**70, "optimizer": {0: {"step": 3}}}


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_loaded_checkpoint_equals_the_saved_one(tmp_path):
    path = save_checkpoint(tmp_path, 128, STATE)
    back = load_checkpoint(path)
    assert path == tmp_path / "step-128"
    assert back["weights"]["w"].equal(STATE["weights"]["w"])
    assert back["window"].tolist() == [0, 1, 2, 3, 4]
    assert back["seed"] == 2**70
    assert back["optimizer"] == {0: {"step": 3}}


def test_a_checkpoint_has_four_files_and_no_pickle(tmp_path):
    path = save_checkpoint(tmp_path, 1, STATE)
    assert names(path) == ["arrays.safetensors", "manifest.json", "state.json", "tensors.safetensors"]
    assert json.loads((path / "state.json").read_text())["optimizer"]["items"][0][1] == {"step": 3}


def test_loaded_tensors_do_not_depend_on_the_files(tmp_path):
    path = save_checkpoint(tmp_path, 1, STATE)
    back = load_checkpoint(path)
    for file in path.iterdir():
        file.write_bytes(b"")
    back["weights"]["w"] += 1
    back["window"] += 1
    assert back["weights"]["w"][99] == 100


def test_the_two_checkpoints_with_the_highest_steps_are_kept(tmp_path):
    for step in (900, 1000, 10_000):
        save_checkpoint(tmp_path, step, STATE)
    assert names(tmp_path) == ["step-1000", "step-10000"]
    assert latest_checkpoint(tmp_path) == tmp_path / "step-10000"


def test_an_empty_or_missing_folder_has_no_latest_checkpoint(tmp_path):
    assert latest_checkpoint(tmp_path) is None
    assert latest_checkpoint(tmp_path / "absent") is None


def test_saving_the_same_step_again_replaces_it(tmp_path):
    save_checkpoint(tmp_path, 5, {"a": 1})
    save_checkpoint(tmp_path, 5, {"a": 2})
    assert names(tmp_path) == ["step-5"]
    assert load_checkpoint(tmp_path / "step-5") == {"a": 2}


def test_leftovers_of_a_killed_writer_are_removed_and_a_half_replaced_checkpoint_is_restored(tmp_path):
    save_checkpoint(tmp_path, 5, {"a": 1})
    (tmp_path / "step-5").rename(tmp_path / ".old-step-5")
    (tmp_path / ".tmp-step-5").mkdir()
    (tmp_path / ".tmp-step-5" / "state.json").write_text("{")
    clean_leftovers(tmp_path)
    assert names(tmp_path) == ["step-5"]
    assert load_checkpoint(tmp_path / "step-5") == {"a": 1}


def test_the_next_save_removes_leftovers_of_a_killed_one(tmp_path):
    (tmp_path / ".tmp-step-3").mkdir()
    save_checkpoint(tmp_path, 4, STATE)
    assert names(tmp_path) == ["step-4"]


@pytest.mark.parametrize("name", ["arrays.safetensors", "manifest.json", "state.json", "tensors.safetensors"])
@pytest.mark.parametrize("damage", ["truncate", "flip", "remove", "append"])
def test_damage_to_any_file_is_detected(tmp_path, name, damage):
    save_checkpoint(tmp_path, 1, STATE)
    path = save_checkpoint(tmp_path, 2, STATE)
    content = bytearray((path / name).read_bytes())
    if damage == "truncate":
        del content[-3:]
    elif damage == "flip":
        content[len(content) // 2] ^= 1
    elif damage == "append":
        content += b"{}"
    (path / name).write_bytes(content) if damage != "remove" else (path / name).unlink()
    with pytest.raises(CheckpointError) as caught:
        load_checkpoint(path)
    assert "\n" not in str(caught.value)
    assert "step-2 is damaged: " in str(caught.value)


def test_a_changed_number_in_the_manifest_is_detected(tmp_path):
    path = save_checkpoint(tmp_path, 1, STATE)
    manifest = json.loads((path / "manifest.json").read_text())
    manifest["files"]["state.json"]["bytes"] += 1
    (path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(CheckpointError, match=r"manifest.json was changed"):
        load_checkpoint(path)


def test_a_renamed_checkpoint_is_refused(tmp_path):
    save_checkpoint(tmp_path, 1, STATE).rename(tmp_path / "step-9")
    with pytest.raises(CheckpointError, match="saved at step 1 but is named step-9"):
        load_checkpoint(tmp_path / "step-9")


def test_a_newer_format_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "FORMAT", 2)
    path = save_checkpoint(tmp_path, 1, STATE)
    monkeypatch.undo()
    with pytest.raises(CheckpointError, match="format 2; this version of optimist reads 1"):
        load_checkpoint(path)


@pytest.mark.parametrize("place", ["tensors", "json", "sync"])
def test_a_full_disk_is_one_error_line_and_keeps_earlier_checkpoints(tmp_path, monkeypatch, place):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    save_checkpoint(tmp_path, 1, STATE)
    target = {"tensors": ("safetensors.torch.save_file"), "json": ("pathlib.Path.write_text"),
              "sync": "optimist.tracking.checkpoint.sync"}[place]  # fmt: skip
    monkeypatch.setattr(target, full)
    with pytest.raises(RunFolderError, match=r"^cannot write .*step-2: no space left on the disk") as caught:
        save_checkpoint(tmp_path, 2, STATE)
    monkeypatch.undo()
    assert "\n" not in str(caught.value)
    assert names(tmp_path) == ["step-1"]
    assert load_checkpoint(tmp_path / "step-1")["seed"] == 2**70


LIMITED = """
import resource, signal, sys
from pathlib import Path
import torch
from optimist.errors import RunFolderError
from optimist.tracking.checkpoint import save_checkpoint
folder = Path(sys.argv[1])
save_checkpoint(folder, 1, {"w": torch.zeros(10)})
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    save_checkpoint(folder, 2, {"w": torch.zeros(1_000_000)})
except RunFolderError as error:
    print(error)
"""


def test_a_file_size_limit_is_one_error_line_and_keeps_earlier_checkpoints(tmp_path):
    assert hasattr(resource, "RLIMIT_FSIZE")
    assert hasattr(signal, "SIGXFSZ")
    done = subprocess.run([sys.executable, "-c", LIMITED, tmp_path], capture_output=True, text=True, check=True)
    assert "no space left on the disk" in done.stdout
    assert done.stdout.count("\n") == 1
    assert names(tmp_path) == ["step-1"]


SMALL_DISK = """
mount -t tmpfs -o size=1m tmpfs "$1" || exit 77
"$2" -c '
import sys, torch
from pathlib import Path
from optimist.errors import RunFolderError
from optimist.tracking.checkpoint import save_checkpoint, load_checkpoint
folder = Path(sys.argv[1])
save_checkpoint(folder, 1, {"w": torch.ones(10)})
try:
    save_checkpoint(folder, 2, {"w": torch.zeros(1_000_000)})
except RunFolderError as error:
    print(error)
print(sorted(path.name for path in folder.iterdir()), load_checkpoint(folder / "step-1")["w"].sum().item())
' "$1"
"""


def test_a_mounted_disk_that_is_full_keeps_earlier_checkpoints(tmp_path):
    if shutil.which("unshare") is None:
        pytest.skip("no unshare to mount a small disk with")
    command = ["unshare", "-rm", "sh", "-c", SMALL_DISK, "sh", tmp_path, sys.executable]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip("mounting a small disk is not allowed here")
    assert done.returncode == 0, done.stderr
    error, rest = done.stdout.splitlines()
    assert "no space left on the disk" in error
    assert rest == "['step-1'] 10.0"


def test_a_value_that_cannot_be_saved_is_refused_before_anything_is_written(tmp_path):
    save_checkpoint(tmp_path, 1, STATE)
    with pytest.raises(CheckpointError, match="'odd' of type set"):
        save_checkpoint(tmp_path, 2, {"odd": set()})
    assert names(tmp_path) == ["step-1"]
