"""On a GPU: a rollout collected beside an update, on a stream of its own, is the one collected in turn."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from optimist.algorithms.value_based_config import DQNConfig, RainbowConfig
from optimist.core.config import OPRConfig
from optimist.training.loop import train
from tests.cuda.test_graphs import ATARI, lines

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


def assert_close(one, other, updates=None):
    assert len(one) == len(other)
    assert [set(x) for x in one] == [set(y) for y in other]
    for x, y in zip(one[:updates], other[:updates], strict=True):
        for name, value in x.items():
            assert y[name] == pytest.approx(value, rel=2e-2, abs=2e-3, nan_ok=True), (name, x["step"])


def test_where_nothing_is_learnt_the_lag_makes_no_difference(tmp_path):
    algorithm = replace(ATARI.algorithm, learning_rate=1e-30)
    for lag in (0, 1):
        train(replace(ATARI, policy_lag=lag, algorithm=algorithm), tmp_path / str(lag), progress=False)
    assert_close(lines(tmp_path / "0"), lines(tmp_path / "1"))


def test_graphed_and_eager_lagged_runs_agree(tmp_path):
    # Graphs of new shapes are recorded in the middle of the run, when the memory fills, while games are being played.
    config = replace(ATARI, policy_lag=1, total_steps=960)
    for graphs in ("auto", "off"):
        train(replace(config, graphs=graphs), tmp_path / graphs, progress=False)
    found = lines(tmp_path / "auto")
    assert_close(found, lines(tmp_path / "off"), updates=3)  # later an action may have been drawn differently
    assert found[-1]["opr/memory_episodes"] > 0


@pytest.mark.parametrize("learner", [DQNConfig, RainbowConfig], ids=["dqn", "rainbow"])
@pytest.mark.parametrize("lag", [0, 1])
def test_value_based_learners_with_one_step_rollouts(tmp_path, learner, lag):
    # Fewer steps than a recording is tried out for.
    algorithm = learner(rollout_steps=1, gradient_steps=2, replay_capacity=512, learning_starts=64)
    config = replace(ATARI, algorithm=algorithm, opr=OPRConfig(enabled=False), policy_lag=lag, total_steps=960)
    train(replace(config, log_every=8), tmp_path / "run", progress=False)
    found = lines(tmp_path / "run")
    assert found[-1]["step"] == 960
    assert found[-1]["loss/td"] > 0.0
