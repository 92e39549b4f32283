"""RunConfig: every setting of one run; imports no torch."""

from __future__ import annotations

from dataclasses import field
from typing import Annotated, Any, Literal

from annotated_types import Interval
from pydantic import BeforeValidator, Field, WrapValidator

from optimist.config.actor_critic import A2CConfig, ACPERConfig, CardiffPPOConfig, PPOConfig
from optimist.config.plugins import anchor_settings, learner_settings
from optimist.config.sil import SILConfig
from optimist.config.value_based import DQNConfig, RainbowConfig, ValueBasedConfig
from optimist.core.config import OPRConfig
from optimist.core.settings import AtLeastOne, AtLeastZero, Positive, Whole, Widths, refuse_removed, settings
from optimist.errors import ConfigError


@settings("env")
class EnvConfig:
    """The environment, how many copies of it, and how its rewards and time limits reach the learner."""

    id: str = "CartPole-v1"
    """Gymnasium id, for example CartPole-v1 or optimist/DeepSea-v0."""
    num_envs: AtLeastOne = 8
    """N. Environments stepped in parallel."""
    kwargs: dict[str, Any] = field(default_factory=dict)
    """Keywords for the environment's constructor."""
    vectorization: Literal["auto", "sync", "async"] = "auto"
    """`auto`: the environment's own vector version if it has one, else one process (`sync`); `async`: one process per
    environment."""
    clip_rewards: bool = False
    """Train on sign(r). Admission to the memory still uses the raw reward."""
    truncation: Literal["bootstrap", "end", "ignored"] = "bootstrap"
    """How a time limit is treated: bootstrap with the value of the last state; as a real end (tasks scored over a fixed
    number of steps); or not at all, so that returns leak into the next episode (as Cardiff does)."""
    group_key: str = ""
    """Entry of `info` that names an episode's group (opponent, level) for thresholds per group; empty for none."""
    forced_actions: Literal["executed", "sampled", "masked"] = "executed"
    """What is learned from a step whose action the environment forced (`info["executed"]`): the executed action
    (correct for DQN and Rainbow; in a policy gradient π/π_old of an improbable action grows without bound), the sampled
    one (noise), or the executed one without policy loss and cloning (`masked`; the value loss is kept)."""
    steps_left: bool = False
    """Append the share of steps left before the time limit to vector observations, for the critic alone (then
    `network.privileged` = 1): where a time limit is a real end, values depend on it."""
    frame_stack: AtLeastOne = 1
    """Frames stacked in an image observation, newest last (Atari: 4); the memory then stores each frame once."""
    reward_delay: AtLeastOne = 1
    """Rewards are withheld and paid as a sum every so many steps, and at the end of the episode; 1 for no delay."""
    reward_scale: Positive = 1.0
    """Factor on the rewards that train. Raw rewards, and so scores and admission, are not scaled."""

    def __post_init__(self) -> None:
        for name, value in self.kwargs.items():
            refuse_removed(f"env.kwargs.{name} of {self.id}", value)


@settings("network")
class NetworkConfig:
    """The policy and value network."""

    kind: Literal["auto", "mlp", "nature_cnn"] = "auto"
    """`auto`: Nature CNN for images (uint8, channels first), MLP for everything else, flattened."""
    hidden: Widths = (64, 64)
    """Hidden widths of the MLP (actor and critic have one each)."""
    activation: Literal["tanh", "relu"] = "tanh"
    """Activation of the MLP."""
    initialization: Literal["orthogonal", "default_heads", "default"] = "orthogonal"
    """Orthogonal with gains √2, 0.01 (actor) and 1 (critic); PyTorch's own for the last layers of actor and critic; or
    PyTorch's own for all layers."""
    cnn_features: AtLeastOne = 512
    """Width of the Nature CNN's last layer."""
    cnn_precision: Literal["float32", "bfloat16"] = "float32"
    """Number format of the Nature CNN's computations; weights stay float32."""
    log_std: float = 0.0
    """Initial log σ of a Gaussian policy."""
    privileged: AtLeastZero = 0
    """Number of last entries of the observation that only the critic sees."""
    action_mask: bool = False
    """The entries before those, one per action, say which actions are allowed (0: never taken)."""
    normalize_observations: bool = False
    """Standardise vector observations by a running mean and variance inside the network; memories store raw ones."""


AlgorithmConfig = PPOConfig | A2CConfig | CardiffPPOConfig | ACPERConfig | DQNConfig | RainbowConfig


