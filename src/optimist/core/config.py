"""OPRConfig: every number and every reading of Optimistic Policy Regularization, checked when it is made."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from optimist.core.fields import check_fields
from optimist.errors import ConfigError, unknown_name


@dataclass(frozen=True, kw_only=True)
class OPRConfig:
    """Hyperparameters of Optimistic Policy Regularization; `paper("atari")`, `paper("cage2")` give the paper's.

    The fields stand in the order of the data: memory, reference, shaping, augmentation, cloning.
    `docs/paper.md` says which of them the paper fixes, which it leaves open, and how each default was chosen.
    """

    enabled: bool = True
    """Off gives the plain base algorithm."""

    capacity_transitions: int = 50_000
    """N_max. Transitions kept in the good-episode memory M (the paper's Atari table: 100)."""
    capacity_episodes: int = 1_000
    """Episodes kept in M; whichever limit is reached first evicts."""
    max_episode_steps: int = 4_000
    """Most recent steps kept of one episode, finished or not; a longer one is stored clipped to its end."""
    return_window: int = 100
    """K. Recent episode returns that define τ. The paper gives no value; this one is ours."""
    percentile: float = 75.0
    """P. An episode enters M when its return passes this percentile of the window."""
    admission: Literal["paper", "gated"] = "gated"
    """`paper`: R(E) > τ, strictly. `gated`: R(E) ≥ τ, and above `admission_floor` if there is one."""
    admission_floor: float | None = None
    """Return an episode must exceed under `gated`; None for no floor."""
    deciding_return: Literal["raw", "learner"] = "raw"
    """Which return meets τ: the whole game's raw one, or the one the learner sees (clipped rewards, one life)."""
    thresholds: Literal["shared", "per_group"] = "per_group"
    """One τ for all episodes, or one per group the environment names (opponent, level); without groups the same."""
    retention: Literal["fifo", "ranked"] = "ranked"
    """Who leaves a full M: `fifo` the oldest episode, `ranked` the one with the lowest return, oldest first."""
    max_age_updates: int | None = None
    """Updates after which a stored episode leaves M whatever its rank; None for never."""
    sampling: Literal["uniform", "prioritized"] = "prioritized"
    """How transitions are drawn from M: alike, or by (R − V)₊ to the power `priority_exponent`."""
    priority_exponent: float = 0.6
    """Exponent of prioritised sampling (SIL's value)."""

    reference: Literal["recorded", "cloned", "snapshot"] = "recorded"
    """π_good: the stored probability (replayed steps only), a network cloned on M, or the average admitted policy."""
    reference_interval: int = 10
    """Updates between refreshes of the cloned reference."""
    reference_epochs: int = 1
    """Passes over M at each refresh of the cloned reference."""
    reference_learning_rate: float = 1e-3
    """Adam's learning rate for the cloned reference."""
    snapshot_decay: float = 0.9
    """Weight of the old average when an admission adds the current policy to the snapshot."""

    shaping: Literal["multiplicative", "sign_aware", "additive"] = "sign_aware"
    """r(1 + αΔ̃) as in the paper, r + α|r|Δ̃, or r + αΔ̃."""
    shaping_scale: float = 0.5
    """α. Strength of the shaping; 0 turns it off."""
    shaping_bound: float = 0.01
    """δ. Bound of the smoothed log-ratio Δ̃."""

    augment_share: float = 0.0
    """Replayed good steps that join each minibatch, as a share of its fresh rows; 0 turns it off."""
    augment_ratio: Literal["decoupled", "recorded"] = "decoupled"
    """Clip around the policy at the start of the update with a truncated weight, or around the recorded one."""
    augment_weight_cap: float = 1.0
    """c. Largest importance weight π_start/π_recorded of a replayed step under `decoupled`."""
    augment_value: Literal["off", "upward"] = "off"
    """Value loss of replayed steps: none, or only where the stored return exceeds the value."""

    bc_coef: float = 0.1
    """λ_BC. Weight of the cloning loss on every minibatch; 0 turns it off."""
    bc_schedule: Literal["constant", "linear"] = "constant"
    """λ_BC over the run: constant, or falling linearly to 0."""
    bc_luck: float | None = None
    """Standard deviations above the mean of the recent returns that pass for luck: an episode within them is not
    cloned, one that lies a deviation further out fully; None clones whatever M holds."""
    bc_batch_size: int = 256
    """Steps drawn from M for the cloning loss of each minibatch."""
    bc_weights: Literal["uniform", "advantage"] = "advantage"
    """Weight of a cloned step: 1, or its advantage min((R − V)₊ / `bc_advantage_scale`, 1)."""
    bc_advantage_scale: float = 1.0
    """Advantage at which a cloned step has full weight, in `bc_advantage_unit`."""
    bc_advantage_unit: Literal["reward", "deviation"] = "reward"
    """What advantages are measured in: the learner's reward, or the standard deviation of the fresh advantages, so
    that only what stands out from the rollout at hand is cloned with full weight, whatever the size of rewards."""
    bc_filter: bool = False
    """Clone only steps whose stored return exceeds the current value, R > V."""
    bc_phase_interval: int = 0
    """Distance between separate cloning phases, in `bc_phase_unit`; 0 for none."""
    bc_phase_unit: Literal["updates", "episodes", "steps"] = "updates"
    """What the interval counts: updates, finished episodes, or environment steps."""
    bc_phase_epochs: int = 3
    """Passes over M in one cloning phase."""

    def __post_init__(self) -> None:
        check_fields(self, "opr.")
        for name in ("capacity_transitions", "capacity_episodes", "max_episode_steps", "return_window"):
            _require(getattr(self, name) >= 1, name, "at least 1", getattr(self, name))
        for name in ("bc_batch_size", "bc_phase_epochs", "reference_interval", "reference_epochs"):
            _require(getattr(self, name) >= 1, name, "at least 1", getattr(self, name))
        for name in ("shaping_scale", "shaping_bound", "bc_coef", "bc_phase_interval", "priority_exponent"):
            _require(getattr(self, name) >= 0, name, "at least 0", getattr(self, name))
        for name in ("augment_weight_cap", "bc_advantage_scale", "reference_learning_rate"):
            _require(getattr(self, name) > 0, name, "above 0", getattr(self, name))
        _require(0.0 <= self.percentile <= 100.0, "percentile", "in [0, 100]", self.percentile)
        _require(0.0 <= self.snapshot_decay < 1.0, "snapshot_decay", "in [0, 1)", self.snapshot_decay)
        _require(0.0 <= self.augment_share <= 10.0, "augment_share", "in [0, 10]", self.augment_share)
        _require(
            self.max_age_updates is None or self.max_age_updates >= 1,
            "max_age_updates",
            "at least 1 or None",
            self.max_age_updates,
        )
        luck = self.bc_luck
        _require(luck is None or luck >= 0, "bc_luck", "at least 0 or None", luck)
        floor = self.admission_floor
        _require(floor is None or floor == floor, "admission_floor", "a number or None", floor)
        if self.admission == "paper" and self.admission_floor is not None:
            raise ConfigError("admission_floor belongs to admission 'gated'; the paper's rule has none")

    @classmethod
    def paper(cls, task: str) -> OPRConfig:
        """The literal method with the paper's numbers for `atari` or `cage2` (its appendix tables)."""
        literal = cls(
            admission="paper",
            retention="fifo",
            thresholds="shared",
            reference="recorded",
            shaping="multiplicative",
            augment_share=0.25,  # ours: the paper augments minibatches and does not say by how much
            augment_ratio="recorded",
            bc_coef=1.0,
            sampling="uniform",
            bc_schedule="constant",
            bc_weights="uniform",
            bc_phase_epochs=3,
        )
        if task == "atari":  # update interval: 50 epochs of 100,000 steps
            atari = replace(literal, capacity_transitions=100, capacity_episodes=100)
            return replace(atari, bc_phase_interval=5_000_000, bc_phase_unit="steps")
        if task == "cage2":  # "Good Episodes Buffer Maxlen 1000" counts episodes (of 30 steps); interval: 50 episodes
            cage2 = replace(literal, capacity_transitions=30_000, capacity_episodes=1_000)
            return replace(cage2, bc_phase_interval=50, bc_phase_unit="episodes")
        raise unknown_name("task with numbers in the paper", task, ["atari", "cage2"])

    @property
    def zero_strength(self) -> bool:
        """Whether nothing of OPR reaches the learner: no shaping, λ_BC = 0, no replayed rows, no cloning phase."""
        return not self.shapes and self.bc_coef == self.augment_share == self.bc_phase_interval == 0

    @property
    def shapes(self) -> bool:
        """Whether any reward is shaped: a recorded π_good is known for replayed steps only."""
        return self.shaping_scale > 0 and (self.reference != "recorded" or self.augment_share > 0)


def require_config(config: OPRConfig | None) -> OPRConfig:
    """The config, or the default where there is none; raise if it is something else."""
    if config is not None and not isinstance(config, OPRConfig):
        raise ConfigError(f"OPR's settings are an OPRConfig, got {type(config).__name__}: OPRConfig(bc_coef=0.1)")
    return config or OPRConfig()


def _require(holds: bool, name: str, expected: str, value: object) -> None:
    if not holds:
        raise ConfigError(f"opr.{name} must be {expected}, got {value}")
