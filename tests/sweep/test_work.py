"""One run of a sweep: begun, gone on with, or refused; what goes wrong is an outcome."""

import pytest

from optimist.sweep.folder import WorkFolder
from optimist.sweep.work import execute, make_task
from optimist.tracking.lock import FolderLock
from tests.sweep.tiny import tiny_plan

RUN = tiny_plan().runs[0]


@pytest.fixture
def folder(tmp_path):
    folder = WorkFolder(tmp_path / "sweep")
    folder.claim("plan.json").release()
    return folder


def task(place, **changes):
    return make_task(place, RUN.name, RUN.config) | changes


def test_a_run_is_done_and_doing_it_again_changes_nothing(folder):
    assert execute(task(folder)).error is None
    summary = folder.run_path(RUN.name) / "summary.json"
    before = summary.read_bytes(), summary.stat().st_mtime_ns
    assert execute(task(folder)).error is None
    assert (summary.read_bytes(), summary.stat().st_mtime_ns) == before


def test_a_process_killed_before_its_first_line_leaves_nothing_in_the_way(folder):
    path = folder.run_path(RUN.name)
    path.mkdir(parents=True)
    for name in (".lock", ".tmp-config.toml"):
        (path / name).touch()
    assert execute(task(folder)).error is None


@pytest.mark.parametrize(
    ("spoil", "words", "hopeless"),
    [
        (lambda path: (path / "notes.txt").touch(), "holds files but no config.toml", False),
        (lambda path: (path / "config.toml").write_text("seed = "), "config.toml is not valid TOML", True),
        (lambda path: (path / "config.toml").write_text("sed = 1"), "no setting 'sed'; did you mean 'seed'?", True),
        (lambda path: (path / "config.toml").write_text("seed = 1"), "was started with other settings", True),
    ],
)
def test_a_folder_that_is_not_this_run_is_one_line(folder, spoil, words, hopeless):
    path = folder.run_path(RUN.name)
    path.mkdir(parents=True)
    spoil(path)
    outcome = execute(task(folder))
    assert words in outcome.error
    assert "\n" not in outcome.error
    assert outcome.hopeless is hopeless


def test_a_damaged_checkpoint_is_named_and_not_tried_again(folder):
    assert execute(task(folder)).error is None
    path = folder.run_path(RUN.name)
    (path / "summary.json").unlink()
    newest = max((path / "checkpoints").iterdir(), key=lambda entry: int(entry.name.removeprefix("step-")))
    state = newest / "state.json"
    state.write_bytes(state.read_bytes()[:-20])
    outcome = execute(task(folder))
    assert newest.name in outcome.error
    assert outcome.hopeless


def test_a_folder_in_use_is_waited_for_and_then_an_error_that_may_pass(folder):
    path = folder.run_path(RUN.name)
    path.mkdir(parents=True)
    lock = FolderLock(path)
    outcome = execute(task(folder), patience=0.1)
    lock.release()
    assert "is in use by another process" in outcome.error
    assert not outcome.hopeless
    assert execute(task(folder)).error is None


def test_a_machine_that_does_not_see_the_folder_says_so_and_makes_none(folder, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    outcome = execute(task(folder, folder=str(elsewhere)))
    assert f"does not see {elsewhere}; put the sweep on a path all nodes share" in outcome.error
    assert outcome.hopeless
    assert not elsewhere.exists()


def test_another_version_on_a_machine_is_refused(folder):
    assert "the driver 0.0.0; install the same version" in execute(task(folder, version="0.0.0")).error


def test_a_bug_keeps_its_traceback_in_the_log(folder, monkeypatch):
    monkeypatch.setattr("optimist.training.loop.train", lambda *a, **k: 1 / 0)
    assert execute(task(folder)).error == "ZeroDivisionError: division by zero"
    assert "Traceback" in folder.log_path(RUN.name).read_text()
