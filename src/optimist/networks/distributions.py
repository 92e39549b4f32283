"""Distributions over actions, as functions of the network's output: sample, log_prob, entropy, mode."""

from __future__ import annotations

import math

import gymnasium as gym
import numpy as np
import torch
from torch import Tensor, nn

from optimist.errors import ConfigError


class Categorical(nn.Module):
    """One of A actions; params are logits."""

    def __init__(self, num_actions: int) -> None:
        super().__init__()
        self.num_params = num_actions

    def sample(self, params: Tensor, generator: torch.Generator | None) -> Tensor:
        """Chosen by fresh noise."""
        return self.choose(params, torch.empty_like(params).exponential_(generator=generator))

    def choose(self, params: Tensor, noise: Tensor) -> Tensor:
        """argmax of logits + Gumbel noise, made of exponential `noise` [B, A], is a sample."""
        return (params - noise.log()).argmax(-1)

    def log_prob(self, params: Tensor, actions: Tensor) -> Tensor:
        """log softmax at the action."""
        return params.log_softmax(-1).gather(-1, actions.long().unsqueeze(-1)).squeeze(-1)

    def log_prob_and_entropy(self, params: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Both from one log softmax."""
        logp = params.log_softmax(-1)
        entropy = -(logp.exp() * logp).sum(-1)
        return logp.gather(-1, actions.long().unsqueeze(-1)).squeeze(-1), entropy

    def mode(self, params: Tensor) -> Tensor:
        """argmax."""
        return params.argmax(-1)


class MultiCategorical(nn.Module):
    """Several independent choices (MultiDiscrete); params are their concatenated logits."""

    def __init__(self, sizes: list[int]) -> None:
        super().__init__()
        self.num_params, self.sizes = sum(sizes), sizes
        self.parts = [Categorical(size) for size in sizes]

    def sample(self, params: Tensor, generator: torch.Generator | None) -> Tensor:
        """One choice each, [B, parts]."""
        split = zip(self.parts, params.split_with_sizes(self.sizes, -1), strict=True)
        return torch.stack([part.sample(logits, generator) for part, logits in split], -1)

    def log_prob(self, params: Tensor, actions: Tensor) -> Tensor:
        """Sum over the choices."""
        return self.log_prob_and_entropy(params, actions)[0]

    def log_prob_and_entropy(self, params: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
        """Sums over the choices."""
        split = zip(self.parts, params.split_with_sizes(self.sizes, -1), actions.unbind(-1), strict=True)
        both = [part.log_prob_and_entropy(logits, choice) for part, logits, choice in split]
        return torch.stack([b[0] for b in both]).sum(0), torch.stack([b[1] for b in both]).sum(0)

    def mode(self, params: Tensor) -> Tensor:
        """argmax of each choice."""
        return torch.stack([logits.argmax(-1) for logits in params.split_with_sizes(self.sizes, -1)], -1)


class DiagonalGaussian(nn.Module):
    """A real vector; params are the mean, log σ is a free parameter. The environment's bounds clip outside."""

    def __init__(self, size: int, log_std: float) -> None:
        super().__init__()
        self.num_params = size
        self.log_std = nn.Parameter(torch.full((size,), log_std))

    def sample(self, params: Tensor, generator: torch.Generator | None) -> Tensor:
        """mean + σ · noise."""
        noise = torch.empty_like(params).normal_(generator=generator)
        return params + self.log_std.exp() * noise

    def log_prob(self, params: Tensor, actions: Tensor) -> Tensor:
        """Sum of the normal log-densities."""
        scaled = (actions - params) * (-self.log_std).exp()
        return -(0.5 * scaled.square() + self.log_std + 0.5 * math.log(2 * math.pi)).sum(-1)

    def log_prob_and_entropy(self, params: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
        """The entropy depends on σ alone."""
        entropy = (self.log_std + 0.5 * math.log(2 * math.pi * math.e)).sum().expand(len(params))
        return self.log_prob(params, actions), entropy

    def mode(self, params: Tensor) -> Tensor:
        """The mean."""
        return params


def make_action_head(space: gym.Space[object], log_std: float) -> Categorical | MultiCategorical | DiagonalGaussian:
    """The distribution for a single action space."""
    if isinstance(space, gym.spaces.Discrete) and space.start == 0:
        return Categorical(int(space.n))
    if isinstance(space, gym.spaces.MultiDiscrete) and space.nvec.ndim == 1 and not space.start.any():
        return MultiCategorical([int(n) for n in space.nvec])
    if isinstance(space, gym.spaces.Box) and len(space.shape) == 1 and np.issubdtype(space.dtype, np.floating):
        return DiagonalGaussian(space.shape[0], log_std)
    raise ConfigError(
        f"no policy for the action space {space}; expected Discrete or MultiDiscrete from 0, or a Box [n] of floats"
    )
