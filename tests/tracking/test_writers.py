"""Metrics of a run: metrics.jsonl, TensorBoard and Weights & Biases."""

import dataclasses
import errno
import importlib.util
import json
import math
import sys
import types

import numpy as np
import pytest
import torch

from optimist.config import PPOConfig, RunConfig
from optimist.errors import MissingExtra, RunFolderError
from optimist.tracking import writers
from optimist.tracking.run_dir import RunDir
from optimist.tracking.writers import MetricsLog, Writers, read_metrics

PLAIN = RunConfig(tensorboard=False)


@pytest.fixture
def log(tmp_path):
    log = MetricsLog(tmp_path / "metrics.jsonl")
    yield log
    log.close()


def test_each_line_is_json_and_written_at_once(log):
    log.append(64, {"loss/total": 0.5, "rollout/episodes": 3})
    assert log.path.read_text() == '{"step": 64, "loss/total": 0.5, "rollout/episodes": 3}\n'


def test_tensors_and_numpy_scalars_are_numbers(log):
    log.append(np.int64(1).item(), {"a": torch.tensor(0.25), "b": np.float32(0.5), "c": np.int64(7)})
    assert json.loads(log.path.read_text()) == {"step": 1, "a": 0.25, "b": 0.5, "c": 7}


def test_floats_are_read_exactly_and_undefined_ones_as_nan(log):
    log.append(1, {"a": 0.1 + 0.2, "b": math.nan, "c": -math.inf})
    (line,) = read_metrics(log.path)
    assert line["a"] == 0.1 + 0.2
    assert math.isnan(line["b"])
    assert math.isnan(line["c"])
    assert "null" in log.path.read_text()


def test_a_truncated_log_continues_after_the_recorded_offset(log):
    log.append(1, {"a": 1})
    offset = log.sync()
    log.append(2, {"a": 2})
    log.truncate(offset)
    log.append(3, {"a": 3})
    assert [line["step"] for line in read_metrics(log.path)] == [1, 3]
    assert log.offset == log.path.stat().st_size


