"""Configs of the value-based learners, DQN and Rainbow; imports no torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from optimist.core.fields import check_fields
from optimist.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class ValueBasedConfig:
    """What DQN and Rainbow have in common, in the order of the data: replay, exploration, targets, loss, OPR."""

    rollout_steps: int = 4
    """T. Steps of each environment between two updates: the train frequency."""
    gradient_steps: int = 1
    """Gradient steps of an update."""
    minibatch_size: int = 32
    """Replayed transitions of one gradient step."""
    replay_capacity: int = 100_000
    """Transitions kept for replay, all environments together, the oldest overwritten; allocated once."""
    replay_device: Literal["learner", "cpu"] = "learner"
    """Where the replay lies: with the learner, or in the computer's own memory (on CUDA much slower: no graphs)."""
    save_replay: bool = True
    """Store the replay in checkpoints. Without, a resumed run fills an empty one first and is no exact continuation."""
    learning_starts: int = 1_000
    """Steps before the first gradient step."""

    epsilon_start: float = 1.0
    """ε at the start: the probability of a random action."""
    epsilon_final: float = 0.05
    """ε from `epsilon_steps` on."""
    epsilon_steps: int = 10_000
    """Steps over which ε falls linearly."""
    evaluation_epsilon: float = 0.0
    """ε of the finished policy, and of evaluations, where actions are sampled; greedy ones have none."""

    learning_rate: float = 1e-4
    """The optimiser's learning rate at the start."""
    learning_rate_schedule: Literal["constant", "linear"] = "constant"
    """Constant, or falling linearly to 0 over the run."""
    optimizer: Literal["adam", "rmsprop"] = "adam"
    """Adam, or the centred RMSprop of Mnih et al. (2015), its ε under the root."""
    adam_betas: tuple[float, float] = (0.9, 0.999)
    """Adam's β₁ and β₂."""
    adam_eps: float = 1e-8
    """Adam's ε."""
    rmsprop_alpha: float = 0.95
    """Smoothing of RMSprop's gradients and squared gradients."""
    rmsprop_eps: float = 1e-5
    """RMSprop's ε, added to the variance of gradients of the mean over a minibatch. The 0.01 of 2015 is for their sum
    over 32 rows, whose variance is 32² times as large."""
    gamma: float = 0.99
    """γ. Discount."""
    double: bool = False
    """Choose the next action with the online network, value it with the target network (van Hasselt et al., 2016)."""
    target_interval: int = 1_000
    """Distance between copies of the network into the target network, in `target_unit`."""
    target_unit: Literal["steps", "gradient_steps"] = "steps"
    """What the interval counts: environment steps, or gradient steps (Mnih et al., 2015)."""
    loss: Literal["huber", "squared"] = "huber"
    """Huber's loss of the TD error (errors beyond 1 count linearly), or its square."""
    max_grad_norm: float | None = 10.0
    """Global gradient norm is clipped to this; None for no clipping."""

    temperature: float = 0.1
    """Temperature of the policy an anchor such as OPR sees, π = softmax(Q / temperature)."""
    cloning: Literal["cross_entropy", "margin"] = "margin"
    """OPR's L_BC: −log π(a|s), or the large margin of DQfD, max_b [Q(s,b) + margin · (b ≠ a)] − Q(s,a)."""
    cloning_margin: float = 0.01
    """The margin by which a good action's value should exceed the others', in units of the learner's reward. It should
    not be much larger than what actions really differ by, or the detours of a good episode are learnt with it."""

    def __post_init__(self) -> None:
        self.check("value_based")

    def check(self, name: str) -> None:
        """Raise ConfigError, naming the field, if one holds what it cannot."""
        check_fields(self, f"{name}.")
        for field in ("rollout_steps", "gradient_steps", "minibatch_size", "replay_capacity", "target_interval"):
            self.require(getattr(self, field) >= 1, name, field, "at least 1")
        for field in ("learning_starts", "epsilon_steps", "cloning_margin"):
            self.require(getattr(self, field) >= 0, name, field, "at least 0")
        for field in ("learning_rate", "adam_eps", "rmsprop_eps", "temperature"):
            self.require(getattr(self, field) > 0, name, field, "above 0")
        for field in ("gamma", "epsilon_start", "epsilon_final", "evaluation_epsilon"):
            self.require(0.0 <= getattr(self, field) <= 1.0, name, field, "in [0, 1]")
        self.require(all(0.0 <= beta < 1.0 for beta in self.adam_betas), name, "adam_betas", "in [0, 1)")
        self.require(0.0 <= self.rmsprop_alpha < 1.0, name, "rmsprop_alpha", "in [0, 1)")
        norm = self.max_grad_norm
        self.require(norm is None or norm > 0, name, "max_grad_norm", "above 0 or None")

    def require(self, holds: bool, name: str, field: str, expected: str) -> None:
        """Raise ConfigError unless `holds`."""
        if not holds:
            raise ConfigError(f"{name}.{field} must be {expected}, got {getattr(self, field)}")

    def epsilon(self, steps: int) -> float:
        """ε after so many environment steps."""
        share = min(1.0, steps / self.epsilon_steps) if self.epsilon_steps else 1.0
        return self.epsilon_start + (self.epsilon_final - self.epsilon_start) * share

    @property
    def gae_lambda(self) -> float:
        """λ = 1: good episodes are remembered with their whole returns."""
        return 1.0


