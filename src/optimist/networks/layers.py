"""Layers and encoders: observations of the environment → inputs of a network, MLP, Nature CNN."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TypeVar

import gymnasium as gym
import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d, linear

from optimist.errors import ConfigError


class OneHot(nn.Module):
    """A Discrete observation as a one-hot vector."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.register_buffer("rows", torch.eye(size), persistent=False)
        self.rows: Tensor

    def forward(self, obs: Tensor) -> Tensor:
        """[B] → [B, size]."""
        return self.rows[obs.long()]


class Image(nn.Module):
    """Pixels 0..255 as numbers in [0, 1], or unchanged for a network that scales them itself."""

    as_bytes = False

    def forward(self, obs: Tensor) -> Tensor:
        """[B, C, H, W], divided by 255."""
        return obs if self.as_bytes and obs.dtype == torch.uint8 else obs.float() / 255.0


class Vector(nn.Module):
    """An array of any shape as a vector of float32."""

    def forward(self, obs: Tensor) -> Tensor:
        """[B, …] → [B, D]."""
        return obs.float().reshape(obs.shape[0], math.prod(obs.shape[1:]))


def make_encoder(
    space: gym.Space[object], *, normalize: bool = False
) -> tuple[OneHot | Image | Vector | NormalizedVector, tuple[int, ...]]:
    """The encoder for a single observation space, and the shape it gives."""
    if normalize and not (isinstance(space, gym.spaces.Box) and len(space.shape) == 1):
        raise ConfigError(f"network.normalize_observations needs observations that are vectors, got {space}")
    if isinstance(space, gym.spaces.Discrete) and space.start == 0:
        return OneHot(int(space.n)), (int(space.n),)
    if isinstance(space, gym.spaces.Box) and len(space.shape) == 3 and space.dtype == "uint8":
        return Image(), space.shape
    if isinstance(space, gym.spaces.Box) and (width := math.prod(space.shape)) > 0:
        return NormalizedVector(width) if normalize else Vector(), (width,)
    raise ConfigError(
        f"no network for the observation space {space}; expected Discrete from 0 or a Box: a wrapper, such as "
        "Gymnasium's FlattenObservation, can make it one"
    )


BOUND = 10.0
"""Normalised entries are clipped to ± this (as CleanRL does)."""


class NormalizedVector(nn.Module):
    """A vector as float32, standardised by the mean and variance of all observations of the run so far.

    The statistics are buffers: part of checkpoints and of the final policy. They stand still while steps are collected
    and learned from, and move in between, so that a policy is the same before and after an update begins. As it is the
    network that normalises, rollouts and memories hold raw observations, which do not age.
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(size, dtype=torch.float64))
        self.register_buffer("variance", torch.ones(size, dtype=torch.float64))
        self.register_buffer("count", torch.zeros((), dtype=torch.float64))
        self.mean: Tensor
        self.variance: Tensor
        self.count: Tensor

    def forward(self, obs: Tensor) -> Tensor:
        """[B, D], clipped to ± 10; before the first observation nothing else changes."""
        return ((obs.float() - self.mean.float()) * self.scale).clamp(-BOUND, BOUND)

    @property
    def scale(self) -> Tensor:
        """1/σ, [D]."""
        return (self.variance + 1e-8).rsqrt().float()

    @torch.no_grad()
    def observe(self, obs: Tensor) -> None:
        """Add observations [B, D] to mean and variance (Chan et al., 1979)."""
        rows = obs.double()
        mean, variance = rows.mean(0), rows.var(0, correction=0)
        total = self.count + len(rows)
        shift = mean - self.mean
        self.variance.copy_(
            (self.variance * self.count + variance * len(rows)) / total
            + shift.square() * self.count * len(rows) / total.square()
        )
        self.mean.add_(shift * len(rows) / total)
        self.count.copy_(total)


ACTIVATIONS = {"tanh": torch.tanh, "relu": torch.relu}


class MLP(nn.ModuleList):
    """Linear or noisy layers with an activation between them, and after the last one if asked."""

    def __init__(
        self, layers: Sequence[nn.Linear] | Sequence[NoisyLinear], activation: str, *, activated: bool = False
    ) -> None:
        super().__init__(layers)
        self._noisy = [layer if isinstance(layer, NoisyLinear) else None for layer in layers]
        self.weights = [(layer.weight, layer.bias) for layer in layers]  # found without a module's detours
        self.activation = activation
        self._activation, self._last = ACTIVATIONS[activation], len(layers) if activated else len(layers) - 1

    def forward(self, inputs: Tensor, noise: list[Noise] | None = None) -> Tensor:
        """[B, in] → [B, out]; noisy layers take their noise from `noise`, in order."""
        for index, (weight, bias) in enumerate(self.weights):
            noisy = None if noise is None else self._noisy[index]
            if noisy is None or noise is None:
                inputs = linear(inputs, weight, bias)
            else:
                inputs = noisy.forward(inputs, noise.pop(0))
            if index < self._last:
                inputs = self._activation(inputs)
        return inputs


def make_mlp(sizes: Sequence[int], activation: str, *, orthogonal_init: bool, out_gain: float | None) -> MLP:
    """Linear layers of these widths; `out_gain`: of the last one, None keeps PyTorch's initialisation."""
    layers = [nn.Linear(fan_in, fan_out) for fan_in, fan_out in pairwise(sizes)]
    if orthogonal_init:
        gains = [*[2**0.5] * (len(layers) - 1), out_gain]
        layers = [layer if gain is None else orthogonal(layer, gain) for layer, gain in zip(layers, gains, strict=True)]
    return MLP(layers, activation)


