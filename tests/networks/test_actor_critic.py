import copy
import dataclasses

import gymnasium as gym
import numpy as np
import pytest
import torch

from optimist.config import NetworkConfig
from optimist.errors import ConfigError
from optimist.networks.actor_critic import make_actor_critic
from optimist.networks.encoder import Image, OneHot, Vector, make_encoder
from optimist.networks.mlp import MLP
from optimist.networks.nature_cnn import make_nature_cnn

PIXELS = gym.spaces.Box(0, 255, (4, 84, 84), np.uint8)
SPACES = {
    "discrete": gym.spaces.Discrete(7),
    "vector": gym.spaces.Box(-1, 1, (3,)),
    "image": PIXELS,
    "planes": gym.spaces.Box(0, 1, (3, 3, 2), np.bool_),
}
ACTIONS = {
    "discrete": gym.spaces.Discrete(5),
    "multi": gym.spaces.MultiDiscrete([2, 3]),
    "box": gym.spaces.Box(-1, 1, (2,)),
}


def observations(space, count=6):
    space.seed(0)
    return torch.from_numpy(np.stack([space.sample() for _ in range(count)]))


@pytest.mark.parametrize("seen", SPACES)
@pytest.mark.parametrize("done", ACTIONS)
def test_act_evaluate_log_prob_and_value_agree_for_every_pair_of_spaces(seen, done):
    torch.manual_seed(0)
    policy = make_actor_critic(SPACES[seen], ACTIONS[done], NetworkConfig(hidden=(16,), cnn_features=32))
    obs = observations(SPACES[seen])
    actions = policy.act(obs, torch.Generator().manual_seed(0))
    logp, entropy, values = policy.evaluate(obs, actions)
    assert actions.shape[1:] == ACTIONS[done].shape
    assert logp.shape == values.shape == entropy.shape == (6,)
    torch.testing.assert_close(policy.log_prob(obs, actions), logp)
    torch.testing.assert_close(policy.value(obs), values)
    assert policy.act_greedily(obs).shape == actions.shape
    assert not actions.requires_grad


@pytest.mark.parametrize("seen", ["vector", "image"])
def test_an_initialisation_is_of_all_layers_it_names(seen):
    found = {}
    for word in ("orthogonal", "default_heads", "default"):
        torch.manual_seed(0)
        policy = make_actor_critic(
            SPACES[seen], ACTIONS["discrete"], NetworkConfig(initialization=word, cnn_features=8)
        )
        biases = {name: bool(value.any()) for name, value in policy.named_parameters() if name.endswith("bias")}
        found[word] = [name for name, drawn in biases.items() if drawn], len(biases)
    heads = 2
    assert [len(drawn) for drawn, _ in found.values()] == [0, heads, found["default"][1]]
    assert all(name.startswith(("actor", "critic")) for name in found["default_heads"][0])


def test_the_greedy_action_is_the_most_probable():
    policy = make_actor_critic(SPACES["vector"], ACTIONS["discrete"], NetworkConfig())
    obs = observations(SPACES["vector"])
    best = torch.stack([policy.log_prob(obs, torch.full((6,), a)) for a in range(5)]).argmax(0)
    assert policy.act_greedily(obs).equal(best)


def test_actor_and_critic_of_an_mlp_share_nothing():
    policy = make_actor_critic(SPACES["vector"], ACTIONS["discrete"], NetworkConfig(hidden=(8, 8)))
    policy.value(observations(SPACES["vector"])).sum().backward()
    assert all(p.grad is None for p in policy.actor.parameters())
    assert all(p.grad is not None for p in policy.critic.parameters())


@pytest.mark.parametrize("shape", [(), (3, 2), (2, 3, 2)])
def test_an_array_of_any_shape_is_flattened(shape):
    space = gym.spaces.Box(0.0, 1.0, shape)
    encoder, (width,) = make_encoder(space)
    obs = torch.rand(5, *shape)
    assert encoder(obs).equal(obs.reshape(5, width))
    policy = make_actor_critic(space, gym.spaces.Discrete(3), NetworkConfig(hidden=(4,)))
    assert policy.value(obs).shape == (5,)


def test_images_share_the_nature_cnn_and_can_be_flattened_instead():
    shared = make_actor_critic(PIXELS, ACTIONS["discrete"], NetworkConfig(cnn_features=512))
    # Mnih et al. (2015): 4·8·8·32+32, 32·4·4·64+64, 64·3·3·64+64, 3136·512+512; heads 512·5+5 and 512+1
    assert sum(p.numel() for p in shared.parameters()) == 8224 + 32832 + 36928 + 1606144 + 2565 + 513
    flat = make_actor_critic(PIXELS, ACTIONS["discrete"], NetworkConfig(kind="mlp", hidden=(4,)))
    assert flat.value(observations(PIXELS, 2)).shape == (2,)