@dataclass(frozen=True, kw_only=True)
class DQNConfig(ValueBasedConfig):
    """Deep Q-network (Mnih et al., 2015), double (van Hasselt et al., 2016) if asked."""

    name: Literal["dqn"] = "dqn"
    """Which algorithm this is."""

    def __post_init__(self) -> None:
        self.check("dqn")


@dataclass(frozen=True, kw_only=True)
class RainbowConfig(ValueBasedConfig):
    """Rainbow (Hessel et al., 2018): DQN and six of its extensions, each to be turned off on its own.

    With all of them off it is DQN, bit for bit.
    """

    name: Literal["rainbow"] = "rainbow"
    """Which algorithm this is."""
    double: bool = True
    """Choose the next action with the online network, value it with the target network (van Hasselt et al., 2016)."""
    epsilon_start: float = 0.0
    """ε at the start; noisy layers explore instead."""
    epsilon_final: float = 0.0
    """ε from `epsilon_steps` on."""
    dueling: bool = True
    """Value and advantage from separate streams (Wang et al., 2016)."""
    noisy: bool = True
    """Linear layers behind the body with learnt, factorised noise (Fortunato et al., 2018)."""
    noisy_sigma: float = 0.5
    """σ₀ of the noisy layers."""
    atoms: int = 51
    """Atoms of the distribution of returns (Bellemare et al., 2017); 1 for its mean alone."""
    value_min: float = -10.0
    """Lowest return that the distribution can hold."""
    value_max: float = 10.0
    """Highest return that the distribution can hold."""
    n_step: int = 3
    """n. Rewards summed before bootstrapping; 1 for none."""
    priority_exponent: float = 0.5
    """ω. Transitions are drawn by their last loss to this power (Schaul et al., 2016); 0 for uniformly."""
    importance_exponent: float = 0.4
    """β of the importance weights at the start."""
    importance_exponent_final: float = 1.0
    """β at the end of the run, approached linearly."""

    def __post_init__(self) -> None:
        self.check("rainbow")
        for field in ("atoms", "n_step"):
            self.require(getattr(self, field) >= 1, "rainbow", field, "at least 1")
        for field in ("noisy_sigma", "priority_exponent", "importance_exponent", "importance_exponent_final"):
            self.require(getattr(self, field) >= 0, "rainbow", field, "at least 0")
        self.require(self.value_min < self.value_max, "rainbow", "value_min", f"below value_max ({self.value_max})")
