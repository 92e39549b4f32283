"""Normalised observations: running statistics, when they change, and what is saved and exported."""

import copy
import dataclasses

import gymnasium as gym
import numpy as np
import pytest
import torch

from optimist.api import load
from optimist.config import EnvConfig, NetworkConfig, PPOConfig, RunConfig
from optimist.core.config import OPRConfig
from optimist.errors import ConfigError
from optimist.networks.actor_critic import make_actor_critic
from optimist.networks.layers import NormalizedVector
from optimist.training.trainer import Trainer, train

VECTOR, ACTIONS = gym.spaces.Box(-1, 1, (3,), np.float64), gym.spaces.Box(-1, 1, (2,), np.float32)
CONFIG = RunConfig(
    total_steps=1024,
    env=EnvConfig(id="Pendulum-v1", num_envs=4),
    network=NetworkConfig(hidden=(8,), normalize_observations=True),
    algorithm=PPOConfig(rollout_steps=32, minibatch_size=64),
    opr=OPRConfig(bc_batch_size=16),
    tensorboard=False,
)


def test_statistics_are_those_of_all_observations():
    generator = torch.Generator().manual_seed(0)
    batches = [torch.randn(size, 3, generator=generator) * 5 + 7 for size in (1, 4, 100, 33)]
    encoder = NormalizedVector(3)
    for batch in batches:
        encoder.observe(batch)
    everything = torch.cat(batches).double()
    torch.testing.assert_close(encoder.mean, everything.mean(0))
    torch.testing.assert_close(encoder.variance, everything.var(0, correction=0))
    assert encoder.count == 138
    torch.testing.assert_close(encoder(everything).mean(0), torch.zeros(3), atol=1e-5, rtol=0)
    torch.testing.assert_close(encoder(everything).std(0, correction=0), torch.ones(3))


def test_without_observations_the_encoder_only_clips():
    encoder = NormalizedVector(2)
    assert encoder(torch.tensor([[0.5, -3.0], [99.0, -99.0]])).tolist() == [[0.5, -3.0], [10.0, -10.0]]


def test_a_constant_entry_stays_finite():
    encoder = NormalizedVector(1)
    encoder.observe(torch.full((5, 1), 2.0))
    assert encoder(torch.tensor([[2.0], [2.5]])).tolist() == [[0.0], [10.0]]


def test_statistics_by_hand():
    encoder = NormalizedVector(1)
    encoder.observe(torch.tensor([[1.0], [3.0]]))
    encoder.observe(torch.tensor([[8.0]]))
    assert encoder.mean.item() == pytest.approx(4.0)
    assert encoder.variance.item() == pytest.approx(26 / 3)  # 9 + 1 + 16, over 3


def test_statistics_change_between_updates_only(tmp_path, monkeypatch):
    from optimist.tracking.run_dir import RunDir

    with RunDir.create(tmp_path / "run", CONFIG) as run:
        trainer = Trainer(CONFIG, run)
        encoder = trainer.policy.encoder
        seen = []
        update = trainer.algorithm.update

        def check_statistics(rollout):
            before = encoder.mean.clone()
            logp, _, values = trainer.policy.evaluate(rollout.obs.flatten(0, 1), rollout.actions.flatten(0, 1))
            assert torch.allclose(logp, rollout.logp.flatten(), atol=1e-5)  # the rollout was collected by this policy
            assert torch.allclose(values, rollout.values.flatten(), atol=1e-5)
            result = update(rollout)
            assert encoder.mean.equal(before)
            seen.append(rollout.obs.flatten(0, 1))
            return result

        monkeypatch.setattr(trainer.algorithm, "update", check_statistics)
        trainer.run(progress=False)
    torch.testing.assert_close(encoder.mean, torch.cat(seen).double().mean(0))
    memory = trainer.algorithm.anchor.memory
    raw = {tuple(row) for row in torch.cat(seen).tolist()}
    assert {tuple(row) for row in memory.sample(50, torch.Generator()).obs.tolist()} <= raw


def test_the_saved_policy_holds_its_statistics(tmp_path):
    train(CONFIG, tmp_path / "run", progress=False)
    agent = load(tmp_path / "run")
    assert agent.policy.encoder.count == 1024
    assert agent.policy.encoder.variance.ne(1.0).all()


def test_the_onnx_export_normalises_observations():
    runtime = pytest.importorskip("onnxruntime")
    from optimist.deploy.onnx import make_model

    policy = make_actor_critic(VECTOR, ACTIONS, NetworkConfig(normalize_observations=True))
    obs = (torch.randn(200, 3, generator=torch.Generator().manual_seed(0)) * 4 + 3).float()
    policy.observe(obs[:100])
    session = runtime.InferenceSession(make_model(policy, (3,)).SerializeToString(), providers=["CPUExecutionProvider"])
    (mean,) = session.run(None, {"obs": (3 * obs).numpy()})
    expected = policy.act_greedily(3 * obs).numpy()
    assert np.allclose(mean, expected, atol=1e-5)
    assert not np.allclose(mean, make_plain(policy).act_greedily(3 * obs).numpy(), atol=1e-5)


def make_plain(policy):
    plain = copy.deepcopy(policy)
    plain.encoder = NormalizedVector(3)
    return plain


def test_only_vectors_can_be_normalised():
    on = NetworkConfig(normalize_observations=True)
    with pytest.raises(ConfigError, match="needs observations that are vectors"):
        make_actor_critic(gym.spaces.Discrete(4), ACTIONS, on)
    with pytest.raises(ConfigError, match="would normalise the mask too"):
        make_actor_critic(VECTOR, gym.spaces.Discrete(2), dataclasses.replace(on, action_mask=True))
