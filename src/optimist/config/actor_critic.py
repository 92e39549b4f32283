"""Settings of the actor-critic learners: PPO, A2C, ACPER and Cardiff's PPO; imports no torch."""

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
class PPOConfig:
    """Proximal Policy Optimization (Schulman et al., 2017)."""

    name: Literal["ppo"] = "ppo"
    """The algorithm."""
    rollout_steps: AtLeastOne = 128
    """T. Steps of each environment between two updates."""
    epochs: AtLeastOne = 4
    """Passes over each rollout."""
    minibatch_size: AtLeastOne = 256
    """Rows of the rollout in one gradient step."""
    last_minibatch: Literal["separate", "merged"] = "separate"
    """Rows left over at the end of a pass: a smaller minibatch, or added to the last full one (as in Tianshou)."""
    learning_rate: Positive = 2.5e-4
    """Adam's learning rate at the start."""
    learning_rate_schedule: Literal["constant", "linear"] = "constant"
    """Constant, or decreasing linearly to 0 over the run."""
    adam_betas: Betas = (0.9, 0.999)
    """Adam's β₁ and β₂."""
    adam_eps: Positive = 1e-5
    """Adam's ε."""
    gamma: Share = 0.99
    """γ. Discount factor."""
    gae_lambda: Share = 0.95
    """λ of generalised advantage estimation; 1 gives Monte-Carlo returns."""
    clip_eps: Positive = 0.2
    """ε. The ratio π_θ/π_old is clipped to 1 ± ε."""
    value_clip: OrNone[Positive] = None
    """Clip the new value to the old one ± this; None for no value clipping."""
    value_coef: NonNegative = 0.5
    """c_v. Weight of the squared value error."""
    entropy_coef: NonNegative = 0.01
    """c_ent. Weight of the entropy bonus, at the start if `entropy_coef_final` is set."""
    entropy_coef_final: OrNone[NonNegative] = None
    """c_ent at the end of the run, approached linearly; None for a constant c_ent."""
    max_grad_norm: OrNone[Positive] = 0.5
    """Global gradient norm is clipped to this; None for no clipping."""
    normalize_advantages: Literal["minibatch", "batch", "off"] = "minibatch"
    """Standardise advantages over each minibatch, over the whole batch, or not at all."""
    target_kl: OrNone[Positive] = None
    """Stop the passes of an update once the approximate KL exceeds 1.5 times this; None for no limit."""


@settings("algorithm")
class SynchronousConfig:
    """Settings that A2C and ACPER share: one gradient step by RMSprop on each rollout."""

    rollout_steps: AtLeastOne = 5
    """T. Steps of each environment between two updates, and length of ACPER's replayed segments."""
    learning_rate: Positive = 7e-4
    """RMSprop's learning rate at the start."""
    learning_rate_schedule: Literal["constant", "linear"] = "constant"
    """Constant, or decreasing linearly to 0 over the run."""
    rmsprop_alpha: Decay = 0.99
    """Smoothing of RMSprop's squared gradients."""
    rmsprop_eps: Positive = 1e-5
    """RMSprop's ε."""
    rmsprop_form: Literal["torch", "tensorflow"] = "torch"
    """`torch`: ε added to the root, squared gradients start at 0; `tensorflow`: ε under the root, start at 1, which
    makes the steps of small gradients small (OpenAI baselines, the SIL authors)."""
    gamma: Share = 0.99
    """γ. Discount factor."""
    gae_lambda: Share = 1.0
    """λ of generalised advantage estimation, and of ACPER's Retrace; 1 gives n-step returns."""
    value_coef: NonNegative = 0.5
    """c_v. Weight of the squared value error."""
    entropy_coef: NonNegative = 0.01
    """c_ent. Weight of the entropy bonus."""
    max_grad_norm: OrNone[Positive] = 0.5
    """Global gradient norm is clipped to this; None for no clipping."""


@settings("algorithm")
class A2CConfig(SynchronousConfig):
    """Advantage actor-critic (Mnih et al., 2016, synchronous)."""

    name: Literal["a2c"] = "a2c"
    """The algorithm."""
    normalize_advantages: Literal["batch", "off"] = "off"
    """Standardise advantages over the batch, or not."""


