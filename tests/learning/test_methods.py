"""Self-imitation, ACPER and their combinations with OPR solve small tasks in seconds, over several seeds."""

from __future__ import annotations

import dataclasses

import pytest

from optimist.presets import get_preset
from optimist.tracking.writers import read_metrics
from optimist.training.evaluate import evaluate
from optimist.training.trainer import train

pytestmark = pytest.mark.slow


def run(config, folder, seed: int):
    config = dataclasses.replace(config, seed=seed, tensorboard=False, checkpoint_every=10**9)
    return train(config, folder / "run", progress=False)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("method", ["ppo-sil", "ppo-opr-sil", "a2c-sil", "a2c-sil-opr", "acper", "acper-opr"])
def test_deepsea_of_size_4_is_solved(method, seed, tmp_path):
    config = dataclasses.replace(get_preset(f"deepsea/{method}")(size=4), total_steps=8_000)
    summary = run(config, tmp_path, seed)
    assert summary["solved"], summary
    assert evaluate(tmp_path / "run", episodes=4, greedy=True)["mean_return"] == pytest.approx(0.99)


@pytest.mark.parametrize("method", ["sil", "acper"])
def test_cage2_returns_rise_although_no_reward_is_positive(method, tmp_path):
    config = get_preset(f"cage2/{method}")()
    config = dataclasses.replace(config, env=dataclasses.replace(config.env, num_envs=32), total_steps=25_000)
    run(config, tmp_path, 0)
    metrics = read_metrics(tmp_path / "run" / "metrics.jsonl")
    returns = [line["rollout/raw_return"] for line in metrics if line["rollout/episodes"] >= 96]
    assert returns[-1] > 0.8 * returns[0], returns
    if method == "sil":
        assert metrics[-1]["sil/transitions"] > 10_000