@settings("")
class RunConfig:
    """One run: environment, network, algorithm, OPR, budget, seed and how it is recorded."""

    preset: str = ""
    """Name of the preset this config started from."""
    total_steps: AtLeastOne = 100_000
    """Environment steps of the whole run, all environments together; rounded down to whole updates, at least one."""
    seed: AtLeastZero = 0
    """Seed of everything random in the run."""
    device: str = "cpu"
    """Torch device of the learner: cpu, cuda or cuda:1."""
    threads: Annotated[Whole, Interval(ge=1, le=1024)] = 1
    """Torch threads; small networks are fastest on 1 or 2."""
    deterministic: bool = False
    """Use deterministic torch kernels; required on CUDA for an exact resume."""
    matmul_precision: Literal["highest", "high"] = "highest"
    """Matrix products in full float32, or with TF32 where the device has it (CUDA: several times faster)."""
    graphs: Literal["auto", "off"] = "auto"
    """`auto`: on CUDA, PPO, DQN and Rainbow act and learn by CUDA graphs; `off`: kernel by kernel, the reference, and
    much slower."""
    policy_lag: Literal[0, 1] = 0
    """Updates by which the acting policy is older than the learning one. 0: collecting and learning alternate; 1: the
    next rollout is collected during an update, by the policy before it (PPO, DQN, Rainbow). The rollout after a
    checkpoint has no lag."""
    env: EnvConfig = field(default_factory=EnvConfig)
    """The environment."""
    network: NetworkConfig = field(default_factory=NetworkConfig)
    """The policy and value network."""
    algorithm: Annotated[AlgorithmConfig, Field(discriminator="name"), WrapValidator(learner_settings)] = field(
        default_factory=PPOConfig
    )
    """The base learner."""
    opr: OPRConfig = field(default_factory=lambda: OPRConfig(enabled=False))
    """Optimistic Policy Regularization; `enabled = false` gives the plain learner."""
    sil: SILConfig = field(default_factory=SILConfig)
    """Self-imitation learning; off unless `enabled`, on its own or together with OPR."""
    anchors: Annotated[dict[str, Any], BeforeValidator(anchor_settings)] = field(default_factory=dict)
    """Anchors of other packages, by name, each with its settings."""
    checkpoint_every: AtLeastOne = 50_000
    """Steps between checkpoints; environments that cannot save their state restart there (see docs)."""
    save_when_stopped: bool = False
    """Save at SIGINT and SIGTERM even where environments must restart for it: no step is lost, but the resumed run
    differs from an uninterrupted one."""
    log_every: AtLeastOne = 1
    """Updates between lines in metrics.jsonl; each evaluation adds a line."""
    evaluate_every: AtLeastZero = 0
    """Steps between evaluations during training; 0 for none."""
    evaluate_episodes: AtLeastOne = 10
    """Episodes of one evaluation during training."""
    evaluate_in: Literal["turn", "background"] = "turn"
    """Where evaluations run: alternating with training, or in a background process that does not delay it. A background
    result is logged when the next evaluation starts, under the step it belongs to."""
    final_episodes: AtLeastZero = 0
    """Episodes the final policy plays on fresh seeds at the end of the run, for the summary; 0 for none."""
    tensorboard: bool = True
    """Write TensorBoard events where tensorboard is installed."""
    wandb: bool = False
    """Also log to Weights & Biases (extra `wandb`)."""

    def __post_init__(self) -> None:
        if self.policy_lag and not isinstance(self.algorithm, PPOConfig | ValueBasedConfig):
            raise ConfigError(f"policy_lag=1 supports ppo, dqn and rainbow; got {self.algorithm.name}")
        if isinstance(self.algorithm, CardiffPPOConfig) and self.env.truncation == "bootstrap":
            raise ConfigError(
                "cardiff-ppo standardises its returns and cannot bootstrap: set env.truncation to 'end' or 'ignored'"
            )
        if isinstance(self.algorithm, ACPERConfig | ValueBasedConfig) and self.opr.enabled and self.opr.augment_share:
            raise ConfigError(
                f"opr.augment_share must be 0 for {self.algorithm.name}, which has a replay of its own; "
                f"got {self.opr.augment_share}"
            )
        if isinstance(self.algorithm, ValueBasedConfig):
            self._check_value_based()

    def _check_value_based(self) -> None:
        learner = self.algorithm.name
        if self.sil.enabled:
            raise ConfigError(f"sil needs an actor-critic, and {learner} has a replay buffer of its own: turn sil off")
        if self.network.action_mask or self.network.privileged or self.network.normalize_observations:
            raise ConfigError(
                f"network.action_mask, privileged and normalize_observations need an actor-critic, got {learner}: "
                "turn them off"
            )

    @property
    def batch_size(self) -> int:
        """T·N. Environment steps of one update."""
        return self.algorithm.rollout_steps * self.env.num_envs

    @property
    def total_updates(self) -> int:
        """Updates that fit into the budget; at least one."""
        return max(1, self.total_steps // self.batch_size)
