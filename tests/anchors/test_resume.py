"""Runs with SIL, ACPER, normalised observations or delayed rewards resume exactly from a checkpoint."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from optimist.config import A2CConfig, ACPERConfig, EnvConfig, NetworkConfig, RunConfig
from optimist.config.sil import SILConfig
from optimist.core.config import OPRConfig
from tests.resume.test_options import CONFIG, assert_resumes_exactly

SIL = SILConfig(enabled=True, admission="any", start_transitions=1, batch_size=32, updates=2)
ACPER = ACPERConfig(rollout_steps=32, replay_start=300, replay_segments=4, learning_rate=1e-2)
OPR = OPRConfig(bc_batch_size=32)
VARIANTS: dict[str, dict[str, Any]] = {
    "A2C+SIL": {"algorithm": A2CConfig(rollout_steps=32, learning_rate=1e-2), "sil": SIL},
    "PPO+SIL, full ring": {"sil": dataclasses.replace(SIL, capacity_transitions=70)},
    "PPO+SIL, the authors' rule": {"sil": SILConfig(enabled=True, start_transitions=1, batch_size=32)},
    "PPO+OPR+SIL": {"sil": SIL, "opr": OPR},
    "ACPER": {"algorithm": ACPER},
    "ACPER+OPR+SIL, full replay": {
        "algorithm": dataclasses.replace(ACPER, replay_capacity=600),
        "opr": OPR,
        "sil": SIL,
    },
    "normalised, delayed, environments without a saved state": {
        "env": EnvConfig(id="Pendulum-v1", num_envs=8, reward_delay=7, reward_scale=0.01),
        "network": NetworkConfig(hidden=(16,), normalize_observations=True),
        "opr": dataclasses.replace(OPR, reference="cloned", shaping_scale=0.5, shaping_bound=1.0),
        "sil": SIL,
    },
    "delayed, environments with a saved state": {
        "env": EnvConfig(
            id="optimist/KeyDoorTreasure-v0", num_envs=8, kwargs={"height": 3, "apple": True}, reward_delay=7
        ),
        "sil": SIL,
    },
}


@pytest.mark.parametrize("name", VARIANTS)
def test_a_run_resumes_exactly(name, tmp_path, monkeypatch):
    config: RunConfig = dataclasses.replace(CONFIG, **VARIANTS[name])
    assert_resumes_exactly(config, tmp_path, monkeypatch)
