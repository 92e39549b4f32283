"""ONNX exports give the same outputs as the policy."""

from dataclasses import replace

import gymnasium as gym
import numpy as np
import pytest
import torch

from optimist.api import load
from optimist.config import NetworkConfig
from optimist.deploy.onnx import export_onnx, make_model
from optimist.errors import MissingExtra
from optimist.networks.actor_critic import make_actor_critic
from optimist.presets import get_preset
from optimist.training.trainer import train

runtime = pytest.importorskip("onnxruntime")


def outputs_of(model, obs):
    session = runtime.InferenceSession(model, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, {"obs": obs}), strict=True))


@pytest.mark.parametrize("name", ["b_line", "plain", "expert"])
def test_an_exported_run_gives_the_same_logits_and_actions(runs, name, tmp_path):
    (file,) = export_onnx(runs[name], tmp_path / "onnx")
    agent = load(runs[name])
    obs = np.random.default_rng(0).integers(0, 2, (200, *agent.observation_space.shape)).astype(np.float32)
    found = outputs_of(str(file), obs[:, : getattr(agent.policy.actor, "visible", None)])
    with torch.no_grad():
        logits = agent.policy.actor(agent.policy.features(torch.from_numpy(obs))).numpy()
    assert np.allclose(found["logits"], logits, rtol=1e-5, atol=1e-5)
    assert (found["action"] == agent.act(obs)).all()


def test_discrete_observation_is_an_integer_input(tmp_path):
    config = get_preset("deepsea/ppo")(size=4)
    train(replace(config, total_steps=2048, tensorboard=False), tmp_path / "run", progress=False)
    (file,) = export_onnx(str(tmp_path / "run"), tmp_path / "onnx")
    obs = np.arange(16)
    assert (outputs_of(str(file), obs)["action"] == load(tmp_path / "run").act(obs)).all()


@pytest.mark.parametrize(
    ("observations", "actions", "name"),
    [
        (gym.spaces.Box(0, 255, (4, 84, 84), np.uint8), gym.spaces.Discrete(6), "logits"),
        (gym.spaces.Box(-1, 1, (3, 2), np.float32), gym.spaces.Discrete(3), "logits"),
        (gym.spaces.Box(-1, 1, (5,), np.float32), gym.spaces.Box(-1, 1, (2,), np.float32), "mean"),
        (gym.spaces.Box(-1, 1, (5,), np.float32), gym.spaces.MultiDiscrete([2, 3]), "logits"),
    ],
)
def test_every_kind_of_network_is_exported(observations, actions, name):
    torch.manual_seed(0)
    policy = make_actor_critic(observations, actions, NetworkConfig(cnn_features=32))
    model = make_model(policy, observations.shape)
    obs = np.stack([observations.sample() for _ in range(3)]).astype(np.float32)
    found = outputs_of(model.SerializeToString(), obs)
    with torch.no_grad():
        expected = policy.actor(policy.features(torch.from_numpy(obs))).numpy()
    assert np.allclose(found[name], expected, rtol=1e-4, atol=1e-5)
    assert ("action" in found) == isinstance(actions, gym.spaces.Discrete)


@pytest.mark.parametrize("settings", [{"action_mask": True}, {"normalize_observations": True}])
def test_inputs_of_the_critic_only_are_not_exported(settings):
    torch.manual_seed(0)
    observations, actions = gym.spaces.Box(0, 1, (9,), np.float32), gym.spaces.Discrete(3)
    policy = make_actor_critic(observations, actions, NetworkConfig(privileged=4, **settings))
    obs = np.random.default_rng(0).integers(0, 2, (6, 9)).astype(np.float32)
    if "normalize_observations" in settings:
        policy.encoder.observe(torch.from_numpy(obs))
    found = outputs_of(make_model(policy, observations.shape).SerializeToString(), obs[:, :5])
    with torch.no_grad():
        expected = policy.actor(policy.features(torch.from_numpy(obs))).numpy()
    assert np.allclose(found["logits"], expected, rtol=1e-4, atol=1e-5)


def test_missing_onnx_names_the_extra(runs, tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "onnx", None)
    with pytest.raises(MissingExtra, match=r"pip install '.\[onnx\]'"):
        export_onnx(runs["plain"], tmp_path / "onnx")
