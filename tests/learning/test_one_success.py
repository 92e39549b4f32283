"""OPR learns from a single success and PPO does not. The success is injected, so that no test depends on chance."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from optimist.envs.tabular.grid import scripted_success
from optimist.presets import get_preset
from optimist.tracking.run_dir import RunDir
from optimist.training.trainer import Trainer

pytestmark = pytest.mark.slow

SIZE = 16  # random actions reach the goal once in 65,536 episodes; a run has 2,500


def run(preset: str, seed: int, folder: Any, *, injected: bool) -> dict[str, Any]:
    """Train; if `injected`, the first episode of the first environment follows the scripted success."""
    config = dataclasses.replace(
        get_preset(preset)(size=SIZE), seed=seed, total_steps=40_000, tensorboard=False, checkpoint_every=10**9
    )
    with RunDir.create(folder / "run", config) as run_dir:
        trainer = Trainer(config, run_dir)
        script, act = iter(scripted_success(trainer.envs) if injected else []), trainer.policy.act

        def act_by_script(obs, generator=None):
            actions, action = act(obs, generator), next(script, None)
            if action is not None:
                actions[0] = action
            return actions

        trainer.policy.act = act_by_script
        return trainer.run(progress=False)


@pytest.mark.parametrize("seed", [0, 1])
def test_opr_solves_the_task_from_one_success(seed, tmp_path):
    summary = run("deepsea/opr", seed, tmp_path, injected=True)
    assert summary["first_goal_step"] == 16 * SIZE
    assert summary["solved"], summary


def test_ppo_forgets_the_same_success(tmp_path):
    summary = run("deepsea/ppo", 0, tmp_path, injected=True)
    assert summary["first_goal_step"] == 16 * SIZE
    assert summary["goal_rate"] == 0.0


def test_opr_does_not_find_the_goal_by_itself(tmp_path):
    summary = run("deepsea/opr", 0, tmp_path, injected=False)
    assert not summary["goal_seen"]
    assert not summary["solved"]