Noise = tuple[Tensor, Tensor]
"""f(ε) of a layer's inputs [B or 1, in] and outputs [B or 1, out]."""


class NoisyLinear(nn.Module):
    """y = (μ_w + σ_w ⊙ f(ε_out) f(ε_in)ᵀ) x + μ_b + σ_b ⊙ f(ε_out) (Fortunato et al., 2018, factorised).

    The noise is an argument, so a resume needs no state of it. Without noise the layer uses its mean weights.
    """

    def __init__(self, fan_in: int, fan_out: int, sigma: float) -> None:
        super().__init__()
        bound = fan_in**-0.5
        self.weight = nn.Parameter(torch.empty(fan_out, fan_in).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(fan_out).uniform_(-bound, bound))
        self.weight_sigma = nn.Parameter(torch.full((fan_out, fan_in), sigma * bound))
        self.bias_sigma = nn.Parameter(torch.full((fan_out,), sigma * bound))

    def forward(self, inputs: Tensor, noise: Noise | None = None) -> Tensor:
        """[B, in] → [B, out], with the same noise for all rows or separate noise for each.

        In the second case no noisy weights are made: the noise has rank one, so σ_w ⊙ (u vᵀ) x is u ⊙ (σ_w (v ⊙ x)).
        """
        if noise is None:
            return linear(inputs, self.weight, self.bias)
        noise_in, noise_out = noise
        if len(noise_in) == 1:
            weight = torch.addcmul(self.weight, self.weight_sigma, noise_out.T * noise_in)
            return linear(inputs, weight, torch.addcmul(self.bias, self.bias_sigma, noise_out[0]))
        mean = linear(inputs, self.weight, self.bias)
        return torch.addcmul(mean, linear(inputs * noise_in, self.weight_sigma, self.bias_sigma), noise_out)


def draw_noise(layers: list[NoisyLinear], generator: torch.Generator | None, rows: int = 1) -> list[Noise]:
    """Fresh noise for each layer; one for all rows, or for each of `rows`."""
    return shape_noise(layers, draw_normal(layers, generator, rows))


def draw_normal(layers: list[NoisyLinear], generator: torch.Generator | None, rows: int) -> Tensor:
    """The normal numbers behind the layers' noise, concatenated, [rows, …]."""
    return torch.empty(rows, sum(_sizes(layers)), device=layers[0].weight.device).normal_(generator=generator)


def shape_noise(layers: list[NoisyLinear], normal: Tensor) -> list[Noise]:
    """Each layer's noise, f(x) = sign(x) √|x| of normal numbers."""
    pieces = (normal.sign() * normal.abs().sqrt()).split(_sizes(layers), dim=1)  # type: ignore[no-untyped-call]
    return list(zip(pieces[::2], pieces[1::2], strict=True))


def _sizes(layers: list[NoisyLinear]) -> list[int]:
    return [size for layer in layers for size in (layer.weight.shape[1], layer.weight.shape[0])]


