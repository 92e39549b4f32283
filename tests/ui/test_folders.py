import shutil

import pytest

from optimist.errors import RunFolderError
from optimist.tracking.files import FolderLock
from optimist.ui import folders
from optimist.ui.folders import RunsFolder
from tests.report.fake_runs import write_run


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    monkeypatch.setattr(folders, "FRESH", -1.0)


def test_a_run_shows_its_status_progress_and_identity(tmp_path):
    write_run(tmp_path / "done", "deepsea/opr", 3, size=12)
    write_run(tmp_path / "half", "deepsea/ppo", 4, finished=False, size=12)
    done, half = RunsFolder(tmp_path).scan()
    assert (done.status, done.share, done.method, done.env, done.seed, done.memory) == (
        "finished", 1.0, "PPO+OPR", "DeepSea-12", 3, True,
    )  # fmt: skip
    assert (half.status, half.share, half.rate, half.left, half.memory) == ("stopped", 0.5, None, None, False)
    assert len(done.spark) == 12


def test_a_locked_folder_is_a_running_run_with_time_left(tmp_path):
    write_run(tmp_path / "now", "deepsea/ppo", finished=False, size=12)
    lock = FolderLock(tmp_path / "now")
    try:
        (run,) = RunsFolder(tmp_path).scan()
        assert run.status == "running"
        assert run.left == pytest.approx((run.budget - run.steps) / 900.0)
    finally:
        lock.release()


def test_runs_behind_symbolic_links_are_not_found(tmp_path):
    write_run(tmp_path / "away" / "run", "deepsea/ppo")
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "link").symlink_to(tmp_path / "away" / "run")
    assert RunsFolder(tmp_path / "here").scan() == []


def test_a_config_that_cannot_be_read_is_a_note_in_the_table(tmp_path):
    write_run(tmp_path / "bad", "deepsea/ppo")
    (tmp_path / "bad" / "config.toml").write_bytes(b"seed = [\xff")
    (run,) = RunsFolder(tmp_path).scan()
    assert run.status == "broken"
    assert run.note.startswith("config.toml cannot be read")
    assert "\n" not in run.note


def test_a_run_that_is_deleted_disappears_and_its_name_gives_one_line(tmp_path):
    write_run(tmp_path / "a", "deepsea/ppo")
    folder = RunsFolder(tmp_path)
    assert [run.name for run in folder.scan()] == ["a"]
    shutil.rmtree(tmp_path / "a")
    with pytest.raises(RunFolderError, match="may have been deleted"):
        folder.path("a")


def test_new_lines_change_the_table(tmp_path):
    path = write_run(tmp_path / "a", "deepsea/ppo", finished=False, size=12)
    folder = RunsFolder(tmp_path)
    before = folder.scan()[0].steps
    with (path / "metrics.jsonl").open("a") as file:
        file.write('{"step": 190000, "rollout/raw_return": 0.5}\n{"step": 1')
    assert before < folder.scan()[0].steps == 190_000


def test_a_run_without_new_lines_for_long_is_called_stalled(tmp_path, monkeypatch):
    write_run(tmp_path / "a", "deepsea/ppo", finished=False)
    monkeypatch.setattr(folders, "STALLED", -1.0)
    lock = FolderLock(tmp_path / "a")
    try:
        assert "no new line for" in RunsFolder(tmp_path).scan()[0].note
    finally:
        lock.release()


def test_rows_of_a_results_file_are_finished_runs(tmp_path):
    source = folders.Path(__file__).parents[2] / "results" / "deepsea" / "runs.jsonl"
    shutil.copy(source, tmp_path / "runs.jsonl")
    runs = RunsFolder(tmp_path).scan()
    assert {run.status for run in runs} == {"finished"}
    assert not any(run.is_folder for run in runs)
    with pytest.raises(RunFolderError, match="row of a results file"):
        RunsFolder(tmp_path).path(runs[0].name)


def test_names_are_sorted_by_their_numbers(tmp_path):
    for n in (10, 2, 1):
        write_run(tmp_path / f"run-{n}", "deepsea/ppo", n)
    assert [run.name for run in RunsFolder(tmp_path).scan()] == ["run-1", "run-2", "run-10"]
