"""The driver's decisions, with an executor that runs nothing."""

import json

from optimist.sweep.driver import Driver
from optimist.sweep.folder import SweepFolder
from optimist.sweep.worker import Outcome
from tests.sweep.tiny import tiny_plan


class FakeExecutor:
    """Ends each attempt as the script says: None finishes it, a number fails it after that checkpoint."""

    def __init__(self, folder, script, permanent=False):
        self.folder, self.script, self.permanent, self.running, self.started = folder, script, permanent, [], []

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
        return Outcome(name, f"failed at {step}", self.permanent)

    def close(self):
        self.running = []


RUNS = tiny_plan().runs
NAME = RUNS[0].name


def work(tmp_path, script, retries=2, permanent=False):
    folder = SweepFolder(tmp_path)
    driver = Driver(folder, FakeExecutor(folder, script, permanent), retries)
    ended = [driver.submit(run) for run in RUNS]
    ended = [report for report in ended if report]
    while driver.waiting or driver.active:
        ended += driver.step(0.0)
    return driver, ended


def test_all_runs_finish_and_a_second_driver_repeats_none(tmp_path):
    driver, _ = work(tmp_path, {})
    assert len(driver.finished) == len(driver.executor.started) == len(RUNS)
    again, ended = work(tmp_path, {})
    assert again.executor.started == []
    assert all(report.found for report in ended)


def test_a_run_that_fails_without_progress_is_retried_and_then_reported(tmp_path):
    driver, ended = work(tmp_path, {NAME: [0, 0, 0]})
    assert driver.executor.started.count(NAME) == 3
    assert driver.failed == {NAME: "failed at 0"}
    assert [report.retried for report in ended if report.run == NAME] == [True, True, False]


def test_attempts_that_reach_a_new_checkpoint_do_not_count(tmp_path):
    driver, _ = work(tmp_path, {NAME: [100, 200, 300, 400, 500]}, retries=1)
    assert driver.failed == {}
    assert driver.executor.started.count(NAME) == 6


def test_a_run_that_always_fails_at_the_same_step_is_given_up(tmp_path):
    driver, _ = work(tmp_path, {NAME: [100] * 50}, retries=2)
    assert driver.executor.started.count(NAME) == 4
    assert NAME in driver.failed


def test_permanent_errors_are_not_retried(tmp_path):
    driver, _ = work(tmp_path, {NAME: [0, 0]}, permanent=True)
    assert driver.executor.started.count(NAME) == 1
    assert driver.failed == {NAME: "failed at 0"}


def test_the_next_driver_retries_a_failed_run(tmp_path):
    work(tmp_path, {NAME: [0, 0, 0]})
    driver, _ = work(tmp_path, {})
    assert driver.executor.started == [NAME]
    assert driver.failed == {}


def test_a_damaged_summary_is_a_failure_and_is_not_overwritten(tmp_path):
    path = tmp_path / "runs" / NAME
    path.mkdir(parents=True)
    (path / "summary.json").write_text('{"steps": 20')
    driver, _ = work(tmp_path, {})
    assert "summary.json is damaged (" in driver.failed[NAME]
    assert "remove it and run the sweep again" in driver.failed[NAME]
    assert NAME not in driver.executor.started


def test_an_attempt_that_leaves_no_summary_has_not_finished(tmp_path, monkeypatch):
    monkeypatch.setattr(FakeExecutor, "_end", lambda self, name: Outcome(name))
    driver, _ = work(tmp_path, {}, retries=0)
    assert len(driver.failed) == len(RUNS)
    assert "has no summary.json" in driver.failed[NAME]


def test_a_run_that_waits_for_a_gpu_does_not_delay_the_others(tmp_path):
    class NoGPU(FakeExecutor):
        def start(self, run):
            return not run.gpus and super().start(run)

    folder = SweepFolder(tmp_path)
    driver = Driver(folder, NoGPU(folder, {}), retries=0)
    for run in (*tiny_plan(settings={"device": "cuda"}, flags={"size": 6}).runs, *RUNS):
        driver.submit(run)
    for _ in range(5):
        driver.step(0.0)
    assert set(driver.finished) == {run.name for run in RUNS}
    assert len(driver.waiting) == 4


def test_events_are_recorded(tmp_path):
    work(tmp_path, {NAME: [100]})
    lines = [json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()]
    own = [(line["event"], line.get("step"), line.get("error")) for line in lines if line["run"] == NAME]
    assert own == [("start", 0, None), ("retry", 100, "failed at 100"), ("start", 100, None), ("finished", None, None)]


class Silent:
    """A display that keeps the messages."""

    def __init__(self):
        self.messages = []

    def report(self, report):
        pass

    def refresh(self, active):
        pass

    def message(self, text):
        self.messages.append(text)


def work_within(tmp_path, seconds, known):
    """Driver and display after `run_all`; the runs of `known` are finished and took so many seconds each."""
    tmp_path.mkdir(exist_ok=True)
    folder, display = SweepFolder(tmp_path), Silent()
    for name, taken in known.items():
        folder.run_path(name).mkdir(parents=True)
        (folder.run_path(name) / "summary.json").write_text(json.dumps({"time/seconds": taken}))
    driver = Driver(folder, FakeExecutor(folder, {}), 0, seconds)
    driver.run_all(tiny_plan(), display)
    return driver, display


def test_no_run_is_started_that_would_end_after_the_limit(tmp_path):
    slow = next(run for run in RUNS if run.method == "deepsea/opr")
    driver, display = work_within(tmp_path, 100.0, {slow.name: 200.0})
    assert {run.method for run in driver.waiting} == {"deepsea/opr"}
    assert {RUN.method for RUN in RUNS if RUN.name in driver.executor.started} == {"deepsea/ppo"}
    assert display.messages[-1] == "time limit: 1 of 4 runs left; run the same command again to continue"


def test_runs_that_are_known_to_end_in_time_are_all_started(tmp_path):
    driver, _ = work_within(tmp_path, 100.0, {NAME: 50.0})
    assert not driver.waiting
    assert len(driver.finished) == len(RUNS)


def test_a_limit_that_has_passed_starts_nothing_and_no_limit_waits_for_all(tmp_path):
    assert work_within(tmp_path / "passed", -1.0, {})[0].executor.started == []
    assert len(work_within(tmp_path / "none", None, {})[0].finished) == len(RUNS)
