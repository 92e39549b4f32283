"""Layers: encoders, the MLP, the Nature CNN, and its first convolution by blocks."""

from __future__ import annotations

import copy

import gymnasium as gym
import numpy as np
import pytest
import torch

from optimist.config import NetworkConfig
from optimist.errors import ConfigError
from optimist.networks.actor_critic import make_actor_critic
from optimist.networks.layers import Image, OneHot, PixelConv2d, Vector, make_encoder, make_mlp, make_nature_cnn


def images(*shape, seed=0):
    return torch.randint(0, 256, shape, dtype=torch.uint8, generator=torch.Generator().manual_seed(seed))


def make(channels, *, channels_last=False):
    torch.manual_seed(1)
    layer = PixelConv2d(channels, 32)
    return layer.to(memory_format=torch.channels_last) if channels_last else layer


@pytest.mark.parametrize("shape", [(), (3, 2), (2, 3, 2)])
def test_an_array_of_any_shape_is_flattened(shape):
    space = gym.spaces.Box(0.0, 1.0, shape)
    encoder, (width,) = make_encoder(space)
    obs = torch.rand(5, *shape)
    assert encoder(obs).equal(obs.reshape(5, width))
    policy = make_actor_critic(space, gym.spaces.Discrete(3), NetworkConfig(hidden=(4,)))
    assert policy.value(obs).shape == (5,)


@pytest.mark.parametrize(("word", "kind"), [("tanh", torch.nn.Tanh), ("relu", torch.nn.ReLU)])
def test_the_mlp_equals_a_sequence_of_its_layers_with_no_activation_at_the_end(word, kind):
    first, second, third = mlp = make_mlp((3, 8, 4, 2), word, orthogonal_init=True, out_gain=1.0)
    sequence = torch.nn.Sequential(first, kind(), second, kind(), third)
    inputs = torch.randn(5, 3)
    assert mlp(inputs).equal(sequence(inputs))
    assert [layer.out_features for layer in mlp] == [8, 4, 2]


def test_a_copy_of_an_mlp_shares_no_weights():
    mlp = make_mlp((3, 4, 2), "tanh", orthogonal_init=True, out_gain=1.0)
    copied, inputs = copy.deepcopy(mlp), torch.randn(5, 3)
    before = copied(inputs)
    torch.nn.init.zeros_(mlp[0].weight)
    assert copied(inputs).equal(before)
    assert not mlp(inputs).equal(before)


def test_encoders_by_hand():
    encoder, shape = make_encoder(gym.spaces.Discrete(3))
    assert isinstance(encoder, OneHot)
    assert (shape, encoder(torch.tensor([2, 0])).tolist()) == ((3,), [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
    encoder, shape = make_encoder(gym.spaces.Box(0, 255, (4, 84, 84), np.uint8))
    assert isinstance(encoder, Image)
    assert encoder(torch.tensor([0, 51, 255], dtype=torch.uint8)).tolist() == pytest.approx([0.0, 0.2, 1.0])
    encoder, _ = make_encoder(gym.spaces.Box(-1, 1, (2,), np.float64))
    assert isinstance(encoder, Vector)
    assert encoder(torch.ones(1, 2, dtype=torch.float64)).dtype == torch.float32


@pytest.mark.parametrize("shape", [(4,), (84, 84, 4), (4, 20, 20), (4, 84, 30)])
def test_the_nature_cnn_refuses_other_image_shapes(shape):
    with pytest.raises(ConfigError, match=r"nature_cnn.*\[channels, height, width\]"):
        make_nature_cnn(shape, 8)


@pytest.mark.parametrize("shape", [(3, 4, 84, 84), (2, 1, 36, 40), (1, 3, 8, 12)])
@pytest.mark.parametrize("channels_last", [False, True])
def test_a_convolution_by_blocks_has_the_same_outputs_and_gradients(shape, channels_last):
    layer, seen = make(shape[1], channels_last=channels_last), images(*shape)
    found = []
    for convolve in (layer, layer.by_blocks):
        layer.zero_grad()
        out = convolve(seen)
        out.sin().sum().backward()
        found.append((out.detach(), layer.weight.grad.clone(), layer.bias.grad.clone()))
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


def test_byte_images_are_divided_by_255_and_floats_are_not():
    layer, seen = make(4), images(2, 4, 36, 36)
    torch.testing.assert_close(layer(seen), layer(seen.float() / 255.0))
    white = layer(torch.full((1, 4, 36, 36), 255, dtype=torch.uint8))
    torch.testing.assert_close(white, layer(torch.ones(1, 4, 36, 36)))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("shape", [(5, 4, 84, 84), (2, 4, 38, 36), (2, 4, 36, 38)])
def test_a_gpu_gives_the_outputs_of_a_cpu(shape):
    layer, seen = make(4, channels_last=True), images(*shape)
    expected = layer(seen)
    found = layer.cuda()(seen.cuda()).cpu()
    torch.testing.assert_close(found, expected, rtol=3e-3, atol=3e-3)  # TF32
    with torch.autocast("cuda", torch.bfloat16):
        found = layer(seen.cuda())
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found.float().cpu(), expected, rtol=3e-2, atol=3e-2)
