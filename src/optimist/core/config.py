"""OPRConfig: every setting of Optimistic Policy Regularization."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Annotated, Any, Literal

from annotated_types import Interval

from optimist.core.settings import AtLeastOne, AtLeastZero, NonNegative, OrNone, settings
from optimist.errors import ConfigError, unknown_name

LARGEST_SHARE = 256
"""Most rows that a share of a minibatch gives."""
CANDIDATES = ("bc_trust",)
"""Settings that exist until the default is chosen (results/default/PLAN.md); then one or none of them stays."""


@settings("opr")
class OPRConfig:
    """Settings of Optimistic Policy Regularization; `OPRConfig.paper("atari")` and `paper("cage2")` give the paper's.

    The fields follow the data: memory, shaping, replayed rows, cloning. docs/paper.md says which of them the paper
    fixes, which it leaves open, and how each default was chosen.
    """

    enabled: bool = True
    """Off gives the plain base algorithm."""

    capacity_transitions: AtLeastOne = 50_000
    """N_max. Transitions kept in the good-episode memory M (the paper's Atari table: 100)."""
    capacity_episodes: AtLeastOne = 1_000
    """Episodes kept in M; whichever limit is reached first evicts."""
    max_episode_steps: AtLeastOne = 4_000
    """Steps kept of one episode; of a longer one the most recent."""
    return_window: AtLeastOne = 100
    """K. Recent episode returns that define τ. The paper gives no value."""
    percentile: Annotated[float, Interval(ge=0, le=100)] = 75.0
    """P. An episode is admitted to M when its return passes this percentile of the window."""
    admission: Literal["paper", "gated"] = "gated"
    """`paper`: R(E) > τ, strictly. `gated`: R(E) ≥ τ, so that ties at a ceiling still refresh M."""
    retention: Literal["fifo", "ranked"] = "ranked"
    """What a full M evicts: the oldest episode, or the one with the lowest return."""
    max_age_updates: OrNone[AtLeastOne] = None
    """Updates after which a stored episode is evicted, with any return; None for never."""
    sampling: Literal["uniform", "prioritized", "advantage"] = "prioritized"
    """How transitions are drawn from M: all alike, or by their advantage (R − V)₊ to the power 0.6. A new one has the
    largest priority in M (`prioritized`), or that of its own advantage (`advantage`)."""

    shaping_scale: NonNegative = 0.0
    """α. Strength of the reward shaping; 0 turns it off (the paper: 0.5)."""
    shaping_bound: NonNegative = 0.01
    """δ. Bound of the smoothed log-ratio Δ̃."""
    reference: Literal["recorded", "cloned"] = "recorded"
    """π_good: the stored probability (shapes replayed steps only), or a network cloned on M (shapes every step)."""

    augment_share: Annotated[float, Interval(ge=0, le=10)] = 0.0
    """Replayed rows of M that join each minibatch, as a share of its fresh rows; 0 turns it off."""
    augment_rows: Literal["decoupled", "recorded", "full"] = "decoupled"
    """Replayed rows clip their ratio around the policy at the start of the update, with a truncated importance weight
    (`decoupled`), or around the recorded probability (`recorded`), in the policy loss alone. `full`: as `recorded`, and
    they count in the value loss, the advantage statistics and the entropy bonus like fresh rows."""

    bc_coef: NonNegative = 0.1
    """λ_BC. Weight of the cloning loss on every minibatch; 0 turns it off."""
    bc_batch_size: AtLeastOne | Annotated[float, Interval(gt=0, lt=1)] = 256
    """Steps drawn from M for the cloning loss of each minibatch: a number, or a share of the minibatch's rows such as
    0.25, which gives at most 256."""
    bc_weights: Literal["uniform", "advantage"] = "advantage"
    """Weight of a cloned step: 1, or its advantage min((R − V)₊, 1) in units of the learner's reward."""
    bc_luck: OrNone[NonNegative | Literal["tail"]] = None
    """Standard deviations above the mean of recent returns that count as luck: an episode within them is not cloned,
    one that is a further deviation above them fully. `tail`: luck is what the best of so many episodes reach under an
    exponential tail. None clones every stored episode."""
    bc_trust: OrNone[NonNegative] = None
    """ε of cloning: a step is not cloned while π/π_start > 1 + ε, with π_start of the start of the update; None for no
    limit."""
    bc_phase_interval: AtLeastZero = 0
    """Distance between separate cloning phases, in `bc_phase_unit`; 0 for none."""
    bc_phase_unit: Literal["updates", "episodes", "steps"] = "updates"
    """What the interval counts: updates, finished episodes, or environment steps."""
    bc_phase_epochs: AtLeastOne = 3
    """Passes over M in one cloning phase."""

    @classmethod
    def paper(cls, task: str) -> OPRConfig:
        """The method as published, with the numbers of its appendix for `atari` or `cage2`."""
        literal = cls(
            admission="paper",
            retention="fifo",
            sampling="uniform",
            shaping_scale=0.5,
            augment_share=0.25,  # ours: the paper augments minibatches and does not say by how much
            augment_rows="recorded",
            bc_coef=1.0,
            bc_weights="uniform",
        )
        if task == "atari":  # update interval: 50 epochs of 100,000 steps
            atari = replace(literal, capacity_transitions=100, capacity_episodes=100)
            return replace(atari, bc_phase_interval=5_000_000, bc_phase_unit="steps")
        if task == "cage2":  # "Good Episodes Buffer Maxlen 1000" counts episodes (of 30 steps); interval: 50 episodes
            cage2 = replace(literal, capacity_transitions=30_000, capacity_episodes=1_000)
            return replace(cage2, bc_phase_interval=50, bc_phase_unit="episodes")
        raise unknown_name("task with numbers in the paper", task, ["atari", "cage2"])

    @property
    def shapes(self) -> bool:
        """Whether any reward is shaped: a recorded π_good is known for replayed steps only."""
        return self.shaping_scale > 0 and (self.reference != "recorded" or self.augment_share > 0)

    @property
    def inactive(self) -> set[str]:
        """Names of the settings that have no effect, given the others."""
        if not self.enabled:
            return {field.name for field in fields(self)} - {"enabled"}
        idle: set[str] = set() if self.shapes else {"shaping_scale", "shaping_bound", "reference"}
        if self.augment_share == 0:
            idle.add("augment_rows")
        if self.bc_phase_interval == 0:
            idle |= {"bc_phase_unit", "bc_phase_epochs"}
            if self.bc_coef == 0:
                idle |= {"bc_batch_size", "bc_weights", "bc_luck"}
        if self.bc_coef == 0:
            idle.add("bc_trust")
        return idle

    def rows_to_clone(self, minibatch_size: int | None) -> int:
        """The steps drawn from M for a minibatch of so many rows."""
        if isinstance(self.bc_batch_size, int):
            return self.bc_batch_size
        if minibatch_size is None:
            raise ConfigError(
                f"opr.bc_batch_size is a share, {self.bc_batch_size}, and the size of the minibatch is not known here; "
                "pass loss(policy, minibatch_size=...), or set a number of rows"
            )
        return min(max(round(self.bc_batch_size * minibatch_size), 1), LARGEST_SHARE)

    @property
    def phase_batch_size(self) -> int:
        """The steps of a minibatch in a cloning phase."""
        return self.bc_batch_size if isinstance(self.bc_batch_size, int) else LARGEST_SHARE


def require_config(config: Any) -> OPRConfig:
    """Return the config, or the default for None; raise if it is something else."""
    if config is not None and not isinstance(config, OPRConfig):
        values = config if isinstance(config, Mapping) and config else {"bc_coef": 0.1}
        shown = ", ".join(f"{name.removeprefix('opr.')}={value!r}" for name, value in values.items())
        raise ConfigError(f"opr must be an OPRConfig, got {type(config).__name__}; write OPRConfig({shown})")
    return OPRConfig() if config is None else config
