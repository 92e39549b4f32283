"""Configs of the actor-critic learners: PPO, A2C, ACPER and Cardiff's PPO; imports no torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from optimist.core.fields import check_fields
from optimist.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class PPOConfig:
    """Proximal Policy Optimization (Schulman et al., 2017)."""

    name: Literal["ppo"] = "ppo"
    """Which algorithm this is."""
    rollout_steps: int = 128
    """T. Steps of each environment between two updates."""
    epochs: int = 4
    """Passes over each rollout."""
    minibatch_size: int = 256
    """Fresh rows of one gradient step."""
    last_minibatch: Literal["separate", "merged"] = "separate"
    """What remains of a pass: a smaller minibatch of its own, or more rows for the one before (Tianshou's habit)."""
    learning_rate: float = 2.5e-4
    """Adam's learning rate at the start."""
    learning_rate_schedule: Literal["constant", "linear"] = "constant"
    """Constant, or falling linearly to 0 over the run."""
    adam_betas: tuple[float, float] = (0.9, 0.999)
    """Adam's β₁ and β₂."""
    adam_eps: float = 1e-5
    """Adam's ε."""
    gamma: float = 0.99
    """γ. Discount."""
    gae_lambda: float = 0.95
    """λ of generalised advantage estimation; 1 gives Monte-Carlo returns."""
    clip_eps: float = 0.2
    """ε. The ratio π_θ/π_old is clipped to 1 ± ε."""
    value_clip: float | None = None
    """Clip the new value to the old one ± this; None for no value clipping."""
    value_coef: float = 0.5
    """c_v. Weight of the squared value error."""
    entropy_coef: float = 0.01
    """c_ent. Weight of the entropy bonus, at the start if `entropy_coef_final` is given."""
    entropy_coef_final: float | None = None
    """c_ent at the end of the run, approached linearly; None for a constant one."""
    max_grad_norm: float | None = 0.5
    """Global gradient norm is clipped to this; None for no clipping."""
    normalize_advantages: Literal["minibatch", "batch", "off"] = "minibatch"
    """Standardise advantages over each minibatch, over the whole batch, or not at all."""
    target_kl: float | None = None
    """Stop an update's passes once the approximate KL exceeds 1.5 times this; None for never."""

    def __post_init__(self) -> None:
        _check_common(self, "ppo")
        if self.epochs < 1 or self.minibatch_size < 1:
            raise ConfigError(
                f"ppo epochs and minibatch_size must be at least 1, got {self.epochs}, {self.minibatch_size}"
            )
        if not self.clip_eps > 0:
            raise ConfigError(f"ppo.clip_eps must be above 0, got {self.clip_eps}")
        for name in ("value_clip", "target_kl"):
            if getattr(self, name) is not None and not getattr(self, name) > 0:
                raise ConfigError(f"ppo.{name} must be above 0 or None, got {getattr(self, name)}")
        if self.entropy_coef_final is not None and not self.entropy_coef_final >= 0:
            raise ConfigError(f"ppo.entropy_coef_final must be at least 0 or None, got {self.entropy_coef_final}")
        _check_adam(self, "ppo")


@dataclass(frozen=True, kw_only=True)
class SynchronousConfig:
    """What A2C and ACPER have in common: one gradient step by RMSprop on each rollout."""

    rollout_steps: int = 5
    """T. Steps of each environment between two updates; ACPER's replayed segments are as long."""
    learning_rate: float = 7e-4
    """RMSprop's learning rate at the start."""
    learning_rate_schedule: Literal["constant", "linear"] = "constant"
    """Constant, or falling linearly to 0 over the run."""
    rmsprop_alpha: float = 0.99
    """Smoothing of RMSprop's squared gradients."""
    rmsprop_eps: float = 1e-5
    """RMSprop's ε."""
    rmsprop_form: Literal["torch", "tensorflow"] = "torch"
    """`torch`: ε beside the root, squared gradients from 0; `tensorflow`: ε under it, from 1, which makes the steps of
    small gradients small (OpenAI baselines, the SIL authors)."""
    gamma: float = 0.99
    """γ. Discount."""
    gae_lambda: float = 1.0
    """λ of generalised advantage estimation, and of the traces of ACPER's replayed steps; 1 gives n-step returns."""
    value_coef: float = 0.5
    """c_v. Weight of the squared value error."""
    entropy_coef: float = 0.01
    """c_ent. Weight of the entropy bonus."""
    max_grad_norm: float | None = 0.5
    """Global gradient norm is clipped to this; None for no clipping."""
    normalize_advantages: Literal["batch", "off"] = "off"
    """Standardise the advantages of fresh steps over the batch, or not."""

    def check(self, name: str) -> None:
        """Raise ConfigError, naming the field, if one holds what it cannot."""
        _check_common(self, name)
        if not 0.0 <= self.rmsprop_alpha < 1.0 or not self.rmsprop_eps > 0:
            raise ConfigError(
                f"{name}.rmsprop_alpha must lie in [0, 1) and rmsprop_eps above 0, "
                f"got {self.rmsprop_alpha}, {self.rmsprop_eps}"
            )


@dataclass(frozen=True, kw_only=True)
class A2CConfig(SynchronousConfig):
    """Advantage actor-critic (Mnih et al., 2016, synchronous)."""

    name: Literal["a2c"] = "a2c"
    """Which algorithm this is."""

    def __post_init__(self) -> None:
        self.check("a2c")


@dataclass(frozen=True, kw_only=True)
class ACPERConfig(SynchronousConfig):
    """Actor-critic with prioritised replay: A2C, and after each update a few on replayed rollouts.

    A reconstruction of the baseline of the SIL paper, of which neither code nor settings are public; the defaults are
    those of its nearest documented parts, OpenAI's ACER (also where they equal A2C's) and SIL's buffer.
    """

    name: Literal["acper"] = "acper"
    """Which algorithm this is."""
    rollout_steps: int = 20
    """T. Steps of each environment between two updates, and of a replayed segment (ACER)."""
    max_grad_norm: float | None = 10.0
    """Global gradient norm is clipped to this; None for no clipping (ACER)."""
    replay_updates: int = 4
    """Gradient steps on replayed segments after each fresh one (ACER's replay ratio); 0 leaves plain A2C."""
    replay_segments: int = 16
    """Segments of T steps drawn for each of them (ACER: one an environment)."""
    replay_capacity: int = 100_000
    """Steps kept for replay, the oldest overwritten (SIL's buffer)."""
    replay_start: int = 10_000
    """Steps collected before replay begins (ACER)."""
    importance_cap: float = 10.0
    """c. Largest importance weight of a replayed step in the policy gradient (ACER)."""
    trace_cap: float = 1.0
    """Largest importance weight in the value targets of replayed steps (Retrace)."""
    priority_exponent: float = 0.6
    """α of prioritised replay; a segment's priority is its mean absolute advantage (SIL's buffer)."""
    importance_exponent: float = 0.1
    """β of prioritised replay's importance weights (SIL's buffer)."""

    def __post_init__(self) -> None:
        self.check("acper")
        if self.rollout_steps < 2 and self.replay_updates > 0:
            raise ConfigError("acper.rollout_steps must be at least 2: the last state of a segment is its bootstrap")
        for name in ("replay_segments", "replay_capacity"):
            if getattr(self, name) < 1:
                raise ConfigError(f"acper.{name} must be at least 1, got {getattr(self, name)}")
        for name in ("replay_updates", "replay_start", "priority_exponent", "importance_exponent"):
            if not getattr(self, name) >= 0:
                raise ConfigError(f"acper.{name} must be at least 0, got {getattr(self, name)}")
        for name in ("importance_cap", "trace_cap"):
            if not getattr(self, name) > 0:
                raise ConfigError(f"acper.{name} must be above 0, got {getattr(self, name)}")


@dataclass(frozen=True, kw_only=True)
class CardiffPPOConfig:
    """PPO as the Cardiff agent of CAGE Challenge 2 trains: Monte-Carlo returns standardised over the buffer,
    A = R − V under the current critic, full batches. The defaults are its settings, but for the size of a rollout."""

    name: Literal["cardiff-ppo"] = "cardiff-ppo"
    """Which algorithm this is."""
    rollout_steps: int = 30
    """T. Steps of each environment between two updates; whole games, so that few returns are cut off."""
    epochs: int = 6
    """Gradient steps on each rollout, every one on all of it."""
    learning_rate: float = 0.002
    """Adam's learning rate at the start."""
    learning_rate_schedule: Literal["constant", "linear"] = "constant"
    """Constant, or falling linearly to 0 over the run."""
    adam_betas: tuple[float, float] = (0.9, 0.990)
    """Adam's β₁ and β₂."""
    adam_eps: float = 1e-8
    """Adam's ε."""
    gamma: float = 0.99
    """γ. Discount."""
    clip_eps: float = 0.2
    """ε. The ratio π_θ/π_old is clipped to 1 ± ε."""
    value_coef: float = 0.5
    """c_v. Weight of the squared value error."""
    entropy_coef: float = 0.01
    """c_ent. Weight of the entropy bonus."""
    max_grad_norm: float | None = None
    """Global gradient norm is clipped to this; None for no clipping."""

    def __post_init__(self) -> None:
        _check_common(self, self.name)
        _check_adam(self, self.name)
        if self.epochs < 1:
            raise ConfigError(f"{self.name}.epochs must be at least 1, got {self.epochs}")
        if not self.clip_eps > 0:
            raise ConfigError(f"{self.name}.clip_eps must be above 0, got {self.clip_eps}")

    @property
    def gae_lambda(self) -> float:
        """λ = 1: Monte-Carlo returns."""
        return 1.0


ActorCriticConfig = PPOConfig | A2CConfig | CardiffPPOConfig | ACPERConfig


def _check_common(config: PPOConfig | CardiffPPOConfig | SynchronousConfig, name: str) -> None:
    check_fields(config, f"{name}.")
    if config.rollout_steps < 1:
        raise ConfigError(f"{name}.rollout_steps must be at least 1, got {config.rollout_steps}")
    if not config.learning_rate > 0:
        raise ConfigError(f"{name}.learning_rate must be above 0, got {config.learning_rate}")
    for field_name in ("gamma", "gae_lambda"):
        if not 0.0 <= getattr(config, field_name) <= 1.0:
            raise ConfigError(f"{name}.{field_name} must lie in [0, 1], got {getattr(config, field_name)}")
    for field_name in ("value_coef", "entropy_coef"):
        if getattr(config, field_name) < 0:
            raise ConfigError(f"{name}.{field_name} must be at least 0, got {getattr(config, field_name)}")
    if config.max_grad_norm is not None and not config.max_grad_norm > 0:
        raise ConfigError(f"{name}.max_grad_norm must be above 0 or None, got {config.max_grad_norm}")


def _check_adam(config: PPOConfig | CardiffPPOConfig, name: str) -> None:
    if not all(0.0 <= beta < 1.0 for beta in config.adam_betas) or not config.adam_eps > 0:
        raise ConfigError(
            f"{name}.adam_betas must lie in [0, 1) and adam_eps above 0, got {config.adam_betas}, {config.adam_eps}"
        )
