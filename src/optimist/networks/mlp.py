"""A multilayer perceptron."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from torch import nn

from optimist.networks.initialize import orthogonal

ACTIVATIONS = {"tanh": nn.Tanh, "relu": nn.ReLU}


def make_mlp(sizes: Sequence[int], activation: str, *, orthogonal_init: bool, out_gain: float) -> nn.Sequential:
    """Linear layers of these sizes, an activation between them, none at the end."""
    layers: list[nn.Module] = []
    last = len(sizes) - 2
    for i, (fan_in, fan_out) in enumerate(pairwise(sizes)):
        linear = nn.Linear(fan_in, fan_out)
        layers.append(orthogonal(linear, out_gain if i == last else 2**0.5) if orthogonal_init else linear)
        if i < last:
            layers.append(ACTIVATIONS[activation]())
    return nn.Sequential(*layers)
