"""RunConfig: everything one run is made of, as frozen dataclasses that check themselves; imports no torch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from optimist.algorithms.actor_critic_config import (
    A2CConfig,
    ACPERConfig,
    ActorCriticConfig,
    CardiffPPOConfig,
    PPOConfig,
)
from optimist.algorithms.value_based_config import DQNConfig, RainbowConfig, ValueBasedConfig
from optimist.anchors.config import SILConfig
from optimist.core.config import OPRConfig
from optimist.core.fields import check_fields
from optimist.errors import ConfigError

__all__ = [
    "A2CConfig",
    "ACPERConfig",
    "ActorCriticConfig",
    "AlgorithmConfig",
    "CardiffPPOConfig",
    "DQNConfig",
    "EnvConfig",
    "NetworkConfig",
    "OPRConfig",
    "PPOConfig",
    "RainbowConfig",
    "RunConfig",
    "SILConfig",
    "ValueBasedConfig",
]

DIVIDING = ("lanes", "threads", "workers", "priority")
"""Keywords of environments that divide their games among cores and threads: the games are the same."""


@dataclass(frozen=True, kw_only=True)
class EnvConfig:
    """Which environment, how many of it, and what the learner makes of its signals."""

    id: str = "CartPole-v1"
    """Gymnasium id, for example CartPole-v1 or optimist/DeepSea-v0."""
    num_envs: int = 8
    """Environments stepped side by side (N)."""
    kwargs: dict[str, Any] = field(default_factory=dict)
    """Keywords for the environment's constructor."""
    vectorization: Literal["auto", "sync", "async"] = "auto"
    """The environment's own vector version if it has one, else one process; or by name."""
    clip_rewards: bool = False
    """Train on sign(r); the raw reward still decides about the memory."""
    truncation: Literal["bootstrap", "end", "ignored"] = "bootstrap"
    """A time limit: bootstrap with the value behind it; a real end (tasks scored over a fixed number of steps); or
    nothing the learner notices, so that returns leak into the next episode (Cardiff's habit)."""
    group_key: str = ""
    """Entry of `info` that names an episode's group (opponent, level) for thresholds per group; empty for none."""
    store_executed: bool = True
    """Learn from the action the environment says it executed (`info["executed"]`), not from the one sampled. Right for
    DQN and Rainbow; with a policy gradient only where the policy may well choose that action: else π/π_old explodes."""
    frame_stack: int = 1
    """Frames an image observation is stacked of, newest last (Atari: 4); the memory then stores each frame once."""
    reward_delay: int = 1
    """Steps over which rewards are held back and then paid at once, the rest at the episode's end; 1 for no delay."""
    reward_scale: float = 1.0
    """Factor on the rewards that train; raw rewards, and so scores and admission, are not scaled."""

    def __post_init__(self) -> None:
        check_fields(self, "env.")
        if self.num_envs < 1:
            raise ConfigError(f"env.num_envs must be at least 1, got {self.num_envs}")
        if self.reward_delay < 1:
            raise ConfigError(f"env.reward_delay must be at least 1, got {self.reward_delay}")
        if not self.reward_scale > 0:
            raise ConfigError(f"env.reward_scale must be above 0, got {self.reward_scale}")
        if self.frame_stack < 1:
            raise ConfigError(f"env.frame_stack must be at least 1, got {self.frame_stack}")


@dataclass(frozen=True, kw_only=True)
class NetworkConfig:
    """The policy and value network."""

    kind: Literal["auto", "mlp", "nature_cnn"] = "auto"
    """`auto`: Nature CNN for images (uint8, channels first), MLP for everything else, flattened."""
    hidden: tuple[int, ...] = (64, 64)
    """Hidden widths of the MLP (actor and critic have one each)."""
    activation: Literal["tanh", "relu"] = "tanh"
    """Activation of the MLP."""
    initialization: Literal["orthogonal", "default_heads", "default"] = "orthogonal"
    """Orthogonal with gains √2, 0.01 (actor) and 1 (critic); PyTorch's own for the last layers of actor and critic; or
    PyTorch's own for all."""
    cnn_features: int = 512
    """Width of the Nature CNN's last layer."""
    cnn_precision: Literal["float32", "bfloat16"] = "float32"
    """Numbers the Nature CNN computes with; weights stay float32."""
    log_std: float = 0.0
    """Initial log σ of a Gaussian policy."""
    privileged: int = 0
    """Last entries of the observation that only the critic sees."""
    action_mask: bool = False
    """Whether the entries before those, one an action, say which actions are allowed (0: never taken)."""
    normalize_observations: bool = False
    """Standardise vector observations by a running mean and spread inside the network; memories store raw ones."""

    def __post_init__(self) -> None:
        check_fields(self, "network.")
        if self.privileged < 0:
            raise ConfigError(f"network.privileged must be at least 0, got {self.privileged}")
        if any(width < 1 for width in (*self.hidden, self.cnn_features)):
            raise ConfigError(f"network widths must be at least 1, got hidden {self.hidden}, cnn {self.cnn_features}")


AlgorithmConfig = ActorCriticConfig | DQNConfig | RainbowConfig


