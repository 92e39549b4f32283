import dataclasses
import importlib.util
import math
import sys
import types

import pytest

from optimist.config import RunConfig
from optimist.errors import MissingExtra
from optimist.tracking import writers
from optimist.tracking.metrics_log import read_metrics
from optimist.tracking.run_dir import RunDir
from optimist.tracking.writers import Writers

PLAIN = RunConfig(tensorboard=False)


@pytest.fixture
def run(tmp_path):
    with RunDir.create(tmp_path / "run", PLAIN) as run:
        yield run


def without(monkeypatch, package):
    known = importlib.util.find_spec
    monkeypatch.setattr(writers.importlib.util, "find_spec", lambda name: None if name == package else known(name))


def test_lines_go_to_the_metrics_file(run):
    with Writers(run, PLAIN) as all_writers:
        all_writers.write(8, {"loss/total": 1.5})
    assert read_metrics(run.path / "metrics.jsonl") == [{"step": 8, "loss/total": 1.5}]
    assert all_writers.notes == []


def test_tensorboard_gets_the_same_numbers_and_forgets_those_beyond_a_resume(run):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    config = dataclasses.replace(PLAIN, tensorboard=True)
    with Writers(run, config) as all_writers:
        for step in (1, 2, 3):
            all_writers.write(step, {"loss/total": float(step), "opr/threshold": math.nan})
    with Writers(run, config, resumed_at=1) as all_writers:
        all_writers.write(2, {"loss/total": 20.0})
        all_writers.write(9, {"loss/total": 90.0, "evaluation/step": 4, "evaluation/mean_return": 7.0})
    events = accumulator.EventAccumulator(str(run.path / "tensorboard"))
    events.Reload()
    assert [(event.step, event.value) for event in events.Scalars("loss/total")] == [(1, 1.0), (2, 20.0), (9, 90.0)]
    assert [(event.step, event.value) for event in events.Scalars("evaluation/mean_return")] == [(4, 7.0)]
    assert "opr/threshold" not in events.Tags()["scalars"]


def test_without_tensorboard_the_run_goes_on_and_a_note_says_so(run, monkeypatch):
    without(monkeypatch, "tensorboard")
    with Writers(run, dataclasses.replace(PLAIN, tensorboard=True)) as all_writers:
        all_writers.write(1, {"a": 1.0})
    assert all_writers.notes == ["TensorBoard: not installed (pip install 'optimist[report]')"]
    assert not (run.path / "tensorboard").exists()


def test_wandb_without_the_extra_is_one_line(run, monkeypatch):
    without(monkeypatch, "wandb")
    with pytest.raises(MissingExtra, match=r"needs wandb: pip install 'optimist\[wandb\]'"):
        Writers(run, dataclasses.replace(PLAIN, wandb=True))


def test_wandb_gets_config_and_numbers_and_the_same_id_after_a_resume(run, monkeypatch):
    calls = []

    class Run:
        def log(self, metrics, step):
            calls.append((step, metrics))

        def finish(self):
            calls.append("finish")

    fake = types.ModuleType("wandb")
    fake.init = lambda **keywords: calls.append(keywords) or Run()
    monkeypatch.setitem(sys.modules, "wandb", fake)
    monkeypatch.setattr(writers.importlib.util, "find_spec", lambda name: object())
    config = dataclasses.replace(PLAIN, wandb=True)
    for _ in range(2):
        with Writers(run, config) as all_writers:
            all_writers.write(3, {"loss/total": 1.0, "opr/threshold": math.nan})
    first, second = calls[0], calls[3]
    assert first["id"] == second["id"]
    assert first["resume"] == "allow"
    assert first["config"]["env"]["id"] == "CartPole-v1"
    assert calls[1:3] == [(3, {"loss/total": 1.0}), "finish"]
