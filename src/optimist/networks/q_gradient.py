"""The gradient of an MLP's Q-values, written out: what autograd finds, for less where networks are small."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import linear

from optimist.networks.q_network import Layers, QNetwork


class MLPGradient:
    """Forward and backward through a plain Q-network: an MLP with one stream, without noise or distribution."""

    def __init__(self, network: QNetwork) -> None:
        self.network = network
        body = network.body.weights if isinstance(network.body, Layers) else []
        self.weights = [*body, *network.advantage_stream.weights]
        self.activation = network.advantage_stream.activation
        self.inputs: list[Tensor] = []  # of each layer, from the last forward

    @staticmethod
    def fits(network: QNetwork) -> bool:
        """Whether the network is plain enough."""
        plain = network.value_stream is None and not network.is_noisy and network.num_atoms == 1
        return plain and (network.body is None or isinstance(network.body, Layers))

    def forward(self, obs: Tensor) -> Tensor:
        """Q(s, ·), [B, A]; what `backward` needs is remembered. To be called, as `backward`, without a graph."""
        layer: Tensor = self.network.encoder.forward(obs)
        self.inputs = []
        activate = torch.relu if self.activation == "relu" else torch.tanh
        last = len(self.weights) - 1
        for index, (weight, bias) in enumerate(self.weights):
            self.inputs.append(layer)
            layer = linear(layer, weight, bias)
            if index < last:
                layer = activate(layer)
        return layer

    def backward(self, gradient: Tensor) -> None:
        """∂L/∂Q [B, A] → every parameter's gradient, in the place of the one before."""
        for (weight, bias), inputs in zip(reversed(self.weights), reversed(self.inputs), strict=True):
            torch.mm(gradient.t(), inputs, out=weight.grad)
            torch.sum(gradient, 0, out=bias.grad)
            if inputs is not self.inputs[0]:
                gradient = torch.mm(gradient, weight)
                gradient.mul_(inputs > 0 if self.activation == "relu" else 1.0 - inputs.square())
