"""A rollout collected during an update, on a GPU on a stream of its own, equals one collected between updates."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from optimist.config.value_based import DQNConfig, RainbowConfig
from optimist.core.config import OPRConfig
from optimist.rollout.lag import LaggedCollector
from optimist.training.trainer import train
from tests.cuda.test_graphs import ATARI, assert_close, config_for, metrics_of, metrics_of_both


def test_lag_makes_no_difference_where_nothing_is_learnt(device, tmp_path):
    config = config_for(device, 20, algorithm=replace(ATARI.algorithm, learning_rate=1e-30))
    for lag in (0, 1):
        train(replace(config, policy_lag=lag), tmp_path / str(lag), progress=False)
    assert_close(metrics_of(tmp_path / "1"), metrics_of(tmp_path / "0"), rel=2e-2, abs=2e-3)


def test_captured_and_eager_lagged_runs_agree(device, tmp_path):
    # New minibatch shapes are captured during the run, when the memory fills, while the next rollout is collected.
    captured, eager = metrics_of_both(config_for(device, 10, policy_lag=1), tmp_path)
    assert_close(captured[:3], eager[:3], rel=2e-2, abs=2e-3)  # later an action may have been drawn differently
    assert captured[-1]["opr/memory_episodes"] > 0


@pytest.mark.parametrize("learner", [DQNConfig, RainbowConfig], ids=["dqn", "rainbow"])
@pytest.mark.parametrize("lag", [0, 1])
def test_value_based_learners_train_with_rollouts_of_one_step(device, tmp_path, learner, lag):
    # Fewer steps than the warm-up of a capture has.
    algorithm = learner(rollout_steps=1, gradient_steps=2, replay_capacity=512, learning_starts=64)
    config = config_for(device, 10, algorithm=algorithm, opr=OPRConfig(enabled=False), policy_lag=lag, log_every=8)
    if device == "cpu":
        config = replace(config, total_steps=96)
    train(config, tmp_path / "run", progress=False)
    last = metrics_of(tmp_path / "run")[-1]
    assert last["step"] == config.total_steps
    assert last["loss/td"] > 0.0


def test_collector_does_not_use_the_stream_that_captures(monkeypatch):
    """torch hands out 32 streams in turn: after some learners a new stream is the one that captures."""
    streams = [object() for _ in range(4)]
    handed_out = iter(streams)
    monkeypatch.setattr(torch.cuda, "Stream", lambda device: next(handed_out))
    monkeypatch.setattr(torch.cuda.graph, "default_capture_stream", streams[0])
    collector = SimpleNamespace(device=torch.device("cuda"))
    for expected in (streams[1], streams[2]):
        assert LaggedCollector(lambda policy: collector, torch.nn.Linear(1, 1)).stream is expected
