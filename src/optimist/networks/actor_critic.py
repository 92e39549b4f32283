"""ActorCritic: π_θ and V in one module."""

from __future__ import annotations

from collections.abc import Sequence

import gymnasium as gym
import torch
from torch import Tensor, nn

from optimist.config import NetworkConfig
from optimist.errors import ConfigError
from optimist.networks.actions import Categorical, DiagonalGaussian, MultiCategorical, make_action_head
from optimist.networks.encoder import Image, make_encoder
from optimist.networks.initialize import orthogonal
from optimist.networks.masked import PartialActor, visible_inputs
from optimist.networks.mlp import MLP
from optimist.networks.nature_cnn import make_nature_cnn
from optimist.networks.normalize import NormalizedVector
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

    def chances(self, rows: int, generator: torch.Generator) -> tuple[Tensor, ...]:
        """Noise for a choice among actions, exponential, [rows, A]."""
        noise = torch.empty(rows, self.head.num_params, device=generator.device)
        return (noise.exponential_(generator=generator),)

    @torch.no_grad()
    def act_on(self, obs: Tensor, chances: Sequence[Tensor]) -> Tensor:
        """The action per row that this noise chooses."""
        if not isinstance(self.head, Categorical):
            raise NotImplementedError(f"a {type(self.head).__name__} draws when it acts")
        return self.head.choose(self.actor(self.features(obs)), *chances)

    @torch.no_grad()
    def act_greedily(self, obs: Tensor) -> Tensor:
        """The most probable action per row."""
        return self.head.mode(self.actor(self.features(obs)))

    def observe(self, obs: Tensor) -> None:
        """Fresh observations for the encoder's running mean and spread, if it has them."""
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
        """What the actor says about each row, [B, num_params]."""
        params: Tensor = self.actor(self.features(obs))
        return params

    def value(self, obs: Tensor) -> Tensor:
        """V(s), [B]."""
        value: Tensor = self.critic(self.features(obs)).squeeze(-1)
        return value

    def features(self, obs: Tensor) -> Tensor:
        """What actor and critic share."""
        features: Tensor = self.encoder(obs)
        return features if self.trunk is None else self.trunk(features)


def as_actor_critic(policy: PolicyNetwork, purpose: str) -> ActorCritic:
    """The policy, if it has an actor; `purpose` needs one."""
    if not isinstance(policy, ActorCritic):
        raise ConfigError(f"{purpose} needs a policy with an actor; a {type(policy).__name__} has none")
    return policy


def make_actor_critic(
    observation_space: gym.Space[object], action_space: gym.Space[object], config: NetworkConfig
) -> ActorCritic:
    """The network that the config describes for these (single) spaces."""
    if config.normalize_observations and config.action_mask:
        raise ConfigError("network.normalize_observations would normalise the mask too; switch one of the two off")
    encoder, shape = make_encoder(observation_space, normalize=config.normalize_observations)
    head = make_action_head(action_space, config.log_std)
    orthogonal_init, plain_heads = config.initialization != "default", config.initialization != "orthogonal"
    if config.kind == "nature_cnn" or (config.kind == "auto" and len(shape) == 3):
        if config.action_mask or config.privileged:
            raise ConfigError("network.action_mask and network.privileged need observations that are vectors")
        actor, critic = nn.Linear(config.cnn_features, head.num_params), nn.Linear(config.cnn_features, 1)
        if not plain_heads:
            actor, critic = orthogonal(actor, 0.01), orthogonal(critic, 1.0)
        images = make_nature_cnn(shape, config.cnn_features, config.cnn_precision, orthogonal_init=orthogonal_init)
        if isinstance(encoder, Image):
            encoder.as_bytes = True  # the first convolution scales them
        return ActorCritic(encoder, images, actor, critic, head)
    trunk = nn.Flatten() if len(shape) > 1 else None
    width = torch.Size(shape).numel()
    num_actions = head.num_params if isinstance(head, Categorical) else None
    visible, masked = visible_inputs(config, width, num_actions)
    actor_mlp, critic_mlp = (
        MLP(
            (inputs, *config.hidden, out),
            config.activation,
            orthogonal_init=orthogonal_init,
            out_gain=None if plain_heads else gain,
        )
        for inputs, out, gain in ((visible, head.num_params, 0.01), (width, 1, 1.0))
    )
    partial = masked or config.privileged
    return ActorCritic(
        encoder, trunk, PartialActor(actor_mlp, visible, masked) if partial else actor_mlp, critic_mlp, head
    )
