"""QNetwork: Q(s, ·) as a policy; plain, or with dueling streams, noisy layers and a distribution of returns."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import gymnasium as gym
import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from optimist.config import NetworkConfig
from optimist.config.value_based import DQNConfig, RainbowConfig
from optimist.errors import ConfigError
from optimist.networks.distributions import Categorical
from optimist.networks.layers import (
    MLP,
    Image,
    NatureCNN,
    Noise,
    NoisyLinear,
    draw_noise,
    draw_normal,
    make_encoder,
    make_nature_cnn,
    orthogonal,
    shape_noise,
)
from optimist.networks.policy import PolicyNetwork


class Support(NamedTuple):
    """The support of a distribution of returns: `atoms` evenly spaced values; one atom means no distribution."""

    atoms: int = 1
    lowest: float = 0.0
    highest: float = 0.0


class QNetwork(PolicyNetwork):
    """A body, then one stream of action values, or two (value and advantage) that are joined.

    As a policy it acts ε-greedily (`epsilon` while it trains, `evaluation_epsilon` otherwise) with fresh noise; anchors
    see π = softmax(Q / temperature) and V = max Q, what the greedy policy that is learnt is worth, both without noise.
    """

    atoms: Tensor
    _epsilon: Tensor

    def __init__(
        self,
        encoder: nn.Module,
        body: nn.Module | None,
        advantage: MLP,
        value: MLP | None,
        *,
        num_actions: int,
        support: Support,
        temperature: float,
        evaluation_epsilon: float,
    ) -> None:
        super().__init__()
        self.encoder, self.body, self.advantage_stream, self.value_stream = encoder, body, advantage, value
        self.num_actions, self.temperature, self.evaluation_epsilon = num_actions, temperature, evaluation_epsilon
        self.head = Categorical(num_actions)
        # Small networks feel the cost of calling a module.
        self._encode, self._body = encoder.forward, None if body is None else body.forward
        self._advantage = advantage.forward
        self.register_buffer("_epsilon", torch.ones((), dtype=torch.float64), persistent=False)  # read on the device
        self.epsilon = 1.0
        self.register_buffer("atoms", torch.linspace(support.lowest, support.highest, support.atoms), persistent=False)
        self.num_atoms = support.atoms
        self._noisy = [layer for layer in self.modules() if isinstance(layer, NoisyLinear)]

    @property
    def epsilon(self) -> float:
        """ε during training."""
        return self._exploration

    @epsilon.setter
    def epsilon(self, value: float) -> None:
        self._exploration = value
        self._epsilon.fill_(value)  # recorded decisions read it there

    def follow(self, other: PolicyNetwork) -> None:
        """Copy the acting behaviour of `other`, a Q-network of the same shape, ε included."""
        assert isinstance(other, QNetwork)
        super().follow(other)
        self.epsilon = other.epsilon

    def draw_noise(self, generator: torch.Generator | None, rows: int = 1) -> list[Noise] | None:
        """Fresh noise for every noisy layer, one for all or for each of `rows`; None where there are none."""
        return draw_noise(self._noisy, generator, rows) if self._noisy else None

    def forward(self, obs: Tensor, noise: list[Noise] | None = None) -> Tensor:
        """Q(s, ·) [B, A], or with a distribution the logits of its atoms, [B, A, atoms]."""
        noise = None if noise is None else [*noise]
        features: Tensor = self._encode(obs)
        if self._body is not None:
            features = self._body(features)
        joined = self._advantage(features, noise)
        if self.num_atoms > 1:
            joined = joined.view(*joined.shape[:-1], self.num_actions, self.num_atoms)
        if self.value_stream is None:
            return joined
        value: Tensor = self.value_stream(features, noise)
        axis = -1 if self.num_atoms == 1 else -2
        value = value if self.num_atoms == 1 else value.unsqueeze(-2)
        return value + joined - joined.mean(axis, keepdim=True)

    def q_values(self, obs: Tensor, noise: list[Noise] | None = None) -> Tensor:
        """Q(s, ·), [B, A]: of a distribution, its mean."""
        return self.means(self.forward(obs, noise))

    def means(self, outputs: Tensor) -> Tensor:
        """Q(s, ·) [B, A] from the output of `forward`."""
        return outputs if self.num_atoms == 1 else outputs.softmax(-1) @ self.atoms

    @torch.no_grad()
    def act(self, obs: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """ε-greedy on Q with separate noise for each row: environments in the same state explore independently."""
        epsilon = self.epsilon if self.training else self.evaluation_epsilon
        if epsilon <= 0.0:
            return self.q_values(obs, self.draw_noise(generator, len(obs))).argmax(-1)
        # One number a row says whether to explore and, where it does, which action: u/ε is uniform again.
        draws = torch.rand(len(obs), generator=generator, device=obs.device, dtype=torch.float64)
        explored = (draws * (self.num_actions / epsilon)).long()
        if epsilon >= 1.0 or (len(obs) == 1 and obs.device.type == "cpu" and draws.item() < epsilon):
            return explored.clamp_(max=self.num_actions - 1)
        greedy = self.q_values(obs, self.draw_noise(generator, len(obs))).argmax(-1)
        return torch.where(explored < self.num_actions, explored, greedy)

    def sample_noise(self, num_rows: int, generator: torch.Generator) -> tuple[Tensor, ...]:
        """Uniform numbers for ε-greedy exploration, [num_rows], and noise of the noisy layers if there are any."""
        draws = torch.rand(num_rows, generator=generator, device=generator.device, dtype=torch.float64)
        return (draws, draw_normal(self._noisy, generator, num_rows)) if self._noisy else (draws,)

    @torch.no_grad()
    def act_with_noise(self, obs: Tensor, noise: Sequence[Tensor]) -> Tensor:
        """As `act`, with ε read on the device, so that a captured graph follows its schedule."""
        draws, *normal = noise
        explored = draws * (self.num_actions / self._epsilon)  # no number, or too large a one, where ε is 0
        greedy = self.q_values(obs, shape_noise(self._noisy, *normal) if normal else None).argmax(-1)
        return torch.where(explored < self.num_actions, explored.long(), greedy)

    @torch.no_grad()
    def act_greedily(self, obs: Tensor) -> Tensor:
        """argmax Q, without noise."""
        return self.q_values(obs).argmax(-1)

    def action_params(self, obs: Tensor) -> Tensor:
        """Q / temperature, [B, A]."""
        return self.q_values(obs) / self.temperature

    def evaluate(self, obs: Tensor, actions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """log π(a|s) and entropy of π = softmax(Q / temperature), and V = max Q, each [B]."""
        q = self.q_values(obs)
        logp, entropy = self.head.log_prob_and_entropy(q / self.temperature, actions)
        return logp, entropy, q.amax(-1)

    def log_prob(self, obs: Tensor, actions: Tensor) -> Tensor:
        """log softmax(Q / temperature) at the action, [B]."""
        return self.head.log_prob(self.action_params(obs), actions)

    def value(self, obs: Tensor) -> Tensor:
        """V = max Q, [B]."""
        return self.q_values(obs).amax(-1)


def make_q_network(
    observation_space: gym.Space[object],
    action_space: gym.Space[object],
    config: NetworkConfig,
    learner: DQNConfig | RainbowConfig,
) -> QNetwork:
    """The network that the config describes for these (single) spaces.

    The last hidden layer and the outputs form a stream; a dueling network has two of them, as in Wang et al. (2016).
    """
    if not isinstance(action_space, gym.spaces.Discrete) or action_space.start != 0:
        raise ConfigError(f"{learner.name} chooses among Discrete actions from 0, not {action_space}; use ppo or a2c")
    rainbow = learner if isinstance(learner, RainbowConfig) else None
    num_actions = int(action_space.n)
    support = Support(rainbow.atoms, rainbow.value_min, rainbow.value_max) if rainbow else Support()
    encoder, shape = make_encoder(observation_space)
    body, width, hidden, activation = _make_body(shape, config)
    if isinstance(encoder, Image) and isinstance(body, NatureCNN):
        encoder.as_bytes = True  # the first convolution scales them
    sigma = rainbow.noisy_sigma if rainbow and rainbow.noisy else None
    outputs = [num_actions * support.atoms] + ([support.atoms] if rainbow and rainbow.dueling else [])
    streams = [_make_stream((width, *hidden, out), activation, config, sigma) for out in outputs]
    return QNetwork(
        encoder,
        body,
        streams[0],
        streams[1] if len(streams) > 1 else None,
        num_actions=num_actions,
        support=support,
        temperature=learner.temperature,
        evaluation_epsilon=learner.evaluation_epsilon,
    )


def _make_body(shape: tuple[int, ...], config: NetworkConfig) -> tuple[nn.Module | None, int, tuple[int, ...], str]:
    """The body that all streams share, its width, the hidden widths of each stream, and their activation."""
    if config.kind == "nature_cnn" or (config.kind == "auto" and len(shape) == 3):
        orthogonal_init = config.initialization != "default"
        trunk = make_nature_cnn(shape, config.cnn_features, config.cnn_precision, orthogonal_init=orthogonal_init)
        *convolutions, last, _ = trunk
        assert isinstance(last, nn.Linear)  # each stream has one of its own
        images = NatureCNN(*convolutions)
        images.in_bfloat16 = trunk.in_bfloat16
        return images, last.in_features, (config.cnn_features,), "relu"
    width = torch.Size(shape).numel()
    flat = nn.Flatten() if len(shape) > 1 else None
    shared = (width, *config.hidden[:-1])
    if len(shared) == 1:
        return flat, width, config.hidden, config.activation
    layers = [_linear(fan_in, fan_out, config, 2**0.5) for fan_in, fan_out in pairwise(shared)]
    body = MLP(layers, config.activation, activated=True)
    return (body if flat is None else nn.Sequential(flat, body)), shared[-1], config.hidden[-1:], config.activation


def _make_stream(sizes: tuple[int, ...], activation: str, config: NetworkConfig, sigma: float | None) -> MLP:
    if sigma is not None:
        noisy = [NoisyLinear(fan_in, fan_out, sigma) for fan_in, fan_out in pairwise(sizes)]
        return MLP(noisy, activation, activated=False)
    gains = [2**0.5] * (len(sizes) - 2) + [1.0 if config.initialization == "orthogonal" else None]
    layers = [_linear(*pair, config, gain) for pair, gain in zip(pairwise(sizes), gains, strict=True)]
    return MLP(layers, activation, activated=False)


def _linear(fan_in: int, fan_out: int, config: NetworkConfig, gain: float | None) -> nn.Linear:
    """`gain`: None keeps PyTorch's initialisation."""
    layer = nn.Linear(fan_in, fan_out)
    return layer if gain is None or config.initialization == "default" else orthogonal(layer, gain)


