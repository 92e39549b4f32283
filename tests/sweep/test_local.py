"""Real sweeps in real processes: done, killed, gone on with, refused."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from optimist.cli.main import main
from optimist.errors import RunFolderError
from optimist.sweep.folder import WorkFolder
from optimist.sweep.run import run_sweep
from tests.sweep.tiny import results, tiny_file, tiny_plan


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """A sweep that nothing happened to."""
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


def half_done(folder):
    """Runs with a checkpoint and without an end."""
    return [
        path.parents[1]
        for path in folder.glob("runs/*/*/checkpoints/step-*")
        if not (path.parents[1] / "summary.json").exists()
    ]


def test_a_second_time_nothing_is_done_and_the_table_is_the_same(undisturbed, capfd):
    before = results(undisturbed), (undisturbed / "events.jsonl").read_text()
    run_sweep(tiny_plan(), undisturbed)
    assert (results(undisturbed), (undisturbed / "events.jsonl").read_text()) == before
    assert "4 of 4 runs had finished before" in capfd.readouterr().err


def test_neither_adding_seeds_later_nor_the_number_of_jobs_changes_a_result(undisturbed, tmp_path):
    run_sweep(tiny_plan(seeds=1), tmp_path / "grows", quiet=True)
    assert len(list(tmp_path.glob("grows/runs/*/*/checkpoints"))) == 2
    run_sweep(tiny_plan(seeds=2, keep_checkpoints=False), tmp_path / "grows", jobs=1, quiet=True)
    assert results(tmp_path / "grows") == results(undisturbed)
    assert not list(tmp_path.glob("grows/runs/*/*/checkpoints"))
    assert len(list(tmp_path.glob("grows/runs/*/*/final.safetensors"))) == 4


@pytest.mark.parametrize(
    "change", [{"seeds": 1}, {"flags": {"size": 6}}, {"settings": {"total_steps": 4_096}}, {"statistic": "last-100"}]
)
def test_another_sweep_in_the_folder_is_refused_and_changes_nothing(undisturbed, change):
    before = results(undisturbed), (undisturbed / "plan.json").read_text()
    with pytest.raises(RunFolderError, match=r"holds another sweep \(.*\); choose another folder with -o"):
        run_sweep(tiny_plan(**change), undisturbed)
    assert (results(undisturbed), (undisturbed / "plan.json").read_text()) == before


def test_a_folder_with_other_things_in_it_is_refused(tmp_path):
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(RunFolderError, match=r"is not empty and has no plan\.json"):
        run_sweep(tiny_plan(), tmp_path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["thesis.tex"]


def test_two_drivers_do_not_work_in_one_folder(undisturbed):
    lock = WorkFolder(undisturbed).claim("plan.json")
    try:
        with pytest.raises(RunFolderError, match="is being worked on by another process"):
            run_sweep(tiny_plan(), undisturbed)
    finally:
        lock.release()


@pytest.fixture(scope="module")
def calm(tmp_path_factory):
    """Two runs, long enough to be interrupted, that were not: what interrupted ones must end with."""
    folder = tmp_path_factory.mktemp("calm")
    assert main(["sweep", str(long_file(folder)), "-o", str(folder / "out"), "--quiet"]) == 0
    return folder / "out"


def long_file(folder):
    return tiny_file(folder, steps=8_192, seeds=1, more="retries = 1\n")


def start(folder, *flags):
    command = [sys.executable, "-m", "optimist", "sweep", str(long_file(folder)), "-o", str(folder / "out"), *flags]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.slow
def test_a_killed_run_is_tried_again_from_its_checkpoint_and_told_of(calm, tmp_path):
    out = tmp_path / "out"
    with start(tmp_path, "--jobs", "1") as driver:
        (run, *_) = wait_for(lambda: half_done(out), driver)
        _kill_holder(run)
        _, told = driver.communicate(timeout=120)
    assert driver.returncode == 0, told
    assert "its process was killed by SIGKILL" in told
    assert told.count("and goes on") == 1
    events = [json.loads(line) for line in (out / "events.jsonl").read_text().splitlines()]
    starts = [event["step"] > 0 for event in events if event["event"] == "start"]
    assert sorted(starts) == [False, False, True]
    assert results(out) == results(calm)


def _kill_holder(run):
    """SIGKILL to the process that writes the run: the one with its metrics open."""
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                links = [os.readlink(f"/proc/{entry.name}/fd/{fd}") for fd in os.listdir(f"/proc/{entry.name}/fd")]
            except OSError:
                continue
            if str(run / "metrics.jsonl") in links:
                os.kill(int(entry.name), signal.SIGKILL)
                return
    raise AssertionError("nobody writes the run")


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_a_stopped_driver_leaves_no_process_behind_and_the_next_goes_on(calm, tmp_path, number, code):
    out = tmp_path / "out"
    with start(tmp_path) as driver:
        wait_for(lambda: half_done(out), driver)
        driver.send_signal(number)
        assert driver.wait(timeout=60) == code
    wait_for(lambda: not any(WorkFolder(path).driven for path in out.glob("runs/*/*")))  # nobody holds a run's lock
    assert not WorkFolder(out).driven
    assert half_done(out)
    assert main(["sweep", str(long_file(tmp_path)), "-o", str(out), "--quiet"]) == 0
    assert results(out) == results(calm)


@pytest.mark.parametrize("quiet", [[], ["--quiet"]])
def test_a_run_that_fails_for_good_gives_exit_code_1_and_stands_in_the_table(quiet, tmp_path, capfd):
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
