"""What OPR is for: one success, seen once, is kept. It is injected, so that nothing depends on finding it by chance."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from optimist.envs.scripted import scripted_success
from optimist.presets import get_preset
from optimist.tracking.run_dir import RunDir
from optimist.training.loop import Trainer

pytestmark = pytest.mark.slow

SIZE = 16  # chance finds the treasure once in 65,536 episodes; a run has 2,500


def run(preset: str, seed: int, folder: Any, *, injected: bool) -> dict[str, Any]:
    """A run whose first episode in the first environment, if asked for, follows the script."""
    config = dataclasses.replace(
        get_preset(preset)(size=SIZE), seed=seed, total_steps=40_000, tensorboard=False, checkpoint_every=10**9
    )
    with RunDir.create(folder / "run", config) as run_dir:
        trainer = Trainer(config, run_dir)
        script, act = iter(scripted_success(trainer.envs) if injected else []), trainer.policy.act

        def follow(obs, generator=None):
            actions, action = act(obs, generator), next(script, None)
            if action is not None:
                actions[0] = action
            return actions

        trainer.policy.act = follow
        return trainer.run(progress=False)


@pytest.mark.parametrize("seed", [0, 1])
def test_one_success_is_kept_by_opr(seed, tmp_path):
    summary = run("deepsea/opr", seed, tmp_path, injected=True)
    assert summary["first_goal_step"] == 16 * SIZE
    assert summary["solved"], summary


def test_the_same_success_is_forgotten_by_ppo(tmp_path):
    summary = run("deepsea/ppo", 0, tmp_path, injected=True)
    assert summary["first_goal_step"] == 16 * SIZE
    assert summary["goal_rate"] == 0.0


def test_without_the_success_there_is_nothing_to_keep(tmp_path):
    summary = run("deepsea/opr", 0, tmp_path, injected=False)
    assert not summary["goal_seen"]
    assert not summary["solved"]
