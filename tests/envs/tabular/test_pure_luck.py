"""Pure luck: rewards do not depend on actions, and OPR leaves a policy alone that has nothing to learn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import optimist.envs  # noqa: F401 (registers)
from optimist.config.toml import merge
from optimist.envs.tabular.pure_luck import PureLuckEnv, PureLuckVectorEnv
from optimist.errors import ConfigError
from optimist.presets import get_preset
from optimist.tracking.run_dir import RunDir
from optimist.training.trainer import Trainer


def rewards_of(env: PureLuckVectorEnv, action: int, steps: int = 40) -> np.ndarray:
    env.reset(seed=5)
    return np.stack([env.step(np.full(env.num_envs, action))[1] for _ in range(steps)])


def test_rewards_do_not_depend_on_actions() -> None:
    first, other = (rewards_of(PureLuckVectorEnv(8, length=4, actions=3), action) for action in (0, 2))
    assert np.array_equal(first, other)
    assert (first[3::4] > 0).all()
    assert not np.delete(first, np.s_[3::4], axis=0).any()


def test_the_last_step_pays_an_exponential_reward_with_mean_1() -> None:
    paid = rewards_of(PureLuckVectorEnv(2_000, length=1, actions=2), 0, steps=10).ravel()
    assert paid.mean() == pytest.approx(1.0, abs=0.03)
    assert paid.std() == pytest.approx(1.0, abs=0.05)
    assert np.median(paid) == pytest.approx(np.log(2.0), abs=0.03)


def test_a_restored_environment_pays_the_same() -> None:
    env, restored = PureLuckVectorEnv(3, length=2), PureLuckVectorEnv(3, length=2)
    rewards_of(env, 0, steps=5)
    restored.reset(seed=99)
    restored.load_state_dict(env.state_dict())
    both = [np.stack([e.step(np.zeros(3, np.int64))[1] for _ in range(6)]) for e in (env, restored)]
    assert np.array_equal(*both)


def test_one_action_is_refused_in_one_line() -> None:
    with pytest.raises(ConfigError, match=r"^PureLuck's actions must be an integer of at least 2, got 1$"):
        PureLuckVectorEnv(1, actions=1)


def test_one_environment_plays_an_episode() -> None:
    env = PureLuckEnv(length=3)
    env.reset(seed=0)
    steps = [env.step(0) for _ in range(3)]
    assert [step[0] for step in steps] == [1, 2, 2]
    assert [step[2] for step in steps] == [False, False, True]


def train(tmp_path: Path, preset: str, opr: dict[str, object], updates: int = 30) -> tuple[float, torch.Tensor]:
    """λ_BC · the mean weight of a cloned step over the last third of the updates, and log π for each time."""
    settings = {"total_steps": 1_024 * updates, "seed": 1} | ({"opr": opr} if opr else {})
    config = merge(get_preset(preset)(), settings)
    with RunDir.create(tmp_path / preset, config) as run:
        trainer = Trainer(config, run)
        lines = [trainer.one_update() for _ in range(updates)]
        logits = trainer.policy.action_params(torch.arange(10)).detach()
        trainer.close()
    weights = [line.get("opr/bc_weight", 0.0) for line in lines[-updates // 3 :]]
    return config.opr.bc_coef * float(np.mean(weights)), logits.log_softmax(-1)


def test_a_luck_test_by_the_tail_leaves_the_policy_alone(tmp_path: Path) -> None:
    _, plain = train(tmp_path, "pureluck/ppo", {})
    pull, policy = train(tmp_path, "pureluck/opr", {"bc_luck": "tail"})
    divergence = (plain.exp() * (plain - policy)).sum(-1).mean().item()
    entropies = [-(logp.exp() * logp).sum(-1).mean().item() for logp in (plain, policy)]
    assert pull < 0.005  # the bound of results/default/PLAN.md
    assert divergence < 0.15  # plain PPO with other random numbers diverges as far
    assert entropies[1] == pytest.approx(entropies[0], abs=0.15)
