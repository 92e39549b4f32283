"""ActorCritic: π_θ and V in one module."""

from __future__ import annotations

import math
from collections.abc import Sequence

import gymnasium as gym
import torch
from torch import Tensor, nn

from optimist.config import NetworkConfig
from optimist.errors import ConfigError
from optimist.networks.distributions import Categorical, DiagonalGaussian, MultiCategorical, make_action_head
from optimist.networks.layers import Image, NormalizedVector, make_encoder, make_mlp, make_nature_cnn, orthogonal
from optimist.networks.policy import PolicyNetwork


class ActorCritic(PolicyNetwork):
    """An encoder and a trunk shared by an actor (action parameters) and a critic (value)."""

    def __init__(
        self,
        encoder: nn.Module,
        trunk: nn.Module | None,
        actor: nn.Module,
        critic: nn.Module,
        head: Categorical | MultiCategorical | DiagonalGaussian,
    ) -> None:
        super().__init__()
        self.encoder, self.trunk, self.actor, self.critic, self.head = encoder, trunk, actor, critic, head

    @torch.no_grad()
    def act(self, obs: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """A sampled action per row."""
        return self.head.sample(self.actor(self.features(obs)), generator)

    def sample_noise(self, num_rows: int, generator: torch.Generator) -> tuple[Tensor, ...]:
        """Exponential noise for a categorical distribution, [num_rows, A]."""
        noise = torch.empty(num_rows, self.head.num_params, device=generator.device)
        return (noise.exponential_(generator=generator),)

    @torch.no_grad()
    def act_with_noise(self, obs: Tensor, noise: Sequence[Tensor]) -> Tensor:
        """The action per row that this noise selects."""
        if not isinstance(self.head, Categorical):
            raise NotImplementedError(f"{type(self.head).__name__} cannot sample action noise ahead of time: use act")
        return self.head.choose(self.actor(self.features(obs)), *noise)

    @torch.no_grad()
    def act_greedily(self, obs: Tensor) -> Tensor:
        """The most probable action per row."""
        return self.head.mode(self.actor(self.features(obs)))

    def observe(self, obs: Tensor) -> None:
        """Update the encoder's running mean and variance, if it has them."""
        if isinstance(self.encoder, NormalizedVector):
            self.encoder.observe(obs)

    def evaluate(self, obs: Tensor, actions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """log π_θ(a|s), the entropy of π_θ(·|s) and V(s), each [B]."""
        features = self.features(obs)
        logp, entropy = self.head.log_prob_and_entropy(self.actor(features), actions)
        return logp, entropy, self.critic(features).squeeze(-1)

    def log_prob(self, obs: Tensor, actions: Tensor) -> Tensor:
        """log π_θ(a|s), [B]."""
        return self.head.log_prob(self.actor(self.features(obs)), actions)

    def action_params(self, obs: Tensor) -> Tensor:
        """The actor's output for each row, [B, num_params]."""
        params: Tensor = self.actor(self.features(obs))
        return params

    def value(self, obs: Tensor) -> Tensor:
        """V(s), [B]."""
        value: Tensor = self.critic(self.features(obs)).squeeze(-1)
        return value

    def features(self, obs: Tensor) -> Tensor:
        """The features that actor and critic share."""
        features: Tensor = self.encoder(obs)
        return features if self.trunk is None else self.trunk(features)


class QActorCritic(ActorCritic):
    """An actor and a critic of actions, Q(s, ·); V(s) = Σ_a π(a|s) Q(s, a)."""

    head: Categorical

    def all_actions(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        """log π_θ(·|s) and Q(s, ·), each [B, A]."""
        features = self.features(obs)
        log_probabilities: Tensor = self.actor(features).log_softmax(-1)
        return log_probabilities, self.critic(features)

    def evaluate(self, obs: Tensor, actions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """log π_θ(a|s), the entropy of π_θ(·|s) and V(s), each [B]; a loss of V trains the critic alone."""
        logp, q = self.all_actions(obs)
        taken = logp.gather(-1, actions.long().unsqueeze(-1)).squeeze(-1)
        return taken, -(logp.exp() * logp).sum(-1), (logp.detach().exp() * q).sum(-1)

    def value(self, obs: Tensor) -> Tensor:
        """V(s), [B]."""
        logp, q = self.all_actions(obs)
        return (logp.detach().exp() * q).sum(-1)


def as_actor_critic(policy: PolicyNetwork, purpose: str) -> ActorCritic:
    """The policy, if it has an actor; `purpose` needs one."""
    if not isinstance(policy, ActorCritic):
        raise ConfigError(f"{purpose} needs a policy with an actor; a {type(policy).__name__} has none")
    return policy


def make_actor_critic(
    observation_space: gym.Space[object],
    action_space: gym.Space[object],
    config: NetworkConfig,
    *,
    q_critic: bool = False,
) -> ActorCritic:
    """The network that the config describes for these (single) spaces; `q_critic`: its critic values every action."""
    if config.normalize_observations and config.action_mask:
        raise ConfigError("network.normalize_observations would normalise the mask too; switch one of the two off")
    encoder, shape = make_encoder(observation_space, normalize=config.normalize_observations)
    head = make_action_head(action_space, config.log_std)
    made, values = (QActorCritic, head.num_params) if q_critic else (ActorCritic, 1)
    orthogonal_init, plain_heads = config.initialization != "default", config.initialization != "orthogonal"
    if config.kind == "nature_cnn" or (config.kind == "auto" and len(shape) == 3):
        if config.action_mask or config.privileged:
            raise ConfigError("network.action_mask and network.privileged need observations that are vectors")
        actor, critic = nn.Linear(config.cnn_features, head.num_params), nn.Linear(config.cnn_features, values)
        if not plain_heads:
            actor, critic = orthogonal(actor, 0.01), orthogonal(critic, 1.0)
        images = make_nature_cnn(shape, config.cnn_features, config.cnn_precision, orthogonal_init=orthogonal_init)
        if isinstance(encoder, Image):
            encoder.as_bytes = True  # the first convolution scales them
        return made(encoder, images, actor, critic, head)
    trunk = nn.Flatten() if len(shape) > 1 else None
    width = math.prod(shape)
    if config.action_mask and not isinstance(head, Categorical):
        raise ConfigError("network.action_mask needs one choice among several actions (a Discrete action space)")
    masked = head.num_params if config.action_mask else 0
    visible = width - config.privileged  # inputs that the actor sees
    if visible - masked < 1:
        raise ConfigError(
            f"an observation of {width} cannot hold {config.privileged} entries for the critic alone "
            f"(network.privileged), a mask of {masked} and something to see"
        )
    actor_mlp, critic_mlp = (
        make_mlp(
            (inputs, *config.hidden, outputs),
            config.activation,
            orthogonal_init=orthogonal_init,
            out_gain=None if plain_heads else gain,
        )
        for inputs, outputs, gain in ((visible, head.num_params, 0.01), (width, values, 1.0))
    )
    partial = masked or config.privileged
    return made(encoder, trunk, PartialActor(actor_mlp, visible, masked) if partial else actor_mlp, critic_mlp, head)


FORBIDDEN = -1e8
"""Logit of a masked action: its probability is exactly 0, and log-probabilities stay finite."""


class PartialActor(nn.Module):
    """An actor on the first `visible` inputs, of which the last `masked` mark the allowed actions."""

    def __init__(self, actor: nn.Module, visible: int, masked: int) -> None:
        super().__init__()
        self.actor, self.visible, self.masked = actor, visible, masked

    def forward(self, features: Tensor) -> Tensor:
        """[B, visible or more] → action parameters [B, A]."""
        seen = features[..., : self.visible]
        params: Tensor = self.actor(seen)
        return params.masked_fill(seen[..., self.visible - self.masked :] == 0, FORBIDDEN) if self.masked else params