def test_an_incomplete_last_line_is_not_read_and_is_removed_when_opened(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(b'{"step": 1}\n{"step": 2, "a')
    assert read_metrics(path) == [{"step": 1}]
    log = MetricsLog(path)
    log.append(2, {})
    log.close()
    assert path.read_bytes() == b'{"step": 1}\n{"step": 2}\n'


@pytest.mark.parametrize("offset", [99, 11, 13])
def test_a_log_that_does_not_match_the_checkpoint_is_refused_and_unchanged(log, offset):
    log.append(1, {})
    log.append(2, {})
    before = log.path.read_bytes()
    with pytest.raises(RunFolderError, match=f"was changed: it has 24 bytes, and the checkpoint .* after {offset};"):
        log.truncate(offset)
    assert log.path.read_bytes() == before


def test_a_full_disk_is_one_error_line(log, monkeypatch):
    class Full:
        def write(self, _):
            raise OSError(errno.ENOSPC, "No space left on device")

        def close(self):
            pass

    log.close()
    log._file = Full()
    with pytest.raises(RunFolderError, match=r"metrics.jsonl: no space left on the disk"):
        log.append(1, {})


@pytest.fixture
def run(tmp_path):
    with RunDir.create(tmp_path / "run", PLAIN) as run:
        yield run


def without(monkeypatch, package):
    known = importlib.util.find_spec
    monkeypatch.setattr(writers.importlib.util, "find_spec", lambda name: None if name == package else known(name))


def test_lines_are_written_to_the_metrics_file(run):
    with Writers(run.metrics, PLAIN) as all_writers:
        all_writers.write(8, {"loss/total": 1.5})
    assert read_metrics(run.path / "metrics.jsonl") == [{"step": 8, "loss/total": 1.5}]
    assert all_writers.notes == []


def test_tensorboard_has_the_same_numbers_and_drops_those_after_a_resumed_step(run):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    config = dataclasses.replace(PLAIN, tensorboard=True)
    with Writers(run.metrics, config) as all_writers:
        for step in (1, 2, 3):
            all_writers.write(step, {"loss/total": float(step), "opr/threshold": math.nan})
    with Writers(run.metrics, config, resumed_at=1) as all_writers:
        all_writers.write(2, {"loss/total": 20.0})
        all_writers.write(9, {"loss/total": 90.0, "evaluation/step": 4, "evaluation/mean_return": 7.0})
    events = accumulator.EventAccumulator(str(run.path))
    events.Reload()
    assert [(event.step, event.value) for event in events.Scalars("loss/total")] == [(1, 1.0), (2, 20.0), (9, 90.0)]
    assert [(event.step, event.value) for event in events.Scalars("eval/mean_reward")] == [(4, 7.0)]
    assert sorted(events.Tags()["scalars"]) == ["eval/mean_reward", "loss/total"]  # no nan, and no card of steps


def test_tensorboard_has_the_names_and_units_of_stable_baselines3(run):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    numbers = {"rollout/raw_return": 3.0, "rollout/length": 7.0, "time/steps_per_second": 90.0, "policy/kl": 0.5,
               "policy/entropy": 0.25, "loss/value": 2.0, "loss/policy": 1.5, "opr/threshold": -1.0}  # fmt: skip
    config = RunConfig(algorithm=PPOConfig(value_coef=0.5))
    with Writers(run.metrics, config) as all_writers:
        all_writers.write(1, numbers)
    events = accumulator.EventAccumulator(str(run.path))
    events.Reload()
    assert {tag: events.Scalars(tag)[0].value for tag in events.Tags()["scalars"]} == {
        "rollout/ep_rew_mean": 3.0,
        "rollout/ep_len_mean": 7.0,
        "time/fps": 90.0,
        "train/approx_kl": 0.5,
        "train/entropy_loss": -0.25,
        "train/value_loss": 4.0,
        "train/policy_gradient_loss": 1.5,
        "opr/threshold": -1.0,
    }


def test_tensorboard_shows_the_settings_as_hyper_parameters(run):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    plugin = pytest.importorskip("tensorboard.plugins.hparams.plugin_data_pb2")
    with Writers(run.metrics, dataclasses.replace(PLAIN, tensorboard=True, seed=7)):
        pass
    events = accumulator.EventAccumulator(str(run.path))
    events.Reload()
    content = events.PluginTagToContent("hparams")
    start = plugin.HParamsPluginData.FromString(content["_hparams_/session_start_info"]).session_start_info
    assert start.hparams["seed"].number_value == 7
    assert start.hparams["env.id"].string_value == "CartPole-v1"
    assert start.hparams["algorithm.learning_rate"].number_value == PLAIN.algorithm.learning_rate
    experiment = plugin.HParamsPluginData.FromString(content["_hparams_/experiment"]).experiment
    assert [info.name.tag for info in experiment.metric_infos] == ["rollout/ep_rew_mean"]


def test_without_tensorboard_the_run_continues_with_a_note(run, monkeypatch):
    without(monkeypatch, "tensorboard")
    with Writers(run.metrics, dataclasses.replace(PLAIN, tensorboard=True)) as all_writers:
        all_writers.write(1, {"a": 1.0})
    assert all_writers.notes == ["TensorBoard: not installed (pip install '.[report]' in the clone of optimist)"]
    assert not list(run.path.glob("events*"))


def test_wandb_without_the_extra_is_one_error_line(run, monkeypatch):
    without(monkeypatch, "wandb")
    with pytest.raises(MissingExtra, match=r"needs wandb: pip install '.\[wandb\]'"):
        Writers(run.metrics, dataclasses.replace(PLAIN, wandb=True))


def test_wandb_has_config_and_numbers_and_the_same_id_after_a_resume(run, monkeypatch):
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
        with Writers(run.metrics, config) as all_writers:
            all_writers.write(3, {"loss/total": 1.0, "opr/threshold": math.nan})
    first, second = calls[0], calls[3]
    assert first["id"] == second["id"]
    assert first["resume"] == "allow"
    assert first["config"]["env"]["id"] == "CartPole-v1"
    assert calls[1:3] == [(3, {"loss/total": 1.0}), "finish"]
