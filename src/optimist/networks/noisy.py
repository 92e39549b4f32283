"""NoisyLinear: a linear layer that explores by noise on its weights, learnt with them."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

Noise = tuple[Tensor, Tensor]
"""f(ε) of a layer's inputs [in] and outputs [out]."""


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
        """[B, in] → [B, out], the same noise for all rows."""
        if noise is None:
            return linear(inputs, self.weight, self.bias)
        noise_in, noise_out = noise
        weight = torch.addcmul(self.weight, self.weight_sigma, torch.outer(noise_out, noise_in))
        return linear(inputs, weight, torch.addcmul(self.bias, self.bias_sigma, noise_out))

    def draw(self, generator: torch.Generator | None) -> Noise:
        """Fresh noise, f(x) = sign(x) √|x| of normal numbers."""
        fan_out, fan_in = self.weight.shape
        normal = torch.empty(fan_in + fan_out, device=self.weight.device).normal_(generator=generator)
        scaled = normal.sign() * normal.abs().sqrt()
        return scaled[:fan_in], scaled[fan_in:]
