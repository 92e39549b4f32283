"""Q-networks: values, exploration, and the policy that anchors see."""

import copy

import gymnasium as gym
import numpy as np
import pytest
import torch

from optimist.config import DQNConfig, NetworkConfig, RainbowConfig
from optimist.errors import ConfigError
from optimist.networks.layers import NoisyLinear, draw_noise
from optimist.networks.q_network import make_q_network

OFF = {"dueling": False, "noisy": False, "atoms": 1}
SPACES = {
    "vector": gym.spaces.Box(-1.0, 1.0, (5,), np.float32),
    "cells": gym.spaces.Discrete(5),
    "image": gym.spaces.Box(0, 255, (4, 84, 84), np.uint8),
}


def make(learner, space="vector", **network):
    torch.manual_seed(0)
    settings = NetworkConfig(**({"hidden": (16, 8), "cnn_features": 32} | network))
    return make_q_network(SPACES[space], gym.spaces.Discrete(3), settings, learner)


def observations(space="vector", rows=7):
    generator = np.random.default_rng(0)
    return torch.from_numpy(np.stack([SPACES[space].sample() for _ in range(rows)])) if space != "vector" else (
        torch.from_numpy(generator.normal(size=(rows, 5)).astype(np.float32))
    )  # fmt: skip


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("options", [{}, {"dueling": False}, {"noisy": False}, {"atoms": 1}, OFF], ids=str)
def test_every_variant_gives_a_value_for_each_action(space, options):
    network = make(RainbowConfig(**options), space)
    obs = observations(space)
    assert network.q_values(obs).shape == (7, 3)
    noise = network.draw_noise(torch.Generator().manual_seed(0), 7)
    assert network.q_values(obs, noise).shape == (7, 3)
    assert network.act(obs, torch.Generator().manual_seed(0)).shape == (7,)


def test_rainbow_with_everything_off_has_dqns_weights():
    plain, off = make(DQNConfig()).state_dict(), make(RainbowConfig(**OFF)).state_dict()
    assert plain.keys() == off.keys()
    assert all(plain[name].equal(off[name]) for name in plain)


def test_dueling_streams_by_hand():
    network = make(RainbowConfig(**(OFF | {"dueling": True})))
    obs = observations()
    features = network.body(obs)
    advantage, value = network.advantage_stream(features), network.value_stream(features)
    expected = value + advantage - advantage.mean(-1, keepdim=True)
    assert torch.allclose(network.q_values(obs), expected)
    assert torch.allclose(network.q_values(obs).mean(-1), value.squeeze(-1), atol=1e-6)


def test_a_distributions_value_is_its_mean():
    network = make(RainbowConfig(**(OFF | {"atoms": 3, "value_min": -1.0, "value_max": 1.0})))
    logits = torch.log(torch.tensor([[[0.5, 0.25, 0.25], [0.0, 0.0, 1.0]]]) + 1e-20)
    assert torch.allclose(network.means(logits), torch.tensor([[-0.25, 1.0]]))


def test_noise_by_hand():
    layer = NoisyLinear(3, 2, 0.5)
    inputs, noise_in, noise_out = torch.randn(4, 3), torch.randn(1, 3), torch.randn(1, 2)
    weight = layer.weight + layer.weight_sigma * torch.outer(noise_out[0], noise_in[0])
    expected = inputs @ weight.T + layer.bias + layer.bias_sigma * noise_out[0]
    assert torch.allclose(layer(inputs, (noise_in, noise_out)), expected, atol=1e-6)
    assert torch.allclose(layer(inputs), inputs @ layer.weight.T + layer.bias, atol=1e-6)


def test_noise_is_the_signed_root_of_normal_numbers():
    (noise_in, noise_out), _ = draw_noise([NoisyLinear(400, 600, 0.5)] * 2, torch.Generator().manual_seed(0), rows=50)
    assert (noise_in.shape, noise_out.shape) == ((50, 400), (50, 600))
    squares = noise_in.square() * noise_in.sign()
    assert abs(squares.mean().item()) < 0.02
    assert squares.std().item() == pytest.approx(1.0, abs=0.02)


def test_environments_in_the_same_state_explore_independently():
    network = make(RainbowConfig())
    same = torch.zeros(200, 5) + 0.3
    assert len(network.act(same, torch.Generator().manual_seed(0)).unique()) > 1
    assert len(network.act_greedily(same).unique()) == 1


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0])
def test_epsilon_is_the_share_of_random_actions(epsilon):
    network = make(DQNConfig())
    network.epsilon = epsilon
    obs = observations()[:1].expand(30_000, 5)
    greedy = int(network.act_greedily(obs[:1]))
    share = torch.bincount(network.act(obs, torch.Generator().manual_seed(0)), minlength=3) / 30_000
    expected = torch.full((3,), epsilon / 3)
    expected[greedy] += 1 - epsilon
    assert torch.allclose(share, expected, atol=0.01)


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0])
def test_acting_with_given_noise_equals_acting_with_a_generator(epsilon):
    network = make(DQNConfig())
    network.epsilon = epsilon
    obs = observations(rows=7).repeat(300, 1)
    expected = network.act(obs, torch.Generator().manual_seed(0))
    noise = network.sample_noise(len(obs), torch.Generator().manual_seed(0))
    assert network.act_with_noise(obs, noise).equal(expected)
    assert "_epsilon" not in network.state_dict()


def test_a_single_environment_explores_at_the_same_rate():
    network = make(DQNConfig())
    network.epsilon = 0.5
    obs, generator = observations()[:1], torch.Generator().manual_seed(0)
    greedy = int(network.act_greedily(obs))
    share = sum(int(network.act(obs, generator)) == greedy for _ in range(3000)) / 3000
    assert share == pytest.approx(0.5 + 0.5 / 3, abs=0.03)


def test_an_evaluated_policy_explores_with_evaluation_epsilon():
    network = make(DQNConfig(evaluation_epsilon=0.0))
    network.epsilon = 1.0
    obs = observations(rows=7).repeat(50, 1)
    assert not network.act(obs, torch.Generator().manual_seed(0)).equal(network.act_greedily(obs))
    assert network.eval().act(obs, torch.Generator().manual_seed(0)).equal(network.act_greedily(obs))


def test_anchors_see_a_softmax_of_the_values_and_the_highest_value():
    network = make(DQNConfig(temperature=0.5))
    obs, actions = observations(), torch.tensor([0, 1, 2, 0, 1, 2, 0])
    q = network.q_values(obs)
    policy = torch.distributions.Categorical(logits=q / 0.5)
    logp, entropy, value = network.evaluate(obs, actions)
    assert torch.allclose(logp, policy.log_prob(actions), atol=1e-6)
    assert torch.allclose(entropy, policy.entropy(), atol=1e-6)
    assert value.equal(q.max(-1).values)
    assert torch.allclose(network.log_prob(obs, actions), logp)
    assert torch.allclose(network.value(obs), value)
    assert torch.allclose(network.action_params(obs), q / 0.5)


def test_a_deep_copy_shares_no_weights():
    network = make(RainbowConfig())
    copied = copy.deepcopy(network)
    obs = observations()
    before = copied.q_values(obs)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(1.0)
    assert copied.q_values(obs).equal(before)
    assert not network.q_values(obs).equal(before)


def test_an_action_space_that_is_not_discrete_is_refused():
    with pytest.raises(ConfigError, match="dqn chooses among Discrete actions"):
        make_q_network(SPACES["vector"], gym.spaces.Box(-1, 1, (2,)), NetworkConfig(), DQNConfig())