def test_orthogonal_initialisation_has_its_gains():
    policy = make_actor_critic(SPACES["discrete"], ACTIONS["discrete"], NetworkConfig(hidden=(16, 16)))
    hidden, last_actor, last_critic = policy.actor[1].weight, policy.actor[-1].weight, policy.critic[-1].weight
    torch.testing.assert_close(hidden @ hidden.T, 2 * torch.eye(16), atol=1e-5, rtol=0)
    torch.testing.assert_close(last_actor @ last_actor.T, 1e-4 * torch.eye(5), atol=1e-8, rtol=0)
    torch.testing.assert_close(last_critic @ last_critic.T, torch.eye(1), atol=1e-5, rtol=0)
    assert not policy.actor[0].bias.any()


def test_the_first_policy_is_nearly_uniform():
    policy = make_actor_critic(SPACES["discrete"], ACTIONS["discrete"], NetworkConfig())
    _, entropy, _ = policy.evaluate(torch.arange(7), torch.zeros(7))
    torch.testing.assert_close(entropy, torch.full((7,), 5.0).log(), atol=1e-3, rtol=0)


def test_pytorchs_own_initialisation_can_be_asked_for():
    policy = make_actor_critic(SPACES["vector"], ACTIONS["discrete"], NetworkConfig(initialization="default"))
    assert policy.actor[0].bias.any()


@pytest.mark.parametrize(("word", "kind"), [("tanh", torch.nn.Tanh), ("relu", torch.nn.ReLU)])
def test_the_mlp_equals_a_sequence_of_its_layers_with_no_activation_at_the_end(word, kind):
    first, second, third = mlp = MLP((3, 8, 4, 2), word, orthogonal_init=True, out_gain=1.0)
    sequence = torch.nn.Sequential(first, kind(), second, kind(), third)
    inputs = torch.randn(5, 3)
    assert mlp(inputs).equal(sequence(inputs))
    assert [layer.out_features for layer in mlp] == [8, 4, 2]


def test_a_copy_of_an_mlp_has_layers_of_its_own():
    mlp = MLP((3, 4, 2), "tanh", orthogonal_init=True, out_gain=1.0)
    copied, inputs = copy.deepcopy(mlp), torch.randn(5, 3)
    before = copied(inputs)
    torch.nn.init.zeros_(mlp[0].weight)
    assert copied(inputs).equal(before)
    assert not mlp(inputs).equal(before)


def test_the_initial_spread_of_a_gaussian_is_the_configs():
    policy = make_actor_critic(SPACES["vector"], ACTIONS["box"], NetworkConfig(log_std=-1.0))
    assert policy.head.log_std.tolist() == [-1.0, -1.0]


def test_encoders_by_hand():
    encoder, shape = make_encoder(gym.spaces.Discrete(3))
    assert isinstance(encoder, OneHot)
    assert (shape, encoder(torch.tensor([2, 0])).tolist()) == ((3,), [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
    encoder, shape = make_encoder(PIXELS)
    assert isinstance(encoder, Image)
    assert encoder(torch.tensor([0, 51, 255], dtype=torch.uint8)).tolist() == pytest.approx([0.0, 0.2, 1.0])
    encoder, _ = make_encoder(gym.spaces.Box(-1, 1, (2,), np.float64))
    assert isinstance(encoder, Vector)
    assert encoder(torch.ones(1, 2, dtype=torch.float64)).dtype == torch.float32


def test_constants_of_an_encoder_are_not_saved():
    policy = make_actor_critic(SPACES["discrete"], ACTIONS["discrete"], NetworkConfig())
    assert not any(name.startswith("encoder") for name in policy.state_dict())


@pytest.mark.parametrize(
    "space",
    [gym.spaces.Discrete(3, start=1), gym.spaces.MultiBinary(4), gym.spaces.Dict({"seen": gym.spaces.Discrete(2)})],
)
def test_an_observation_without_a_network_is_refused(space):
    with pytest.raises(ConfigError):
        make_actor_critic(space, ACTIONS["discrete"], NetworkConfig())


@pytest.mark.parametrize("shape", [(4,), (84, 84, 4), (4, 20, 20), (4, 84, 30)])
def test_the_nature_cnn_refuses_what_it_cannot_see(shape):
    with pytest.raises(ConfigError, match=r"nature_cnn.*\[channels, height, width\]"):
        make_nature_cnn(shape, 8)


def test_a_vector_cannot_be_seen_by_the_nature_cnn():
    with pytest.raises(ConfigError, match="nature_cnn"):
        make_actor_critic(SPACES["vector"], ACTIONS["discrete"], NetworkConfig(kind="nature_cnn"))


def test_the_same_torch_seed_gives_the_same_network():
    def weights(seed):
        torch.manual_seed(seed)
        policy = make_actor_critic(SPACES["vector"], ACTIONS["discrete"], dataclasses.replace(NetworkConfig()))
        return torch.cat([p.flatten() for p in policy.parameters()])

    assert weights(1).equal(weights(1))
    assert not weights(1).equal(weights(2))
