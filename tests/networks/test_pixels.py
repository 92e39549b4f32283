"""The first convolution: by blocks it is the same one."""

from __future__ import annotations

import pytest
import torch

from optimist.networks.pixels import PixelConv2d


def images(*shape, seed=0):
    return torch.randint(0, 256, shape, dtype=torch.uint8, generator=torch.Generator().manual_seed(seed))


def make(channels, *, channels_last=False):
    torch.manual_seed(1)
    layer = PixelConv2d(channels, 32)
    return layer.to(memory_format=torch.channels_last) if channels_last else layer


@pytest.mark.parametrize("shape", [(3, 4, 84, 84), (2, 1, 36, 40), (1, 3, 8, 12)])
@pytest.mark.parametrize("channels_last", [False, True])
def test_blocks_give_the_same_numbers_and_gradients(shape, channels_last):
    layer, seen = make(shape[1], channels_last=channels_last), images(*shape)
    found = []
    for convolve in (layer, layer.by_blocks):
        layer.zero_grad()
        out = convolve(seen)
        out.sin().sum().backward()
        found.append((out.detach(), layer.weight.grad.clone(), layer.bias.grad.clone()))
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


def test_bytes_count_as_parts_of_white_and_other_numbers_as_they_are():
    layer, seen = make(4), images(2, 4, 36, 36)
    torch.testing.assert_close(layer(seen), layer(seen.float() / 255.0))
    white = layer(torch.full((1, 4, 36, 36), 255, dtype=torch.uint8))
    torch.testing.assert_close(white, layer(torch.ones(1, 4, 36, 36)))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("shape", [(5, 4, 84, 84), (2, 4, 38, 36), (2, 4, 36, 38)])
def test_a_gpu_gives_the_numbers_of_a_cpu(shape):
    layer, seen = make(4, channels_last=True), images(*shape)
    expected = layer(seen)
    found = layer.cuda()(seen.cuda()).cpu()
    torch.testing.assert_close(found, expected, rtol=3e-3, atol=3e-3)  # TF32
    with torch.autocast("cuda", torch.bfloat16):
        found = layer(seen.cuda())
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found.float().cpu(), expected, rtol=3e-2, atol=3e-2)
