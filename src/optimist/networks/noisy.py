"""NoisyLinear: a linear layer that explores by noise on its weights, learnt with them."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

Noise = tuple[Tensor, Tensor]
"""f(ε) of a layer's inputs [B or 1, in] and outputs [B or 1, out]."""


class NoisyLinear(nn.Module):
    """y = (μ_w + σ_w ⊙ f(ε_out) f(ε_in)ᵀ) x + μ_b + σ_b ⊙ f(ε_out) (Fortunato et al., 2018, factorised).

    The noise is handed over, not kept: nothing here has to survive a resume. Without noise the layer is its mean.
    """

    def __init__(self, fan_in: int, fan_out: int, sigma: float) -> None:
        super().__init__()
        bound = fan_in**-0.5
        self.weight = nn.Parameter(torch.empty(fan_out, fan_in).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(fan_out).uniform_(-bound, bound))
        self.weight_sigma = nn.Parameter(torch.full((fan_out, fan_in), sigma * bound))
        self.bias_sigma = nn.Parameter(torch.full((fan_out,), sigma * bound))

    def forward(self, inputs: Tensor, noise: Noise | None = None) -> Tensor:
        """[B, in] → [B, out], with the same noise for all rows or of each row's own.

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
    """The normal numbers that the layers' noise is made of, side by side, [rows, …]."""
    return torch.empty(rows, sum(_sizes(layers)), device=layers[0].weight.device).normal_(generator=generator)


def shape_noise(layers: list[NoisyLinear], normal: Tensor) -> list[Noise]:
    """Each layer's noise, f(x) = sign(x) √|x| of normal numbers."""
    pieces = (normal.sign() * normal.abs().sqrt()).split(_sizes(layers), dim=1)  # type: ignore[no-untyped-call]
    return list(zip(pieces[::2], pieces[1::2], strict=True))


def _sizes(layers: list[NoisyLinear]) -> list[int]:
    return [size for layer in layers for size in (layer.weight.shape[1], layer.weight.shape[0])]
