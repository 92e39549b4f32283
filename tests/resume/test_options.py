"""A run with any option of OPR, of any learner, resumes exactly from its checkpoint."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from optimist.config import A2CConfig, CardiffPPOConfig, EnvConfig, NetworkConfig, PPOConfig, RunConfig
from optimist.core.config import OPRConfig
from optimist.tracking.writers import read_metrics
from optimist.training.resume import resume
from optimist.training.trainer import Trainer, train
from tests.metrics import without_time

CONFIG = RunConfig(
    total_steps=2_048,
    env=EnvConfig(id="optimist/DeepSea-v0", num_envs=8, kwargs={"size": 4}),
    network=NetworkConfig(hidden=(16,)),
    algorithm=PPOConfig(rollout_steps=32, minibatch_size=128, epochs=2, learning_rate=1e-2),
    checkpoint_every=512,
    tensorboard=False,
)
OPTIONS: dict[str, dict[str, Any]] = {
    "paper": dataclasses.asdict(OPRConfig.paper("cage2")),
    "cloned": {"reference": "cloned", "shaping_scale": 0.5, "shaping_bound": 1.0},
    "prioritized": {"sampling": "prioritized", "bc_weights": "uniform"},
    "uniform": {"sampling": "uniform", "bc_weights": "uniform"},
    "fifo, small": {"retention": "fifo", "capacity_transitions": 30},
    "ranked, small": {"retention": "ranked", "capacity_episodes": 5},
    "age": {"max_age_updates": 2, "admission": "paper"},
    "phase by updates": {"bc_phase_interval": 3, "bc_phase_unit": "updates"},
    "phase by episodes": {"bc_phase_interval": 100, "bc_phase_unit": "episodes"},
    "phase by steps": {"bc_phase_interval": 700, "bc_phase_unit": "steps"},
    "augmented": {"augment_share": 0.5, "augment_rows": "full", "shaping_scale": 0.5},
    "luck": {"bc_luck": 0.5},
    "clipped": {"max_episode_steps": 3},
}
OTHERS = {
    "A2C": {"algorithm": A2CConfig(rollout_steps=32, learning_rate=1e-2, learning_rate_schedule="linear")},
    "PPO, linear": {
        "algorithm": dataclasses.replace(CONFIG.algorithm, learning_rate_schedule="linear", target_kl=0.05)
    },
    "KeyDoor": {"env": EnvConfig(id="optimist/KeyDoorTreasure-v0", num_envs=8, kwargs={"height": 3})},
    "CartPole, sync": {"env": EnvConfig(id="CartPole-v1", num_envs=8, vectorization="sync")},
    "Pendulum": {"env": EnvConfig(id="Pendulum-v1", num_envs=8)},
    "Cardiff": {
        "env": EnvConfig(
            id="optimist/CAGE2Cardiff-v0",
            num_envs=8,
            kwargs={"red": "mixed", "horizon": 20, "opening": True},
            truncation="ignored",
            forced_actions="sampled",
            group_key="red",
        ),
        "algorithm": CardiffPPOConfig(rollout_steps=32),
    },
    "evaluated": {"evaluate_every": 512, "evaluate_episodes": 3},
    "16 updates: a cloned reference is refreshed after the resume": {
        "opr": OPRConfig(reference="cloned", shaping_scale=0.5, shaping_bound=1.0, bc_batch_size=32),
        "algorithm": dataclasses.replace(CONFIG.algorithm, rollout_steps=16),
    },
}


def assert_resumes_exactly(config: RunConfig, tmp_path, monkeypatch) -> None:
    train(config, tmp_path / "whole", progress=False)
    update = Trainer.one_update
    stops = iter([1, 5])  # updates done; the first of them is before the first checkpoint

    def stop(self: Trainer) -> dict[str, float]:
        if self.update == stop.at:
            stop.at = next(stops, None)
            raise KeyboardInterrupt
        return update(self)

    stop.at = next(stops)
    monkeypatch.setattr(Trainer, "one_update", stop)
    with pytest.raises(KeyboardInterrupt):
        train(config, tmp_path / "stopped", progress=False)
    with pytest.raises(KeyboardInterrupt):
        resume(tmp_path / "stopped", progress=False)
    resume(tmp_path / "stopped", progress=False)
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    assert (stopped / "final.safetensors").read_bytes() == (whole / "final.safetensors").read_bytes()
    lines = [[repr(without_time(line)) for line in read_metrics(run / "metrics.jsonl")] for run in (stopped, whole)]
    assert lines[0] == lines[1]
    for name in ("tensors.safetensors", "arrays.safetensors"):
        newest = f"checkpoints/step-2048/{name}"
        assert (stopped / newest).read_bytes() == (whole / newest).read_bytes()


@pytest.mark.parametrize("name", OPTIONS)
def test_a_run_with_this_option_resumes_exactly(name, tmp_path, monkeypatch):
    options = {"bc_batch_size": 32} | OPTIONS[name]
    assert_resumes_exactly(dataclasses.replace(CONFIG, opr=OPRConfig(**options)), tmp_path, monkeypatch)


@pytest.mark.parametrize("name", OTHERS)
def test_a_run_with_this_learner_or_task_resumes_exactly(name, tmp_path, monkeypatch):
    opr = OPRConfig(bc_batch_size=32, augment_share=0.25, shaping_scale=0.5)
    config = dataclasses.replace(CONFIG, **{"opr": opr} | OTHERS[name])
    assert_resumes_exactly(config, tmp_path, monkeypatch)
