"""OPR in Tianshou: real algorithms, collectors and trainers, small tasks."""

from __future__ import annotations

import io
import runpy
import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest
import torch
from tianshou.algorithm import A2C, PPO
from tianshou.utils import LazyLogger

from optimist.core import OPRConfig
from optimist.core.regularizer import OptimisticRegularizer
from optimist.integrations.tianshou import OPRA2C, OPRPPO, AlgorithmPolicy
from tests.integrations.test_examples import ROOT
from tests.integrations.tianshou_tasks import (
    EVERYTHING,
    NOTHING,
    Game,
    cartpole,
    make,
    observed,
    train,
    weights,
)


@pytest.mark.parametrize(
    ("plain", "kind", "settings"),
    [(PPO, OPRPPO, {"recompute_advantage": True}), (A2C, OPRA2C, {"return_scaling": True})],
)
def test_zero_strength_equals_the_plain_algorithm_bit_for_bit(plain, kind, settings):
    def trained(kind, **more):
        algorithm = make(kind, cartpole(), norm_layer=torch.nn.BatchNorm1d, max_grad_norm=0.5, **settings, **more)
        return train(algorithm, [cartpole] * 3, rollout=192, updates=3, repeat=2)

    alone, nothing = trained(plain), trained(kind, opr=NOTHING)
    assert weights(nothing).equal(weights(alone))
    assert nothing.opr.memory.num_transitions > 0
    off = trained(kind, opr=OPRConfig(enabled=False))
    assert weights(off).equal(weights(alone))
    assert off.opr.updates == 0
    assert not weights(trained(kind)).equal(weights(alone))


@pytest.mark.parametrize(("plain", "kind"), [(PPO, OPRPPO), (A2C, OPRA2C)])
def test_one_step_takes_the_sum_of_both_gradients(plain, kind, monkeypatch):
    fixed = torch.linspace(0, 1, 8)[:, None], torch.arange(8) % 2

    def fixed_loss(self, policy):
        return -policy.log_prob(*fixed).mean()

    def gradients(kind, **settings):
        """Return the gradients of every optimiser step."""
        algorithm, seen = make(kind, Game(), **settings), []
        optimizer = algorithm.optim._optim
        parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        step = optimizer.step

        def see(*arguments, **options):
            seen.append(torch.cat([parameter.grad.clone().flatten() for parameter in parameters]))
            return step(*arguments, **options)

        optimizer.step = see
        train(algorithm, [Game] * 2, rollout=64, batch_size=None)
        return seen

    fresh = make(plain, Game())
    fixed_loss(None, AlgorithmPolicy(fresh.policy, fresh.critic)).backward()
    parameters = [*fresh.policy.actor.parameters(), *fresh.critic.parameters()]
    added = torch.cat([(torch.zeros_like(p) if p.grad is None else p.grad).flatten() for p in parameters])
    assert added.norm() > 0.01
    (alone,) = gradients(plain)
    monkeypatch.setattr(OptimisticRegularizer, "loss", fixed_loss)
    (both,) = gradients(kind)
    torch.testing.assert_close(both, alone + added)
    (clipped,) = gradients(kind, max_grad_norm=0.001)
    torch.testing.assert_close(clipped, both * 0.001 / both.norm(), rtol=1e-3, atol=1e-7)


@pytest.mark.parametrize("kind", [OPRPPO, OPRA2C])
def test_rewards_are_shaped_before_advantages(kind, monkeypatch):
    steps_seen = observed(monkeypatch)
    learnt = []

    class Watched(kind):
        def _update_with_batch(self, batch, batch_size, repeat):
            learnt.append((batch.returns.clone(), batch.adv.clone(), batch.v_s.clone()))
            return super()._update_with_batch(batch, batch_size, repeat)

    def shape(self, steps, policy):
        return steps.rewards + torch.tensor([[100.0 * n + t for n in range(3)] for t in range(8)])

    monkeypatch.setattr(OptimisticRegularizer, "shape", shape)
    train(make(Watched, Game(), opr=NOTHING, gamma=0.0), [Game] * 3, rollout=24)
    ((returns, advantages, values),) = learnt
    expected = shape(None, steps_seen[0], None).T.flatten()  # with gamma 0 a return is its reward
    torch.testing.assert_close(returns, expected)
    torch.testing.assert_close(advantages, expected - values)


def test_a_reference_shapes_the_training_rewards():
    shapes = OPRConfig(bc_coef=0.0, shaping_scale=0.5, shaping_bound=0.5, reference="cloned")
    plain, shaped = (
        train(make(OPRPPO, Game(), opr=config), [Game] * 2, rollout=96, updates=3) for config in (NOTHING, shapes)
    )
    assert not weights(shaped).equal(weights(plain))