class MLPGradient:
    """Forward and backward through a plain Q-network: an MLP with one stream, without noise or distribution.

    The gradient is written out: equal to autograd's, and a quarter faster in training for small networks.
    """

    def __init__(self, network: QNetwork) -> None:
        self.network = network
        body = network.body.weights if isinstance(network.body, MLP) else []
        self.weights = [*body, *network.advantage_stream.weights]
        self.activation = network.advantage_stream.activation
        self.inputs: list[Tensor] = []  # of each layer, from the last forward

    @staticmethod
    def fits(network: QNetwork) -> bool:
        """Whether the network is such an MLP."""
        plain = network.value_stream is None and not network._noisy and network.num_atoms == 1
        return plain and (network.body is None or isinstance(network.body, MLP))

    def forward(self, obs: Tensor) -> Tensor:
        """Q(s, ·), [B, A]; stores what `backward` needs. Call both without a graph."""
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
        """∂L/∂Q [B, A] → every parameter's gradient, replacing the previous one."""
        for (weight, bias), inputs in zip(reversed(self.weights), reversed(self.inputs), strict=True):
            torch.mm(gradient.t(), inputs, out=weight.grad)
            torch.sum(gradient, 0, out=bias.grad)
            if inputs is not self.inputs[0]:
                gradient = torch.mm(gradient, weight)
                gradient.mul_(inputs > 0 if self.activation == "relu" else 1.0 - inputs.square())