MOST_THREADS = 1_024
"""Of torch: far beyond what helps, and below what a system refuses to make."""


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """One run: environment, network, algorithm, OPR, budget, seed and how it is recorded."""

    preset: str = ""
    """Name of the preset this config started from."""
    total_steps: int = 100_000
    """Environment steps of the whole run, all environments together; whole updates that fit into them, at least one."""
    seed: int = 0
    """Fixes everything random in the run."""
    device: str = "cpu"
    """Torch device of the learner: cpu, cuda or cuda:1."""
    threads: int = 1
    """Torch threads; small networks are fastest on 1 or 2."""
    deterministic: bool = False
    """Ask torch for deterministic kernels; needed on CUDA for exact resume."""
    matmul_precision: Literal["highest", "high"] = "highest"
    """Matrix products in full float32, or with TF32 where the device has it (CUDA: several times faster)."""
    graphs: Literal["auto", "off"] = "auto"
    """`auto`: on CUDA, PPO, DQN and Rainbow act and learn by CUDA graphs; `off`: kernel by kernel, the reference, and
    much slower."""
    policy_lag: int = 0
    """Updates by which the policy that acts is older than the one that learns from it. 0: collecting and learning take
    turns; 1: the next rollout is collected during an update, by the policy as it was before it (PPO, DQN, Rainbow). The
    rollout behind a checkpoint has no lag."""
    env: EnvConfig = field(default_factory=EnvConfig)
    """The environment."""
    network: NetworkConfig = field(default_factory=NetworkConfig)
    """The policy and value network."""
    algorithm: AlgorithmConfig = field(default_factory=PPOConfig)
    """The base learner."""
    opr: OPRConfig = field(default_factory=lambda: OPRConfig(enabled=False))
    """Optimistic Policy Regularization; `enabled = false` gives the plain learner."""
    sil: SILConfig = field(default_factory=SILConfig)
    """Self-imitation learning; off unless `enabled`, on its own or together with OPR."""
    checkpoint_every: int = 50_000
    """Steps between checkpoints; environments that cannot save their state restart there (see docs)."""
    save_when_stopped: bool = False
    """Save at SIGINT and SIGTERM even where environments must restart for it: nothing is lost, but the run is no longer
    the one that was never stopped."""
    log_every: int = 1
    """Updates between lines in metrics.jsonl; an evaluation has a line in any case."""
    evaluate_every: int = 0
    """Steps between evaluations during training; 0 for none."""
    evaluate_episodes: int = 10
    """Episodes of one evaluation during training."""
    evaluate_in: Literal["turn", "background"] = "turn"
    """Where evaluations play: in turn with training, or in a process beside it, which does not hold it up; a result is
    then logged when the next evaluation begins, under the step it is of."""
    final_episodes: int = 0
    """Episodes the final policy plays on fresh seeds when the run is over, for the summary; 0 for none."""
    tensorboard: bool = True
    """Write TensorBoard events where tensorboard is installed."""
    wandb: bool = False
    """Also log to Weights & Biases (extra `wandb`)."""

    def __post_init__(self) -> None:
        check_fields(self, "")
        for name in ("total_steps", "checkpoint_every", "log_every", "evaluate_episodes", "threads"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.threads > MOST_THREADS:
            raise ConfigError(f"threads must be at most {MOST_THREADS}, got {self.threads}")
        for name in ("seed", "evaluate_every", "final_episodes"):
            if getattr(self, name) < 0:
                raise ConfigError(f"{name} must be at least 0, got {getattr(self, name)}")
        if self.policy_lag not in (0, 1):
            raise ConfigError(f"policy_lag must be 0 or 1, got {self.policy_lag}")
        if self.policy_lag and not isinstance(self.algorithm, PPOConfig | ValueBasedConfig):
            raise ConfigError(
                f"policy_lag must be 0 for {self.algorithm.name}: ppo weighs actions by their probability then, "
                "and dqn and rainbow learn from anybody's"
            )
        if isinstance(self.algorithm, CardiffPPOConfig) and self.env.truncation == "bootstrap":
            raise ConfigError(
                "cardiff-ppo standardises its returns and cannot bootstrap: set env.truncation to 'end' or 'ignored'"
            )
        if isinstance(self.algorithm, ValueBasedConfig):
            self._check_value_based()

    def _check_value_based(self) -> None:
        if self.opr.enabled and self.opr.augment_share > 0:
            raise ConfigError(
                "opr.augment_share must be 0 for a value-based learner: all of its rows are replayed ones"
            )
        if self.opr.enabled and self.opr.bc_advantage_unit == "deviation":
            raise ConfigError(
                "opr.bc_advantage_unit must be 'reward' for a value-based learner: it has no fresh advantages"
            )
        if self.sil.enabled:
            raise ConfigError("sil needs an actor-critic; value-based learners replay by themselves")
        if self.network.action_mask or self.network.privileged or self.network.normalize_observations:
            raise ConfigError("network.action_mask, privileged and normalize_observations need an actor-critic")

    @property
    def batch_size(self) -> int:
        """T·N. Environment steps of one update."""
        return self.algorithm.rollout_steps * self.env.num_envs

    @property
    def total_updates(self) -> int:
        """Updates that fit into the budget; at least one."""
        return max(1, self.total_steps // self.batch_size)
