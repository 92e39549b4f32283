"""SILConfig: the settings of self-imitation learning; imports no torch."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Literal

from optimist.core.settings import AtLeastOne, NonNegative, OrNone, Positive, settings
from optimist.errors import ConfigError, unknown_name


@settings("sil")
class SILConfig:
    """Self-Imitation Learning (Oh et al., 2018, arXiv 1806.05635); `stock("a2c")` and `stock("ppo")` are its authors'.

    The defaults are those of the authors' A2C+SIL on Atari.
    """

    enabled: bool = False
    """Add gradient steps on past steps whose return exceeds their value."""
    coef: NonNegative = 1.0
    """Weight of the whole self-imitation loss; 0 turns it off."""
    updates: AtLeastOne = 4
    """M. Gradient steps of self-imitation after each update of the base learner."""
    batch_size: AtLeastOne = 512
    """Past steps in each of those gradient steps."""
    capacity_transitions: AtLeastOne = 100_000
    """Past steps kept; the oldest are overwritten."""
    max_episode_steps: AtLeastOne = 10_000
    """Most recent steps kept of one episode, finished or not."""
    start_transitions: AtLeastOne = 101
    """Stored steps required before imitation starts (the authors': more than 100)."""
    admission: Literal["positive", "any"] = "positive"
    """Finished episodes that are stored: those with a positive reward (the authors' rule), or any. Where no reward is
    positive (CAGE 2), `positive` stores nothing."""
    time_limit: Literal["end", "bootstrap"] = "end"
    """What a time limit adds to a stored return: nothing (the authors' rule), or the value recorded there."""
    priority_exponent: NonNegative = 0.6
    """α of prioritised replay; priorities are (R − V)₊, clipped to `advantage_clip`."""
    importance_exponent: NonNegative = 0.1
    """β of prioritised replay's importance weights."""
    advantage_clip: Positive = 1.0
    """Largest (R − V)₊ that counts, in units of the learner's reward."""
    max_negative_logp: Positive = 5.0
    """The value of −log π is capped at this; its gradient is not."""
    min_normalizer: AtLeastOne = 64
    """Sums over a batch are divided by the number of its steps with R > V, and at least by this."""
    value_coef: NonNegative = 0.01
    """β_value. Weight of the lower-bound value loss."""
    entropy_coef: OrNone[NonNegative] = None
    """Entropy bonus on steps with R > V; None for the base learner's, at the start (the authors': 0.01 on Atari, 0 on
    MuJoCo)."""

    def __post_init__(self) -> None:
        if self.start_transitions > self.capacity_transitions:
            raise ConfigError(
                f"sil.start_transitions ({self.start_transitions}) must be at most sil.capacity_transitions "
                f"({self.capacity_transitions}); with fewer stored steps imitation never starts"
            )

    @classmethod
    def stock(cls, learner: str) -> SILConfig:
        """The authors' settings on top of `a2c` (Atari) or `ppo` (MuJoCo)."""
        a2c = cls(enabled=True)
        if learner == "a2c":
            return a2c
        if learner == "ppo":
            return replace(a2c, coef=0.1, updates=10, capacity_transitions=50_000)
        raise unknown_name("learner with settings of the SIL authors", learner, ["a2c", "ppo"])

    @property
    def inactive(self) -> set[str]:
        """Names of the settings that have no effect: all of them while self-imitation is off."""
        return set() if self.enabled else {field.name for field in fields(self)} - {"enabled"}
