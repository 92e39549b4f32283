"""Real sweeps in real processes: finished, killed, resumed and refused."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

from optimist.cli.main import main
from optimist.errors import RunFolderError
from optimist.sweep.driver import run_sweep
from optimist.sweep.folder import SweepFolder
from tests.sweep.tiny import results, tiny_file, tiny_plan


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """A sweep without interruption."""
    folder = tmp_path_factory.mktemp("undisturbed")
    lines = run_sweep(tiny_plan(), folder, quiet=True)
    assert [line["state"] for line in lines] == ["finished"] * 4
    return folder


def wait_for(what, driver=None, seconds=60.0):
    until = time.monotonic() + seconds
    while not (found := what()):
        assert driver is None or driver.poll() is None, driver.communicate()
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.01)
    return found


def unfinished(folder):
    """Runs with a checkpoint and no summary."""
    return [
        path.parents[1]
        for path in folder.glob("runs/*/*/checkpoints/step-*")
        if not (path.parents[1] / "summary.json").exists()
    ]


def snapshot(folder):
    """Content and time of every file."""
    return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.rglob("*") if path.is_file()}


def test_a_finished_sweep_is_reported_and_not_touched(undisturbed):
    before, lines = snapshot(undisturbed), []
    rows = run_sweep(tiny_plan(), undisturbed, message=lines.append)
    assert snapshot(undisturbed) == before
    assert lines == ["4 runs found, none run again; --out DIR for a fresh rerun"]
    assert [json.dumps(row) for row in rows] == (undisturbed / "runs.jsonl").read_text().splitlines()


def test_rows_of_the_first_format_are_made_again_and_no_run_is(undisturbed, tmp_path):
    shutil.copytree(undisturbed, tmp_path / "old")
    rows = [json.loads(line) for line in (undisturbed / "runs.jsonl").read_text().splitlines()]
    for row in rows:
        row["solved"] = row.pop("metrics")["solved"]
    (tmp_path / "old" / "runs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    before = (tmp_path / "old" / "events.jsonl").read_text()
    run_sweep(tiny_plan(), tmp_path / "old", quiet=True)
    assert results(tmp_path / "old") == results(undisturbed)
    assert (tmp_path / "old" / "events.jsonl").read_text() == before


def test_published_rows_are_finished_runs(undisturbed, tmp_path):
    rows = [json.loads(line) for line in (undisturbed / "runs.jsonl").read_text().splitlines()]
    for row in rows:
        del row["folder"]
    (tmp_path / "runs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    before, lines = snapshot(tmp_path), []
    assert run_sweep(tiny_plan(), tmp_path, message=lines.append) == rows
    assert snapshot(tmp_path) == before
    assert lines == ["4 runs found, none run again; --out DIR for a fresh rerun"]
    assert run_sweep(tiny_plan(seeds=1), tmp_path) == rows[:2]
    with pytest.raises(RunFolderError, match=r"holds another sweep \(.*seed-0 differs in the file\)"):
        run_sweep(tiny_plan(settings={"total_steps": 4_096}), tmp_path)
    assert snapshot(tmp_path) == before
    (tmp_path / "runs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows[:3]))
    assert [row.get("folder") for row in run_sweep(tiny_plan(), tmp_path, quiet=True)][:3] == [None] * 3
    assert [path.parent.name for path in tmp_path.glob("runs/*/*/summary.json")] == ["seed-1"]
    assert [row["metrics"] for row in SweepFolder(tmp_path).read_rows()] == [row["metrics"] for row in rows]


def test_neither_seeds_added_later_nor_the_number_of_jobs_change_a_result(undisturbed, tmp_path):
    run_sweep(tiny_plan(seeds=1), tmp_path / "grows", quiet=True)
    assert len(list(tmp_path.glob("grows/runs/*/*/checkpoints"))) == 2
    run_sweep(tiny_plan(seeds=2, keep_checkpoints=False), tmp_path / "grows", jobs=1, quiet=True)
    assert results(tmp_path / "grows") == results(undisturbed)
    assert not list(tmp_path.glob("grows/runs/*/*/checkpoints"))
    assert len(list(tmp_path.glob("grows/runs/*/*/final.safetensors"))) == 4


@pytest.mark.parametrize(
    "change", [{"seeds": 1}, {"flags": {"size": 6}}, {"settings": {"total_steps": 4_096}}, {"statistic": "last-100"}]
)
def test_a_folder_of_another_sweep_is_refused_and_not_changed(undisturbed, change):
    before = results(undisturbed), (undisturbed / "plan.json").read_text()
    with pytest.raises(RunFolderError, match=r"holds another sweep \(.*\); choose another with --out DIR"):
        run_sweep(tiny_plan(**change), undisturbed)
    assert (results(undisturbed), (undisturbed / "plan.json").read_text()) == before


def test_a_folder_with_other_files_is_refused(tmp_path):
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(RunFolderError, match=r"is not empty and has no plan\.json"):
        run_sweep(tiny_plan(), tmp_path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["thesis.tex"]


def test_two_drivers_do_not_work_in_one_folder(undisturbed):
    lock = SweepFolder(undisturbed).lock()
    try:
        with pytest.raises(RunFolderError, match="is in use by another process; see: optimist sweep status"):
            run_sweep(tiny_plan(seeds=3), undisturbed)
    finally:
        lock.release()


@pytest.fixture(scope="module")
def calm(tmp_path_factory):
    """Two runs without interruption: the results that interrupted runs must have."""
    folder = tmp_path_factory.mktemp("calm")
    assert main(["sweep", str(long_file(folder)), "-o", str(folder / "out"), "--quiet"]) == 0
    return folder / "out"


def long_file(folder):
    return tiny_file(folder, steps=8_192, seeds=1, more="retries = 1\n")


def start(folder, *flags):
    command = [sys.executable, "-m", "optimist", "sweep", str(long_file(folder)), "-o", str(folder / "out"), *flags]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.slow
def test_a_killed_run_is_resumed_from_its_checkpoint_and_reported(calm, tmp_path):
    out = tmp_path / "out"
    with start(tmp_path, "--jobs", "1") as driver:
        (run, *_) = wait_for(lambda: unfinished(out), driver)
        _kill_holder(run)
        _, shown = driver.communicate(timeout=120)
    assert driver.returncode == 0, shown
    assert "its process was killed by SIGKILL" in shown
    assert shown.count("retrying: ") == 1
    events = [json.loads(line) for line in (out / "events.jsonl").read_text().splitlines()]
    starts = [event["step"] > 0 for event in events if event["event"] == "start"]
    assert sorted(starts) == [False, False, True]
    assert results(out) == results(calm)


def _kill_holder(run):
    """Send SIGKILL to the process that has the run's metrics open."""
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                links = [os.readlink(f"/proc/{entry.name}/fd/{fd}") for fd in os.listdir(f"/proc/{entry.name}/fd")]
            except OSError:
                continue
            if str(run / "metrics.jsonl") in links:
                os.kill(int(entry.name), signal.SIGKILL)
                return
    raise AssertionError("no process writes the run")


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_a_stopped_driver_leaves_no_process_and_the_next_one_resumes(calm, tmp_path, number, code):
    out = tmp_path / "out"
    with start(tmp_path) as driver:
        wait_for(lambda: unfinished(out), driver)
        driver.send_signal(number)
        assert driver.wait(timeout=60) == code
    wait_for(lambda: not any(SweepFolder(path).is_locked for path in out.glob("runs/*/*")))
    assert not SweepFolder(out).is_locked
    assert unfinished(out)
    assert main(["sweep", str(long_file(tmp_path)), "-o", str(out), "--quiet"]) == 0
    assert results(out) == results(calm)


@pytest.mark.parametrize("quiet", [[], ["--quiet"]])
def test_a_failed_run_gives_exit_code_1_and_is_in_the_table(quiet, tmp_path, capfd):
    out = tmp_path / "out"
    file = tiny_file(tmp_path, more="retries = 0\n")
    broken = out / "runs" / "deepsea-opr_size-5" / "seed-1"
    assert main(["sweep", str(file), "-o", str(out), "--quiet", "--dry-run"]) == 0
    broken.mkdir(parents=True)
    (out / "plan.json").write_text('{"format": 1, "statistic": "auto", "runs": []}')
    (broken / "config.toml").write_text("half a")
    assert main(["sweep", str(file), "-o", str(out), *quiet]) == 1
    assert "failed: deepsea-opr_size-5/seed-1: " in capfd.readouterr().err
    assert "config.toml is not valid TOML" in (out / "table.md").read_text()
    assert "1 of 2" in (out / "table.md").read_text()
    (broken / "config.toml").unlink()
    assert main(["sweep", str(file), "-o", str(out), "--quiet"]) == 0
    assert "Missing" not in (out / "table.md").read_text()
