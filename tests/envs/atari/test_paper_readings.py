"""Each preset of the paper's Atari set-up trains a few updates on short games of Pong."""

from __future__ import annotations

import dataclasses

import pytest

from optimist.config.toml import merge
from optimist.presets import get_preset
from optimist.tracking.writers import read_metrics
from optimist.training.trainer import train

SHORT = {
    "total_steps": 160,
    "env": {"num_envs": 2, "kwargs": {"max_frames": 80, "emulator": "ale", "num_workers": 1, "worker_type": "none"}},
    "network": {"cnn_features": 16},
    "algorithm": {"rollout_steps": 20, "epochs": 1},
    "evaluate_every": 0,
    "final_episodes": 0,
    "tensorboard": False,
}


@pytest.mark.parametrize("name", ["paper", "paper-ppo", "paper-episodes", "paper-phases", "paper-rows"])
def test_every_reading_of_the_paper_trains(name, tmp_path):
    config = merge(get_preset(f"atari/{name}")(), SHORT)
    if name == "paper-phases":
        config = merge(config, {"opr": {"bc_phase_interval": 2}})
    if name == "paper-episodes":  # its memory takes 2.8 GB
        config = merge(config, {"opr": {"capacity_transitions": 2_000}})
    if config.opr.enabled:  # without a score all games tie, and the paper's rule admits none
        config = dataclasses.replace(config, opr=dataclasses.replace(config.opr, admission="gated"))
    train(config, tmp_path / "run", progress=False)
    last = list(read_metrics(tmp_path / "run" / "metrics.jsonl"))[-1]
    assert ("opr/memory_episodes" in last) is config.opr.enabled
    if config.opr.enabled:
        assert last["opr/memory_episodes"] > 0
        assert last["opr/memory_transitions"] == (160 if name == "paper-episodes" else 100)
        assert (last["loss/anchor"] > 0) is (name != "paper-phases")
        assert last["loss/bc"] > 0
