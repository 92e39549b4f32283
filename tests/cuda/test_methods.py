"""On a GPU: self-imitation, ACPER, their combinations with OPR and normalised observations train and resume exactly."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from optimist.config import A2CConfig, ACPERConfig, EnvConfig, NetworkConfig, PPOConfig, RunConfig
from optimist.config.sil import SILConfig
from optimist.core.config import OPRConfig
from optimist.training.trainer import train
from tests.cuda.conftest import needs_cuda
from tests.resume.test_options import CONFIG, assert_resumes_exactly

pytestmark = needs_cuda

SIL = SILConfig(enabled=True, admission="any", start_transitions=1, batch_size=32, updates=2)
OPR = OPRConfig(bc_batch_size=32)
VARIANTS: dict[str, dict[str, Any]] = {
    "A2C+SIL": {"algorithm": A2CConfig(rollout_steps=32, learning_rate=1e-2), "sil": SIL},
    "PPO+OPR+SIL": {"opr": OPR, "sil": SIL},
    "ACPER+OPR": {"algorithm": ACPERConfig(rollout_steps=32, replay_start=300, replay_segments=4), "opr": OPR},
    "normalised, delayed": {
        "env": EnvConfig(id="Pendulum-v1", num_envs=8, reward_delay=7, reward_scale=0.01),
        "network": NetworkConfig(hidden=(16,), normalize_observations=True),
        "opr": OPR,
        "sil": SIL,
    },
}


@pytest.mark.parametrize("name", VARIANTS)
def test_run_resumes_exactly(name, tmp_path, monkeypatch):
    config: RunConfig = dataclasses.replace(CONFIG, device="cuda", deterministic=True, **VARIANTS[name])
    assert_resumes_exactly(config, tmp_path, monkeypatch)


@pytest.mark.parametrize(
    "learner",
    [
        PPOConfig(rollout_steps=24, minibatch_size=32, epochs=2),
        A2CConfig(rollout_steps=24),
        ACPERConfig(rollout_steps=24, replay_start=100),
    ],
    ids=lambda learner: learner.name,
)
def test_atari_run_with_opr_and_self_imitation_finishes(learner, tmp_path):
    config = RunConfig(
        total_steps=960,
        device="cuda",
        env=EnvConfig(
            id="optimist/Atari-v0",
            num_envs=4,
            kwargs={"game": "Breakout", "sticky": 0.0, "max_frames": 80},  # an episode takes 20 steps
            clip_rewards=True,
            frame_stack=4,
        ),
        network=NetworkConfig(kind="nature_cnn", cnn_features=64),
        algorithm=learner,
        opr=OPRConfig(capacity_transitions=200, capacity_episodes=20, bc_batch_size=16),
        sil=dataclasses.replace(SIL, capacity_transitions=300),
        tensorboard=False,
    )
    assert train(config, tmp_path / "run", progress=False)["updates"] == 10