@settings("algorithm")
class ACPERConfig(SynchronousConfig):
    """Actor-critic with prioritised replay: ACER's objective on fresh rollouts and on segments drawn by priority.

    A reconstruction of the baseline of the SIL paper, whose code and settings are not public. The defaults are those
    of its nearest documented parts: OpenAI's ACER and SIL's buffer. `gae_lambda` is the λ of Retrace.
    """

    name: Literal["acper"] = "acper"
    """The algorithm."""
    rollout_steps: AtLeastOne = 20
    """T. Steps of each environment between two updates, and of a replayed segment (ACER)."""
    value_coef: NonNegative = 0.25
    """c_v. Weight of the squared error of Q (ACER: 0.5 of ½ (Q − Q_ret)²)."""
    max_grad_norm: OrNone[Positive] = 10.0
    """Global gradient norm is clipped to this; None for no clipping (ACER)."""
    replay_updates: AtLeastZero = 4
    """Gradient steps on replayed segments after each fresh one (ACER's replay ratio); 0 gives plain A2C."""
    replay_segments: AtLeastOne = 16
    """Segments of T steps in each of those gradient steps (ACER: one per environment)."""
    replay_capacity: AtLeastOne = 100_000
    """Steps kept for replay; the oldest are overwritten (SIL's buffer)."""
    replay_start: AtLeastZero = 10_000
    """Steps collected before replay starts (ACER)."""
    importance_cap: Positive = 10.0
    """c. Largest importance weight in the policy gradient; the bias of the truncation is corrected (ACER)."""
    trust_region: Positive = 1.0
    """δ. Bound on the growth of the divergence from the average policy along the gradient (ACER)."""
    average_decay: Share = 0.99
    """Share of the average policy that stays after each gradient step (ACER)."""
    priority_exponent: NonNegative = 0.6
    """α of prioritised replay; a segment's priority is its mean absolute TD error (SIL's buffer)."""
    importance_exponent: NonNegative = 0.1
    """β of prioritised replay's importance weights (SIL's buffer)."""

    def __post_init__(self) -> None:
        if self.rollout_steps < 2 and self.replay_updates > 0:
            raise ConfigError(
                "algorithm.rollout_steps must be at least 2 for acper, whose segments bootstrap from their last state, "
                "got 1"
            )


@settings("algorithm")
class CardiffPPOConfig:
    """PPO as the Cardiff agent of CAGE Challenge 2 trains: Monte-Carlo returns standardised over the buffer,
    A = R − V under the current critic, full batches. The defaults are its settings, except for `rollout_steps`."""

    name: Literal["cardiff-ppo"] = "cardiff-ppo"
    """The algorithm."""
    rollout_steps: AtLeastOne = 30
    """T. Steps of each environment between two updates; whole episodes, so that few returns are truncated."""
    epochs: AtLeastOne = 6
    """Gradient steps on each rollout, each on all of its rows."""
    learning_rate: Positive = 0.002
    """Adam's learning rate at the start."""
    learning_rate_schedule: Literal["constant", "linear"] = "constant"
    """Constant, or decreasing linearly to 0 over the run."""
    adam_betas: Betas = (0.9, 0.990)
    """Adam's β₁ and β₂."""
    adam_eps: Positive = 1e-8
    """Adam's ε."""
    gamma: Share = 0.99
    """γ. Discount factor."""
    clip_eps: Positive = 0.2
    """ε. The ratio π_θ/π_old is clipped to 1 ± ε."""
    value_coef: NonNegative = 0.5
    """c_v. Weight of the squared value error."""
    entropy_coef: NonNegative = 0.01
    """c_ent. Weight of the entropy bonus."""
    max_grad_norm: OrNone[Positive] = None
    """Global gradient norm is clipped to this; None for no clipping."""

    @property
    def gae_lambda(self) -> float:
        """λ = 1: Monte-Carlo returns."""
        return 1.0


ActorCriticConfig = PPOConfig | A2CConfig | CardiffPPOConfig | ACPERConfig
