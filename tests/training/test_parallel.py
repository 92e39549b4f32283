"""Runs side by side are the runs they would be alone, and an error in one is not hidden."""

from dataclasses import replace

import pytest

from optimist.errors import OptimistError
from optimist.presets import get_preset
from optimist.training.loop import train
from optimist.training.parallel import Job, run_all

CONFIG = replace(get_preset("deepsea/opr")(size=4), total_steps=2048, tensorboard=False)


def test_runs_side_by_side_equal_the_same_runs_alone(tmp_path):
    jobs = [Job("opr", replace(CONFIG, seed=seed), tmp_path / f"run-{seed}") for seed in (1, 2)]
    ticks: list[int] = []
    summaries = run_all(jobs, 2, lambda: ticks.append(1), every=0.1)
    assert ticks
    alone = train(replace(CONFIG, seed=2), tmp_path / "alone", progress=False)
    assert summaries[1]["last_100_return"] == alone["last_100_return"]
    assert (tmp_path / "run-2" / "final.safetensors").read_bytes() == (
        tmp_path / "alone" / "final.safetensors"
    ).read_bytes()
    latest = jobs[0].latest()
    assert latest is not None
    assert latest["step"] == 2048


def test_a_job_that_has_not_begun_has_no_latest_line(tmp_path):
    assert Job("opr", CONFIG, tmp_path / "nowhere").latest() is None


def test_an_error_in_one_run_is_raised(tmp_path):
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "something").write_text("mine")
    with pytest.raises(OptimistError, match="not empty"):
        run_all([Job("opr", CONFIG, tmp_path / "taken")], 1)


def test_after_an_error_nothing_more_is_begun_and_what_runs_is_stopped(tmp_path):
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "something").write_text("mine")
    endless = replace(CONFIG, total_steps=10**9)
    jobs = [Job("opr", endless, tmp_path / "long"), Job("opr", CONFIG, tmp_path / "taken")]
    jobs += [Job("opr", endless, tmp_path / f"queued-{number}") for number in range(4)]
    with pytest.raises(OptimistError, match="not empty"):  # and not in a thousand years
        run_all(jobs, 2)
    assert sum((tmp_path / f"queued-{number}").exists() for number in range(4)) <= 1  # one may have been handed over


def test_a_signal_stops_all_and_leaves_runs_that_go_on(tmp_path):
    jobs = [Job("opr", replace(CONFIG, total_steps=10**9), tmp_path / f"run-{number}") for number in range(3)]

    def stop_once_it_runs():
        if jobs[0].latest() is not None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_all(jobs, 1, stop_once_it_runs, every=0.1)
    assert list((tmp_path / "run-0" / "checkpoints").glob("step-*"))  # it stopped between two updates, and saved
    assert not (tmp_path / "run-2").exists()
