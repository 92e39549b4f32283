"""All parameters of a network as one vector: clipping and the optimiser then cost one operation, not one a layer."""

from __future__ import annotations

import torch
from torch import nn


def flatten_parameters(network: nn.Module) -> nn.Parameter:
    """A vector that shares memory with every parameter of `network`, and its gradient with every gradient.

    Names, shapes and `state_dict` of the network stay as they are. Move it to its device before, not after.
    """
    parameters = list(network.parameters())
    flat = nn.Parameter(torch.cat([parameter.detach().flatten() for parameter in parameters]))
    flat.grad = torch.zeros_like(flat)
    begin = 0
    for parameter in parameters:
        end = begin + parameter.numel()
        parameter.data = flat.data[begin:end].view_as(parameter)
        parameter.grad = flat.grad[begin:end].view_as(parameter)
        begin = end
    return flat
