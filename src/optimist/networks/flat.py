"""All parameters of a network as one vector, so that clipping and the optimiser take one operation each."""

from __future__ import annotations

import torch
from torch import Tensor, nn


def flatten_parameters(network: nn.Module) -> nn.Parameter:
    """A vector that shares memory with every parameter of `network`, and its gradient with every gradient.

    Names, shapes and `state_dict` of the network do not change. Move it to its device before this call.
    """
    parameters = list(network.parameters())
    flat = nn.Parameter(torch.cat([_in_memory_order(parameter.detach()) for parameter in parameters]))
    flat.grad = torch.zeros_like(flat)
    begin = 0
    for parameter in parameters:
        end = begin + parameter.numel()
        shaped = parameter.detach()
        parameter.data = _shaped_like(shaped, flat.data[begin:end])
        parameter.grad = _shaped_like(shaped, flat.grad[begin:end])
        begin = end
    return flat


def _in_memory_order(tensor: Tensor) -> Tensor:
    return tensor.permute(0, 2, 3, 1).flatten() if _is_channels_last(tensor) else tensor.flatten()


def _shaped_like(tensor: Tensor, vector: Tensor) -> Tensor:
    """A view of the vector with the tensor's shape, and its channels last where the tensor has them there."""
    if not _is_channels_last(tensor):
        return vector.view_as(tensor)
    outputs, channels, height, width = tensor.shape
    return vector.view(outputs, height, width, channels).permute(0, 3, 1, 2)


def _is_channels_last(tensor: Tensor) -> bool:
    return tensor.dim() == 4 and not tensor.is_contiguous() and tensor.is_contiguous(memory_format=torch.channels_last)
