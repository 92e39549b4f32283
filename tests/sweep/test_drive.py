"""The driver's decisions, with an executor that only pretends."""

import json

import pytest

from optimist.sweep.drive import Driver
from optimist.sweep.folder import WorkFolder
from optimist.sweep.work import Outcome
from tests.sweep.tiny import tiny_plan


class Pretend:
    """Ends each attempt as the script says: None finishes it, a number fails it after that checkpoint."""

    def __init__(self, folder, script, hopeless=False):
        self.folder, self.script, self.hopeless, self.running, self.started = folder, script, hopeless, [], []

    def start(self, run):
        if len(self.running) == 2:
            return False
        self.running.append(run.name)
        self.started.append(run.name)
        return True

    def wait(self, seconds):
        ended, self.running = self.running, []
        return [self._end(name) for name in ended]

    def _end(self, name):
        step = self.script.get(name, [None]).pop(0) if self.script.get(name) else None
        path = self.folder.run_path(name)
        path.mkdir(parents=True, exist_ok=True)
        if step is None:
            (path / "summary.json").write_text("{}")
            return Outcome(name)
        (path / "checkpoints" / f"step-{step}").mkdir(parents=True, exist_ok=True)
        return Outcome(name, f"fell at {step}", self.hopeless)

    def cancel(self, name):
        self.script[name] = [0]

    def close(self):
        self.running = []


RUNS = tiny_plan().runs
NAME = RUNS[0].name


def work(tmp_path, script, retries=2, hopeless=False):
    folder = WorkFolder(tmp_path)
    driver = Driver(folder, Pretend(folder, script, hopeless), retries)
    ended = [driver.submit(run) for run in RUNS]
    ended = [one for one in ended if one]
    while driver.busy:
        ended += driver.step(0.0)
    return driver, ended


def test_all_runs_finish_and_a_second_driver_does_none_of_them_again(tmp_path):
    driver, _ = work(tmp_path, {})
    assert len(driver.finished) == len(driver.executor.started) == len(RUNS)
    again, ended = work(tmp_path, {})
    assert again.executor.started == []
    assert all(one.skipped for one in ended)


def test_a_run_that_fails_without_progress_is_tried_as_often_as_said_and_then_reported(tmp_path):
    driver, ended = work(tmp_path, {NAME: [0, 0, 0]})
    assert driver.executor.started.count(NAME) == 3
    assert driver.failed == {NAME: "fell at 0"}
    assert [one.again for one in ended if one.run.name == NAME] == [True, True, False]


def test_attempts_that_reach_a_new_checkpoint_do_not_count(tmp_path):
    driver, _ = work(tmp_path, {NAME: [100, 200, 300, 400, 500]}, retries=1)
    assert driver.failed == {}
    assert driver.executor.started.count(NAME) == 6


def test_a_run_that_falls_at_the_same_step_forever_ends(tmp_path):
    driver, _ = work(tmp_path, {NAME: [100] * 50}, retries=2)
    assert driver.executor.started.count(NAME) == 4
    assert NAME in driver.failed


def test_hopeless_errors_are_not_tried_again(tmp_path):
    driver, _ = work(tmp_path, {NAME: [0, 0]}, hopeless=True)
    assert driver.executor.started.count(NAME) == 1
    assert driver.failed == {NAME: "fell at 0"}


def test_a_failed_run_is_tried_again_by_the_next_driver(tmp_path):
    work(tmp_path, {NAME: [0, 0, 0]})
    driver, _ = work(tmp_path, {})
    assert driver.executor.started == [NAME]
    assert driver.failed == {}


def test_a_damaged_summary_is_a_failure_and_no_run_is_started_over_it(tmp_path):
    path = tmp_path / "runs" / NAME
    path.mkdir(parents=True)
    (path / "summary.json").write_text('{"steps": 20')
    driver, _ = work(tmp_path, {})
    assert "summary.json is damaged; remove it and run the sweep again" in driver.failed[NAME]
    assert NAME not in driver.executor.started


def test_an_attempt_that_leaves_no_summary_has_not_finished(tmp_path, monkeypatch):
    monkeypatch.setattr(Pretend, "_end", lambda self, name: Outcome(name))
    driver, _ = work(tmp_path, {}, retries=0)
    assert len(driver.failed) == len(RUNS)
    assert "has no summary.json" in driver.failed[NAME]


@pytest.mark.parametrize("begun", [False, True])
def test_a_cancelled_run_is_not_tried_again(tmp_path, begun):
    folder = WorkFolder(tmp_path)
    driver = Driver(folder, Pretend(folder, {}), 2)
    driver.submit(RUNS[0])
    if begun:
        driver.executor.start(driver.waiting[0])
        driver.active[NAME] = driver.waiting.popleft()
    driver.cancel(NAME)
    while driver.busy:
        driver.step(0.0)
    assert driver.failed == {NAME: "cancelled"}


def test_a_run_that_waits_for_a_gpu_does_not_hold_up_the_others(tmp_path):
    class NoGPU(Pretend):
        def start(self, run):
            return not run.gpus and super().start(run)

    folder = WorkFolder(tmp_path)
    driver = Driver(folder, NoGPU(folder, {}), retries=0)
    for run in (*tiny_plan(settings={"device": "cuda"}, flags={"size": 6}).runs, *RUNS):
        driver.submit(run)
    for _ in range(5):
        driver.step(0.0)
    assert set(driver.finished) == {run.name for run in RUNS}
    assert len(driver.waiting) == 4


def test_what_happened_is_written_down(tmp_path):
    work(tmp_path, {NAME: [100]})
    lines = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    own = [(line["event"], line.get("step"), line.get("error")) for line in lines if line["run"] == NAME]
    assert own == [("start", 0, None), ("retry", 100, "fell at 100"), ("start", 100, None), ("finished", None, None)]
