"""SILConfig: every number of self-imitation learning, checked when it is made; imports no torch."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from optimist.core.fields import check_fields
from optimist.errors import ConfigError, unknown_name


@dataclass(frozen=True, kw_only=True)
class SILConfig:
    """Self-Imitation Learning (Oh et al., 2018, arXiv 1806.05635); `stock("a2c")`, `stock("ppo")` give its authors'.

    The defaults are those of the authors' A2C+SIL on Atari.
    """

    enabled: bool = False
    """On adds updates on past steps that went better than the value function expects."""
    coef: float = 1.0
    """Weight of the whole self-imitation loss; 0 turns it off."""
    updates: int = 4
    """M. Gradient steps of self-imitation after each update of the base learner."""
    batch_size: int = 512
    """Past steps drawn for each of them."""
    capacity_transitions: int = 100_000
    """Past steps kept; the oldest are overwritten."""
    max_episode_steps: int = 10_000
    """Most recent steps kept of one episode, finished or not."""
    start_transitions: int = 101
    """Steps that must be stored before anything is imitated (the authors': more than 100)."""
    admission: Literal["positive", "any"] = "positive"
    """Which finished episodes are stored: those with a positive reward, as the authors do, or any. Where no reward is
    positive (CAGE 2) the first stores nothing."""
    time_limit: Literal["end", "bootstrap"] = "end"
    """What a time limit adds to a stored return: nothing, as the authors have it, or the value recorded there."""
    priority_exponent: float = 0.6
    """α of prioritised replay; priorities are (R − V)₊, clipped to `advantage_clip`."""
    importance_exponent: float = 0.1
    """β of prioritised replay's importance weights."""
    advantage_clip: float = 1.0
    """Largest (R − V)₊ that counts, in units of the learner's reward."""
    max_negative_logp: float = 5.0
    """−log π is capped here in value; its gradient passes through."""
    min_normalizer: int = 64
    """Sums over a batch are divided by the number of its steps with R > V, and at least by this."""
    value_coef: float = 0.01
    """β_value. Weight of the lower-bound value loss."""
    entropy_coef: float = 0.01
    """Entropy bonus on steps with R > V."""

    def __post_init__(self) -> None:
        check_fields(self, "sil.")
        whole = ("updates", "batch_size", "capacity_transitions", "max_episode_steps", "min_normalizer")
        for name in (*whole, "start_transitions"):
            if getattr(self, name) < 1:
                raise ConfigError(f"sil.{name} must be at least 1, got {getattr(self, name)}")
        if self.start_transitions > self.capacity_transitions:
            raise ConfigError(
                f"sil.start_transitions ({self.start_transitions}) must be at most sil.capacity_transitions "
                f"({self.capacity_transitions}): more are never stored, and nothing would be imitated"
            )
        for name in ("coef", "priority_exponent", "importance_exponent", "value_coef", "entropy_coef"):
            if not getattr(self, name) >= 0:
                raise ConfigError(f"sil.{name} must be at least 0, got {getattr(self, name)}")
        for name in ("advantage_clip", "max_negative_logp"):
            if not getattr(self, name) > 0:
                raise ConfigError(f"sil.{name} must be above 0, got {getattr(self, name)}")

    @classmethod
    def stock(cls, learner: str) -> SILConfig:
        """The authors' settings on top of `a2c` (Atari) or `ppo` (MuJoCo)."""
        a2c = cls(enabled=True)
        if learner == "a2c":
            return a2c
        if learner == "ppo":
            return replace(a2c, coef=0.1, updates=10, capacity_transitions=50_000)
        raise unknown_name("learner with settings of the SIL authors", learner, ["a2c", "ppo"])