def test_a_resumed_algorithm_equals_an_uninterrupted_one():
    config = OPRConfig(reference="cloned", shaping_scale=0.5, shaping_bound=0.5)

    def train_again(algorithm):
        torch.manual_seed(1)
        np.random.seed(1)
        return train(algorithm, [cartpole] * 2, rollout=128, updates=2)

    first = train(make(OPRPPO, cartpole(), opr=config), [cartpole] * 2, rollout=128, updates=3)
    file = io.BytesIO()
    torch.save(first.state_dict(), file)
    file.seek(0)
    second = make(OPRPPO, cartpole(), opr=config, seed=5)
    second.load_state_dict(torch.load(file, weights_only=True))
    assert second.opr.memory.num_transitions == first.opr.memory.num_transitions > 0
    resumed, uninterrupted = train_again(second), train_again(first)
    assert weights(resumed).equal(weights(uninterrupted))
    assert resumed.opr.metrics() == uninterrupted.opr.metrics()
    assert resumed.opr.updates == 5


def test_a_checkpoint_without_opr_can_be_loaded_and_a_whole_algorithm_saved():
    plain, algorithm = train(make(PPO, Game()), [Game], rollout=12), make(OPRPPO, Game(), opr=EVERYTHING)
    algorithm.load_state_dict(plain.state_dict())
    assert weights(algorithm).equal(weights(plain))
    file = io.BytesIO()
    torch.save(train(algorithm, [Game], rollout=12), file)
    file.seek(0)
    loaded = torch.load(file, weights_only=False)
    assert len(loaded.opr.memory.episodes) == 2
    before = weights(loaded)
    train(loaded, [Game], rollout=12)
    assert len(loaded.opr.memory.episodes) == 4
    assert not weights(loaded).equal(before)


def test_cloning_phases_raise_the_probability_of_stored_actions():
    phases = OPRConfig(
        bc_coef=0.0, bc_phase_interval=1, bc_phase_unit="updates", bc_phase_epochs=3, bc_weights="uniform"
    )
    pulled, left = (
        train(make(OPRPPO, cartpole(), opr=config), [cartpole] * 2, rollout=256) for config in (phases, NOTHING)
    )
    rows = pulled.opr.memory.sample(256, torch.Generator().manual_seed(0))
    assert (
        pulled.opr_policy.log_prob(rows.obs, rows.actions).mean()
        > left.opr_policy.log_prob(rows.obs, rows.actions).mean()
    )


@pytest.mark.parametrize("space", [gym.spaces.Box(-1, 1, (2,)), gym.spaces.MultiDiscrete([3, 3])])
def test_continuous_and_multi_discrete_actions_are_cloned(space):
    class Free(Game):
        action_space = space

    algorithm = make(
        OPRPPO if isinstance(space, gym.spaces.Box) else OPRA2C,
        Free(),
        opr=OPRConfig(percentile=0.0),
    )
    train(algorithm, [Free] * 2, rollout=48, updates=3)
    metrics = algorithm.opr.metrics()
    assert np.isfinite(metrics["loss/bc"])
    assert metrics["loss/bc"] != 0
    rows = algorithm.opr.memory.sample(64, torch.Generator().manual_seed(0))
    assert rows.actions.shape == (64, 2)
    if isinstance(space, gym.spaces.Box):
        assert rows.actions.abs().max() > 1  # as drawn, not as clipped for the environment


def test_metrics_are_logged_with_those_of_tianshou():
    class Recorder(LazyLogger):
        def log_update_data(self, log_data, step):
            logged.append(log_data)

    logged = []
    train(make(OPRPPO, Game(), opr=EVERYTHING), [Game] * 2, rollout=24, updates=2, logger=Recorder())
    assert [data["opr"]["memory_transitions"] for data in logged] == [24, 48]
    assert np.isfinite(logged[1]["opr"]["loss/bc"])
    assert set(logged[1]["smoothed_loss"]) == {"loss", "actor_loss", "vf_loss", "ent_loss", "gradient_steps"}


@pytest.mark.parametrize("flags", [[], ["--no-opr"]])
def test_the_example_trains(flags, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["tianshou_ppo.py", "--steps", "2048", *flags])
    runpy.run_path(str(ROOT / "examples" / "tianshou_ppo.py"))
    assert "2,048 steps · mean return" in capsys.readouterr().out


def test_without_tianshou_the_error_names_the_extra():
    lines = "import sys; sys.modules['tianshou'] = None\nimport optimist.integrations.tianshou"
    result = subprocess.run([sys.executable, "-c", lines], capture_output=True, text=True, timeout=120)
    assert result.returncode != 0
    assert "needs tianshou 2: pip install '.[tianshou]'" in result.stderr
