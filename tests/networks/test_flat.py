"""One vector for all parameters, whatever order their numbers lie in."""

from __future__ import annotations

import copy

import torch

from optimist.networks.flat import flatten_parameters
from optimist.networks.nature_cnn import make_nature_cnn


def networks():
    torch.manual_seed(0)
    plain = make_nature_cnn((4, 36, 36), 8)
    last = copy.deepcopy(plain).to(memory_format=torch.channels_last)
    return plain, last


def test_channels_last_keeps_its_order_inside_the_vector():
    plain, last = networks()
    before = {name: tensor.clone() for name, tensor in last.state_dict().items()}
    flat = flatten_parameters(last)
    weight = last[0].weight
    assert weight.is_contiguous(memory_format=torch.channels_last)
    assert weight.grad.is_contiguous(memory_format=torch.channels_last)
    assert weight.data_ptr() == flat.data_ptr()
    for name, tensor in last.state_dict().items():
        assert tensor.equal(before[name])
        assert tensor.equal(plain.state_dict()[name])


def test_gradients_arrive_in_the_vector_and_move_the_network_alike():
    plain, last = networks()
    images = torch.rand(3, 4, 36, 36)
    after = []
    for network in (plain, last):
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


def test_bfloat16_stays_close_and_gives_float32():
    plain, _ = networks()
    half = make_nature_cnn((4, 36, 36), 8, "bfloat16")
    half.load_state_dict(plain.state_dict())
    images = torch.rand(3, 4, 36, 36)
    found = half(images)
    assert found.dtype == torch.float32
    assert not found.equal(plain(images))
    torch.testing.assert_close(found, plain(images), rtol=5e-2, atol=5e-2)
