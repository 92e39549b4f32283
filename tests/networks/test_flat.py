"""All parameters of a network in one vector, for any memory format."""

from __future__ import annotations

import copy

import torch

from optimist.networks.flat import flatten_parameters
from optimist.networks.layers import make_nature_cnn


def networks():
    torch.manual_seed(0)
    plain = make_nature_cnn((4, 36, 36), 8)
    channels_last = copy.deepcopy(plain).to(memory_format=torch.channels_last)
    return plain, channels_last


def test_channels_last_weights_keep_their_memory_order():
    plain, channels_last = networks()
    before = {name: tensor.clone() for name, tensor in channels_last.state_dict().items()}
    flat = flatten_parameters(channels_last)
    weight = channels_last[0].weight
    assert weight.is_contiguous(memory_format=torch.channels_last)
    assert weight.grad.is_contiguous(memory_format=torch.channels_last)
    assert weight.data_ptr() == flat.data_ptr()
    for name, tensor in channels_last.state_dict().items():
        assert tensor.equal(before[name])
        assert tensor.equal(plain.state_dict()[name])


def test_gradient_steps_on_the_vector_train_the_network_in_both_formats():
    plain, channels_last = networks()
    images = torch.rand(3, 4, 36, 36)
    after = []
    for network in (plain, channels_last):
        flat = flatten_parameters(network)
        optimizer = torch.optim.SGD([flat], lr=1e-2)
        for _ in range(3):
            flat.grad.zero_()
            network(images).square().mean().backward()
            assert (flat.grad != 0).float().mean() > 0.1
            optimizer.step()
        after.append(network.state_dict())
    for name, tensor in after[0].items():
        torch.testing.assert_close(tensor, after[1][name], rtol=1e-3, atol=1e-4)


def test_a_bfloat16_network_is_close_to_float32_and_returns_float32():
    plain, _ = networks()
    half = make_nature_cnn((4, 36, 36), 8, "bfloat16")
    half.load_state_dict(plain.state_dict())
    images = torch.rand(3, 4, 36, 36)
    found = half(images)
    assert found.dtype == torch.float32
    assert not found.equal(plain(images))
    torch.testing.assert_close(found, plain(images), rtol=5e-2, atol=5e-2)
