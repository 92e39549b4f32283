"""RunConfig: everything one run is made of, as frozen dataclasses that check themselves; imports no torch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from optimist.algorithms.config import DQNConfig, RainbowConfig, ValueBasedConfig
from optimist.anchors.config import SILConfig
from optimist.core.config import OPRConfig, check_fields
from optimist.errors import ConfigError


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
    """Learn from the action the environment says it executed (`info["executed"]`), not from the one sampled."""
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
    """`auto`: Nature CNN for images, MLP for everything else."""
    hidden: tuple[int, ...] = (64, 64)
    """Hidden widths of the MLP (actor and critic have one each)."""
    activation: Literal["tanh", "relu"] = "tanh"
    """Activation of the MLP."""
    initialization: Literal["orthogonal", "default"] = "orthogonal"
    """Orthogonal with gains √2, 0.01 (actor) and 1 (critic); or PyTorch's own."""
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
class A2CConfig:
    """Advantage actor-critic (Mnih et al., 2016, synchronous)."""

    name: Literal["a2c"] = "a2c"
    """Which algorithm this is."""
    rollout_steps: int = 5
    """T. Steps of each environment between two updates."""
    learning_rate: float = 7e-4
    """RMSprop's learning rate at the start."""
    learning_rate_schedule: Literal["constant", "linear"] = "constant"
    """Constant, or falling linearly to 0 over the run."""
    rmsprop_alpha: float = 0.99
    """Smoothing of RMSprop's squared gradients."""
    rmsprop_eps: float = 1e-5
    """RMSprop's ε."""
    gamma: float = 0.99
    """γ. Discount."""
    gae_lambda: float = 1.0
    """λ of generalised advantage estimation; 1 gives n-step returns."""
    value_coef: float = 0.5
    """c_v. Weight of the squared value error."""
    entropy_coef: float = 0.01
    """c_ent. Weight of the entropy bonus."""
    max_grad_norm: float | None = 0.5
    """Global gradient norm is clipped to this; None for no clipping."""
    normalize_advantages: Literal["batch", "off"] = "off"
    """Standardise advantages over the batch, or not."""

    def __post_init__(self) -> None:
        _check_common(self, "a2c")
        _check_rmsprop(self, "a2c")


@dataclass(frozen=True, kw_only=True)
class ACPERConfig:
    """Actor-critic with prioritised replay: A2C, and after each update a few on replayed rollouts.

    A reconstruction of the baseline of the SIL paper, of which neither code nor settings are public; the defaults are
    those of its nearest documented parts, OpenAI's ACER and SIL's buffer.
    """

    name: Literal["acper"] = "acper"
    """Which algorithm this is."""
    rollout_steps: int = 20
    """T. Steps of each environment between two updates, and of a replayed segment (ACER)."""
    learning_rate: float = 7e-4
    """RMSprop's learning rate at the start (ACER)."""
    learning_rate_schedule: Literal["constant", "linear"] = "constant"
    """Constant, or falling linearly to 0 over the run."""
    rmsprop_alpha: float = 0.99
    """Smoothing of RMSprop's squared gradients (ACER)."""
    rmsprop_eps: float = 1e-5
    """RMSprop's ε (ACER)."""
    gamma: float = 0.99
    """γ. Discount."""
    gae_lambda: float = 1.0
    """λ of the advantages of fresh steps, and of the traces of replayed ones."""
    value_coef: float = 0.5
    """c_v. Weight of the squared value error (ACER's q coefficient)."""
    entropy_coef: float = 0.01
    """c_ent. Weight of the entropy bonus (ACER)."""
    max_grad_norm: float | None = 10.0
    """Global gradient norm is clipped to this; None for no clipping (ACER)."""
    normalize_advantages: Literal["batch", "off"] = "off"
    """Standardise the advantages of fresh steps over the batch, or not."""
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
        _check_common(self, self.name)
        _check_rmsprop(self, self.name)
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
AlgorithmConfig = ActorCriticConfig | DQNConfig | RainbowConfig


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """One run: environment, network, algorithm, OPR, budget, seed and how it is recorded."""

    preset: str = ""
    """Name of the preset this config started from."""
    total_steps: int = 100_000
    """Environment steps of the whole run, all environments together."""
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
    """`auto`: on CUDA, PPO acts and learns by CUDA graphs; `off`: kernel by kernel, the reference, and much slower."""
    policy_lag: int = 0
    """Updates by which the policy that acts is older than the one that learns from it. 0: collecting and learning take
    turns; 1: the next rollout is collected during an update, by the policy as it was before it (PPO only). The rollout
    behind a checkpoint has no lag."""
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
    log_every: int = 1
    """Updates between lines in metrics.jsonl."""
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
        for name in ("seed", "evaluate_every", "final_episodes"):
            if getattr(self, name) < 0:
                raise ConfigError(f"{name} must be at least 0, got {getattr(self, name)}")
        if self.policy_lag not in (0, 1):
            raise ConfigError(f"policy_lag must be 0 or 1, got {self.policy_lag}")
        if self.policy_lag and not isinstance(self.algorithm, PPOConfig):
            raise ConfigError(
                f"policy_lag must be 0 for {self.algorithm.name}: only ppo weighs actions by their probability then"
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


def _check_common(config: ActorCriticConfig, name: str) -> None:
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


def _check_rmsprop(config: A2CConfig | ACPERConfig, name: str) -> None:
    if not 0.0 <= config.rmsprop_alpha < 1.0 or not config.rmsprop_eps > 0:
        raise ConfigError(
            f"{name}.rmsprop_alpha must lie in [0, 1) and rmsprop_eps above 0, "
            f"got {config.rmsprop_alpha}, {config.rmsprop_eps}"
        )
