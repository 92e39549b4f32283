"""Observations as the environment gives them → what a network eats."""

from __future__ import annotations

import math

import gymnasium as gym
import torch
from torch import Tensor, nn

from optimist.errors import ConfigError
from optimist.networks.normalize import NormalizedVector


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
    """Pixels 0..255 as numbers in [0, 1], or as they are for a network that scales them itself."""

    as_bytes = False

    def forward(self, obs: Tensor) -> Tensor:
        """[B, C, H, W], divided by 255."""
        return obs if self.as_bytes and obs.dtype == torch.uint8 else obs.float() / 255.0


class Vector(nn.Module):
    """A vector as float32."""

    def forward(self, obs: Tensor) -> Tensor:
        """[B, D]."""
        return obs.float()


class Flattened(nn.Module):
    """An array of any shape as a vector of float32."""

    def forward(self, obs: Tensor) -> Tensor:
        """[B, …] → [B, D]."""
        return obs.float().reshape(len(obs), -1)


def make_encoder(
    space: gym.Space[object], *, normalize: bool = False
) -> tuple[OneHot | Image | Vector | NormalizedVector | Flattened, tuple[int, ...]]:
    """The encoder for a single observation space, and the shape it gives."""
    if normalize and not (isinstance(space, gym.spaces.Box) and len(space.shape) == 1):
        raise ConfigError(f"network.normalize_observations needs observations that are vectors, got {space}")
    if isinstance(space, gym.spaces.Discrete):
        if space.start != 0:
            raise ConfigError(f"Discrete observations must start at 0, got {space}; shift them with a wrapper")
        return OneHot(int(space.n)), (int(space.n),)
    if isinstance(space, gym.spaces.Box) and len(space.shape) == 3 and space.dtype == "uint8":
        return Image(), space.shape
    if isinstance(space, gym.spaces.Box) and len(space.shape) == 1:
        return NormalizedVector(space.shape[0]) if normalize else Vector(), space.shape
    if isinstance(space, gym.spaces.Box):
        return Flattened(), (math.prod(space.shape),)
    raise ConfigError(f"no network for the observation space {space}; expected Discrete or a Box")
