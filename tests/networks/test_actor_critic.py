"""Actor-critic networks: all pairs of spaces, initialisation, and errors."""

import dataclasses

import gymnasium as gym
import numpy as np
import pytest
import torch

from optimist.config import NetworkConfig
from optimist.errors import ConfigError
from optimist.networks.actor_critic import make_actor_critic

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


@pytest.mark.parametrize("obs_space", SPACES)
@pytest.mark.parametrize("action_space", ACTIONS)
def test_act_evaluate_log_prob_and_value_agree_for_every_pair_of_spaces(obs_space, action_space):
    torch.manual_seed(0)
    policy = make_actor_critic(SPACES[obs_space], ACTIONS[action_space], NetworkConfig(hidden=(16,), cnn_features=32))
    obs = observations(SPACES[obs_space])
    actions = policy.act(obs, torch.Generator().manual_seed(0))
    logp, entropy, values = policy.evaluate(obs, actions)
    assert actions.shape[1:] == ACTIONS[action_space].shape
    assert logp.shape == values.shape == entropy.shape == (6,)
    torch.testing.assert_close(policy.log_prob(obs, actions), logp)
    torch.testing.assert_close(policy.value(obs), values)
    assert policy.act_greedily(obs).shape == actions.shape
    assert not actions.requires_grad


@pytest.mark.parametrize("obs_space", ["vector", "image"])
def test_an_initialisation_applies_to_the_layers_it_names(obs_space):
    found = {}
    for word in ("orthogonal", "default_heads", "default"):
        torch.manual_seed(0)
        policy = make_actor_critic(
            SPACES[obs_space], ACTIONS["discrete"], NetworkConfig(initialization=word, cnn_features=8)
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


def test_actor_and_critic_of_an_mlp_share_no_weights():
    policy = make_actor_critic(SPACES["vector"], ACTIONS["discrete"], NetworkConfig(hidden=(8, 8)))
    policy.value(observations(SPACES["vector"])).sum().backward()
    assert all(p.grad is None for p in policy.actor.parameters())
    assert all(p.grad is not None for p in policy.critic.parameters())


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


def test_default_initialisation_is_that_of_pytorch():
    policy = make_actor_critic(SPACES["vector"], ACTIONS["discrete"], NetworkConfig(initialization="default"))
    assert policy.actor[0].bias.any()


def test_the_initial_deviation_of_a_gaussian_follows_the_config():
    policy = make_actor_critic(SPACES["vector"], ACTIONS["box"], NetworkConfig(log_std=-1.0))
    assert policy.head.log_std.tolist() == [-1.0, -1.0]


def test_constants_of_an_encoder_are_not_saved():
    policy = make_actor_critic(SPACES["discrete"], ACTIONS["discrete"], NetworkConfig())
    assert not any(name.startswith("encoder") for name in policy.state_dict())


@pytest.mark.parametrize(
    "space",
    [
        gym.spaces.Discrete(3, start=1),
        gym.spaces.MultiBinary(4),
        gym.spaces.Dict({"seen": gym.spaces.Discrete(2)}),
        gym.spaces.Tuple([gym.spaces.Discrete(2)]),
        gym.spaces.Box(0.0, 1.0, (3, 0)),
    ],
)
def test_an_observation_without_a_network_is_refused(space):
    with pytest.raises(
        ConfigError, match=r"no network for the observation space .*FlattenObservation, can make it one"
    ):
        make_actor_critic(space, ACTIONS["discrete"], NetworkConfig())


def test_the_nature_cnn_refuses_vectors():
    with pytest.raises(ConfigError, match="nature_cnn"):
        make_actor_critic(SPACES["vector"], ACTIONS["discrete"], NetworkConfig(kind="nature_cnn"))


def test_the_same_torch_seed_gives_the_same_network():
    def weights(seed):
        torch.manual_seed(seed)
        policy = make_actor_critic(SPACES["vector"], ACTIONS["discrete"], dataclasses.replace(NetworkConfig()))
        return torch.cat([p.flatten() for p in policy.parameters()])

    assert weights(1).equal(weights(1))
    assert not weights(1).equal(weights(2))
