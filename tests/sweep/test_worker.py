"""One run of a sweep: trained, resumed or refused; errors are outcomes."""

import pytest

from optimist.sweep.folder import SweepFolder
from optimist.sweep.worker import execute, make_task
from optimist.tracking.files import FolderLock
from tests.sweep.tiny import tiny_plan

RUN = tiny_plan().runs[0]


@pytest.fixture
def folder(tmp_path):
    folder = SweepFolder(tmp_path / "sweep")
    folder.lock().release()
    return folder


def task(place, **changes):
    return make_task(place, RUN) | changes


def test_a_finished_run_is_not_changed_by_another_attempt(folder):
    assert execute(task(folder)).error is None
    summary = folder.run_path(RUN.name) / "summary.json"
    before = summary.read_bytes(), summary.stat().st_mtime_ns
    assert execute(task(folder)).error is None
    assert (summary.read_bytes(), summary.stat().st_mtime_ns) == before


def test_a_process_killed_before_it_wrote_a_config_does_not_block_the_run(folder):
    path = folder.run_path(RUN.name)
    path.mkdir(parents=True)
    for name in (".lock", ".tmp-config.toml"):
        (path / name).touch()
    assert execute(task(folder)).error is None


@pytest.mark.parametrize(
    ("spoil", "words", "permanent"),
    [
        (lambda path: (path / "notes.txt").touch(), "has files but no config.toml", False),
        (lambda path: (path / "config.toml").write_text("seed = "), "config.toml is not valid TOML", True),
        (lambda path: (path / "config.toml").write_text("sed = 1"), "no setting 'sed'; did you mean 'seed'?", True),
        (lambda path: (path / "config.toml").write_text("seed = 1"), "has other settings than the sweep file", True),
    ],
)
def test_a_folder_of_something_else_is_refused_in_one_line(folder, spoil, words, permanent):
    path = folder.run_path(RUN.name)
    path.mkdir(parents=True)
    spoil(path)
    outcome = execute(task(folder))
    assert words in outcome.error
    assert "\n" not in outcome.error
    assert outcome.permanent is permanent


def test_a_damaged_checkpoint_is_named_and_permanent_where_there_is_no_other(folder):
    assert execute(task(folder)).error is None
    path = folder.run_path(RUN.name)
    (path / "summary.json").unlink()
    for checkpoint in (path / "checkpoints").iterdir():
        state = checkpoint / "state.json"
        state.write_bytes(state.read_bytes()[:-20])
    newest = max((path / "checkpoints").iterdir(), key=lambda entry: int(entry.name.removeprefix("step-")))
    outcome = execute(task(folder))
    assert newest.name in outcome.error
    assert outcome.permanent


def test_a_folder_in_use_is_awaited_and_then_a_temporary_error(folder):
    path = folder.run_path(RUN.name)
    path.mkdir(parents=True)
    lock = FolderLock(path)
    outcome = execute(task(folder), lock_timeout=0.1)
    lock.release()
    assert "is in use by another process" in outcome.error
    assert not outcome.permanent
    assert execute(task(folder)).error is None


def test_a_node_that_does_not_see_the_folder_reports_it_and_creates_none(folder, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    outcome = execute(task(folder, folder=str(elsewhere)))
    assert f"does not see {elsewhere}; use a path that all nodes share" in outcome.error
    assert outcome.permanent
    assert not elsewhere.exists()


def test_a_node_with_another_version_is_refused(folder):
    assert "the driver has 0.0.0; install the same version" in execute(task(folder, version="0.0.0")).error


def test_the_traceback_of_an_error_is_in_the_log(folder, monkeypatch):
    monkeypatch.setattr("optimist.training.trainer.train", lambda *a, **k: 1 / 0)
    assert execute(task(folder)).error == "ZeroDivisionError: division by zero"
    assert "Traceback" in folder.log_path(RUN.name).read_text()
