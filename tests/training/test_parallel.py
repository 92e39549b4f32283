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
