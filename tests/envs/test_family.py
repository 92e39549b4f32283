"""Families of environments: labels, keywords and scores; other packages add their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import gymnasium
import pytest

import optimist
from optimist.envs.family import GYMNASIUM, families, family_of
from optimist.report.identify import name_env

PACKAGE = '''
import gymnasium
import numpy as np
from optimist.envs.family import Family

class Line(gymnasium.Env):
    """Walk right `length` times; `shift` is drawn once for a run."""
    observation_space, action_space = gymnasium.spaces.Discrete(9), gymnasium.spaces.Discrete(2)

    def __init__(self, length=4, shift=None, fast=False):
        self.length, self.shift, self.at = length, shift, 0

    def reset(self, *, seed=None, options=None):
        self.at = 0
        return 0, {}

    def step(self, action):
        self.at += int(action == self.shift % 2)
        return self.at, float(self.at == self.length), self.at == self.length, False, {}

FAMILY = Family(
    name="Lines",
    envs={"lines/Line-v0": {"entry_point": "lines:Line"}},
    label=lambda _, kwargs: f"Line-{kwargs.get('length', 4)}",
    label_kwargs=("length",),
    performance_kwargs=("fast",),
    task_seed="shift",
)
'''
PROGRAM = """
from pathlib import Path
from optimist.config import EnvConfig, PPOConfig, RunConfig
from optimist.report.identify import name_env
from optimist.training.describe import describe_run
from optimist.training.trainer import train

env = EnvConfig(id="lines/Line-v0", num_envs=2, kwargs={"length": 3, "fast": True})
config = RunConfig(env=env, total_steps=64, seed=1, algorithm=PPOConfig(rollout_steps=16), tensorboard=False)
print(describe_run(config))
print(name_env(env.id, env.kwargs))
print(train(config, Path("run"), progress=False)["steps"])
"""


def test_every_registered_environment_of_optimist_belongs_to_a_family() -> None:
    ours = [env_id for env_id in gymnasium.registry if env_id.startswith("optimist/")]
    assert len(ours) >= 6
    assert all(family_of(env_id) is not GYMNASIUM for env_id in ours)


def test_other_environments_belong_to_gymnasium() -> None:
    assert family_of("CartPole-v1") is GYMNASIUM
    assert name_env("CartPole-v1", {"sutton_barto_reward": True}) == (
        "Gymnasium",
        "CartPole-v1 (sutton_barto_reward=True)",
    )


def test_names_of_families_are_unique() -> None:
    names = [family.name for family in families()]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(("task", "score", "expected"), [("Pong", -20.7, 0.0), ("Pong", 14.6, 1.0)])
def test_atari_scores_are_normalized_between_random_and_human_play(task: str, score: float, expected: float) -> None:
    normalized = family_of("optimist/Atari-v0").normalized_score
    assert normalized is not None
    assert normalized(task, score) == pytest.approx(expected)


def _install(folder: Path, value: str) -> None:
    (folder / "lines.py").write_text(PACKAGE)
    info = folder / "lines-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: lines\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[optimist.envs]\nlines = {value}\n")


def _run(folder: Path, program: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(folder), str(Path(optimist.__file__).parents[1])])
    return subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=120,
        cwd=folder,
        env=os.environ | {"PYTHONPATH": path},
    )


def test_an_installed_package_adds_a_family_in_one_module(tmp_path: Path) -> None:
    _install(tmp_path, "lines:FAMILY")
    done = _run(tmp_path, PROGRAM)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "PPO on lines/Line-v0(length=3): 64 steps, 2 envs, seed 1",
        "('Lines', 'Line-3')",
        "64",
    ]


def test_a_family_that_cannot_be_loaded_is_named(tmp_path: Path) -> None:
    _install(tmp_path, "lines:MISSING")
    done = _run(tmp_path, "from optimist.envs.family import families\nfamilies()")
    assert "MissingExtra: cannot load the environments 'lines' from lines:MISSING" in done.stderr