SMALLEST = 36  # pixels that the three convolutions need


class NatureCNN(nn.Sequential):
    """The layers one after the other, computed in bfloat16 if asked for."""

    in_bfloat16 = False

    def forward(self, images: Tensor) -> Tensor:
        """Bytes [B, C, H, W] → [B, features] in float32."""
        with torch.autocast(images.device.type, torch.bfloat16, enabled=self.in_bfloat16, cache_enabled=False):
            features: Tensor = super().forward(images)  # type: ignore[no-untyped-call]
        return features.float()


def make_nature_cnn(
    shape: tuple[int, ...], features: int, precision: str = "float32", *, orthogonal_init: bool = True
) -> NatureCNN:
    """32 × 8×8/4, 64 × 4×4/2, 64 × 3×3/1, linear; ReLU after each; initialised orthogonally (√2), or by PyTorch."""
    if len(shape) != 3 or min(shape[1:]) < SMALLEST:
        raise ConfigError(
            f"nature_cnn sees images [channels, height, width] of at least {SMALLEST} × {SMALLEST}, "
            f"got {list(shape)}; a wrapper can put channels first"
        )

    def begun(layer: Layer) -> Layer:
        return orthogonal(layer, 2**0.5) if orthogonal_init else layer

    convolutions = nn.Sequential(
        begun(PixelConv2d(shape[0], 32)),
        nn.ReLU(),
        begun(nn.Conv2d(32, 64, 4, 2)),
        nn.ReLU(),
        begun(nn.Conv2d(64, 64, 3, 1)),
        nn.ReLU(),
        nn.Flatten(),
    )
    with torch.no_grad():
        width = convolutions(torch.zeros(1, *shape)).shape[1]
    trunk = NatureCNN(*convolutions, begun(nn.Linear(width, features)), nn.ReLU())
    trunk.in_bfloat16 = precision == "bfloat16"
    return trunk


BLOCK = 4
"""Pixels of a block in both directions: the stride of the convolution, and a whole word of bytes."""
WHITE = 255.0


class PixelConv2d(nn.Conv2d):
    """8 × 8 pixels at a stride of 4, of images of bytes 0..255 that count as 0..1.

    On a GPU the image is cut into blocks of 4 × 4 pixels that become channels, 16 for each. What is left is a
    convolution of 2 × 2 blocks at a stride of 1: the same sums, for which there are faster kernels than for images of
    four channels. The pixels are whole numbers there, and the weights are scaled.
    """

    def __init__(self, channels: int, features: int) -> None:
        super().__init__(channels, features, 2 * BLOCK, BLOCK)

    def forward(self, images: Tensor) -> Tensor:
        """[B, C, H, W] → [B, features, (H − 4) / 4, (W − 4) / 4]; inputs other than bytes are scaled already."""
        if images.dtype != torch.uint8:
            return super().forward(images)
        if images.is_cuda and images.shape[2] % BLOCK == images.shape[3] % BLOCK == 0:
            return self.by_blocks(images)
        return super().forward(images.float() / WHITE)

    def by_blocks(self, images: Tensor) -> Tensor:
        """The same of images whose height and width are multiples of 4."""
        batch, channels, height, width = images.shape
        high, wide = height // BLOCK, width // BLOCK
        words = images.contiguous().view(torch.int32).view(batch, channels, high, BLOCK, wide)
        blocks = words.permute(0, 2, 4, 1, 3).contiguous().view(torch.uint8)  # [B, H/4, W/4, C, 16]
        seen = blocks.view(batch, high, wide, -1).permute(0, 3, 1, 2)  # channels last in memory
        weights = self.weight.view(-1, channels, 2, BLOCK, 2, BLOCK).permute(0, 1, 3, 5, 2, 4)
        weights = weights.reshape(len(self.weight), -1, 2, 2).contiguous(memory_format=torch.channels_last) / WHITE
        kind = images.device.type
        precision = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else weights.dtype
        return conv2d(seen.to(precision), weights, self.bias)


Layer = TypeVar("Layer", nn.Linear, nn.Conv2d)


def orthogonal(layer: Layer, gain: float) -> Layer:
    """The same layer with orthogonal weights of this gain and zero bias."""
    nn.init.orthogonal_(layer.weight, gain)
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)
    return layer
