"""Settings of the value-based learners, DQN and Rainbow; imports no torch."""

from __future__ import annotations

from typing import Literal

from optimist.core.settings import (
    AtLeastOne,
    AtLeastZero,
    Betas,
    Decay,
    NonNegative,
    OrNone,
    Positive,
    Share,
    settings,
)
from optimist.errors import ConfigError


@settings("algorithm")
class ValueBasedConfig:
    """Settings that DQN and Rainbow share, in the order of the data: replay, exploration, targets, loss, OPR."""

    rollout_steps: AtLeastOne = 4
    """T. Steps of each environment between two updates: the train frequency."""
    gradient_steps: AtLeastOne = 1
    """Gradient steps of an update."""
    minibatch_size: AtLeastOne = 32
    """Replayed transitions in one gradient step."""
    replay_capacity: AtLeastOne = 100_000
    """Transitions kept for replay, all environments together; the oldest are overwritten. Allocated once."""
    replay_device: Literal["learner", "cpu"] = "learner"
    """Where the replay buffer is stored: on the learner's device, or in host memory (on CUDA slower: no graphs)."""
    save_replay: bool = True
    """Store the replay buffer in checkpoints. Without it, a resumed run refills the buffer first and is no exact
    continuation."""
    learning_starts: AtLeastZero = 1_000
    """Steps before the first gradient step."""

    epsilon_start: Share = 1.0
    """ε at the start: the probability of a random action."""
    epsilon_final: Share = 0.05
    """ε from `epsilon_steps` on."""
    epsilon_steps: AtLeastZero = 10_000
    """Steps over which ε decreases linearly."""
    evaluation_epsilon: Share = 0.0
    """ε of the finished policy and of evaluations with sampled actions; greedy evaluations use none."""

    learning_rate: Positive = 1e-4
    """The optimiser's learning rate at the start."""
    learning_rate_schedule: Literal["constant", "linear"] = "constant"
    """Constant, or decreasing linearly to 0 over the run."""
    optimizer: Literal["adam", "rmsprop"] = "adam"
    """Adam, or the centred RMSprop of Mnih et al. (2015), with ε under the root."""
    adam_betas: Betas = (0.9, 0.999)
    """Adam's β₁ and β₂."""
    adam_eps: Positive = 1e-8
    """Adam's ε."""
    rmsprop_alpha: Decay = 0.95
    """Smoothing of RMSprop's gradients and squared gradients."""
    rmsprop_eps: Positive = 1e-5
    """RMSprop's ε, added to the variance of gradients of the mean over a minibatch. The 0.01 of 2015 is for their sum
    over 32 rows, whose variance is 32² times as large."""
    gamma: Share = 0.99
    """γ. Discount factor."""
    double: bool = False
    """Choose the next action with the online network, value it with the target network (van Hasselt et al., 2016)."""
    target_interval: AtLeastOne = 1_000
    """Distance between copies of the network into the target network, in `target_unit`."""
    target_unit: Literal["steps", "gradient_steps"] = "steps"
    """Unit of the interval: environment steps, as in the code of Mnih et al. (2015), or gradient steps, as in their
    article."""
    loss: Literal["huber", "squared"] = "huber"
    """Huber loss of the TD error (errors beyond 1 count linearly), or its square."""
    max_grad_norm: OrNone[Positive] = 10.0
    """Global gradient norm is clipped to this; None for no clipping."""

    temperature: Positive = 0.1
    """Temperature of the policy an anchor such as OPR sees, π = softmax(Q / temperature)."""
    cloning: Literal["cross_entropy", "margin"] = "margin"
    """OPR's L_BC: −log π(a|s), or the large margin of DQfD, max_b [Q(s,b) + margin · (b ≠ a)] − Q(s,a)."""
    cloning_margin: NonNegative = 0.01
    """Margin by which a good action's value should exceed the others', in units of the learner's reward. A margin much
    larger than the true differences between actions also teaches the detours of a good episode."""

    def epsilon(self, steps: int) -> float:
        """ε after so many environment steps."""
        share = min(1.0, steps / self.epsilon_steps) if self.epsilon_steps else 1.0
        return self.epsilon_start + (self.epsilon_final - self.epsilon_start) * share

    @property
    def gae_lambda(self) -> float:
        """λ = 1: the memory stores Monte-Carlo returns."""
        return 1.0


@settings("algorithm")
class DQNConfig(ValueBasedConfig):
    """Deep Q-network (Mnih et al., 2015), optionally double (van Hasselt et al., 2016)."""

    name: Literal["dqn"] = "dqn"
    """The algorithm."""


@settings("algorithm")
class RainbowConfig(ValueBasedConfig):
    """Rainbow (Hessel et al., 2018): DQN and six extensions, each of which can be turned off.

    With all of them off it is DQN, bit for bit.
    """

    name: Literal["rainbow"] = "rainbow"
    """The algorithm."""
    double: bool = True
    """Choose the next action with the online network, value it with the target network (van Hasselt et al., 2016)."""
    epsilon_start: Share = 0.0
    """ε at the start; noisy layers explore instead."""
    epsilon_final: Share = 0.0
    """ε from `epsilon_steps` on."""
    dueling: bool = True
    """Value and advantage from separate streams (Wang et al., 2016)."""
    noisy: bool = True
    """Linear layers after the body with learnt, factorised noise (Fortunato et al., 2018)."""
    noisy_sigma: NonNegative = 0.5
    """σ₀ of the noisy layers (the article's 0.5, for small networks; the Atari presets have dqn_zoo's 0.1)."""
    atoms: AtLeastOne = 51
    """Atoms of the distribution of returns (Bellemare et al., 2017); 1 for its mean alone."""
    value_min: float = -10.0
    """Lowest return of the distribution."""
    value_max: float = 10.0
    """Highest return of the distribution."""
    n_step: AtLeastOne = 3
    """n. Rewards summed before bootstrapping; 1 gives one-step targets."""
    priority_exponent: NonNegative = 0.5
    """ω. Transitions are drawn by their last loss to this power (Schaul et al., 2016); 0 draws uniformly."""
    importance_exponent: NonNegative = 0.4
    """β of the importance weights at the start."""
    importance_exponent_final: NonNegative = 1.0
    """β at the end of the run, approached linearly."""

    def __post_init__(self) -> None:
        if not self.value_min < self.value_max:
            raise ConfigError(
                f"algorithm.value_min must be below algorithm.value_max, got {self.value_min} and {self.value_max}"
            )
