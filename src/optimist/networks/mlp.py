"""A multilayer perceptron."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from optimist.networks.initialize import orthogonal

ACTIVATIONS = {"tanh": torch.tanh, "relu": torch.relu}


class MLP(nn.ModuleList):
    """Linear layers with an activation between them and none at the end."""

    def __init__(self, sizes: Sequence[int], activation: str, *, orthogonal_init: bool, out_gain: float | None) -> None:
        """`out_gain`: of the last layer; None leaves it as PyTorch makes it."""
        layers = [nn.Linear(fan_in, fan_out) for fan_in, fan_out in pairwise(sizes)]
        if orthogonal_init:
            hidden, last = [orthogonal(layer, 2**0.5) for layer in layers[:-1]], layers[-1]
            layers = [*hidden, last if out_gain is None else orthogonal(last, out_gain)]
        super().__init__(layers)
        self._layers = layers  # as linear layers, for the types' sake
        self.activation = activation
        self._activation = ACTIVATIONS[activation]

    def forward(self, inputs: Tensor) -> Tensor:
        """[B, in] → [B, out]; layers are applied without the cost of calling a module, which small nets feel."""
        for layer in self._layers[:-1]:
            inputs = self._activation(linear(inputs, layer.weight, layer.bias))
        return linear(inputs, self._layers[-1].weight, self._layers[-1].bias)
