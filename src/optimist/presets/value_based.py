"""DQN and Rainbow, plain and with OPR, on Gymnasium environments, CAGE 2 and Atari; the grids have them in `grids`."""

from __future__ import annotations

from dataclasses import replace

from optimist.algorithms.value_based_config import DQNConfig, RainbowConfig
from optimist.config import EnvConfig, NetworkConfig, RunConfig
from optimist.core.config import OPRConfig
from optimist.presets import atari, cage2
from optimist.presets.grids import NO_OPR, VALUE_BASED_OPR
from optimist.presets.gym import EnvId
from optimist.presets.registry import preset

Learner = DQNConfig | RainbowConfig

SMALL_NETWORK = NetworkConfig(hidden=(64, 64), activation="relu", initialization="default")  # Stable-Baselines3's

# Ours, not tuned; a gradient step for every 4 steps as usual.
DQN = DQNConfig(
    rollout_steps=4,
    gradient_steps=8,
    minibatch_size=64,
    learning_starts=1_000,
    learning_rate=1e-3,
    epsilon_steps=10_000,
    epsilon_final=0.04,  # RL Baselines3 Zoo, CartPole-v1
    target_interval=500,
)
RAINBOW = RainbowConfig(
    rollout_steps=4,
    gradient_steps=8,
    minibatch_size=64,
    learning_starts=1_000,
    learning_rate=1e-3,
    target_interval=500,
    value_min=-100.0,  # ours: what the usual rewards add up to at γ = 0.99
    value_max=100.0,
)

# CAGE 2. Ours: as above, but more greedy at the end, and the scale of its penalties (0.1 to 10 a step, none positive).
CAGE2_DQN = replace(
    DQN,
    rollout_steps=1,
    epsilon_steps=100_000,  # a fifth of the run
    epsilon_final=0.01,
    learning_rate=5e-4,
    target_interval=2_000,
    temperature=1.0,
    cloning_margin=0.5,
)
CAGE2_RAINBOW = replace(
    RAINBOW,
    rollout_steps=1,
    learning_rate=5e-4,
    target_interval=2_000,
    temperature=1.0,
    cloning_margin=0.5,
    value_min=-60.0,
    value_max=0.0,
)
CAGE2_GAMES = 32
CAGE2_STEPS = 500_000

# Mnih et al. (2015), extended data table 1. Ours: 8 environments × 4 steps to 8 gradient steps, where theirs is one
# environment and a gradient step every 4 steps: the same share, in larger portions.
NATURE = DQNConfig(
    rollout_steps=4,
    gradient_steps=8,
    minibatch_size=32,
    replay_capacity=1_000_000,
    save_replay=False,
    learning_starts=50_000,
    epsilon_final=0.1,
    epsilon_steps=1_000_000,  # the paper says frames; its code counts steps
    evaluation_epsilon=0.05,
    learning_rate=2.5e-4,
    optimizer="rmsprop",
    rmsprop_eps=0.01 / 32**2,  # theirs, 0.01, is for gradients summed over the 32 rows; ours are of the mean
    target_interval=10_000,
    target_unit="gradient_steps",  # theirs count parameter updates
    loss="huber",
    max_grad_norm=None,
)
# Dopamine's DQN (JAX): Adam, squared errors, and a faster way to less exploration.
MODERN = replace(
    NATURE,
    learning_starts=20_000,
    epsilon_final=0.01,
    epsilon_steps=250_000,
    evaluation_epsilon=0.001,
    learning_rate=6.25e-5,
    optimizer="adam",
    adam_eps=1.5e-4,
    target_interval=8_000,
    target_unit="steps",
    loss="squared",
)
# Hessel et al. (2018): unlike in Dopamine, dueling streams and noisy layers are on. Replay, target and rate are both's.
ATARI_RAINBOW = RainbowConfig(
    rollout_steps=4,
    gradient_steps=8,
    minibatch_size=32,
    replay_capacity=1_000_000,
    save_replay=False,
    learning_starts=20_000,
    learning_rate=6.25e-5,
    adam_eps=1.5e-4,
    target_interval=8_000,
    max_grad_norm=10.0,  # as usual where streams are dueling (Wang et al., 2016)
)
ATARI_LOG_EVERY = 256  # updates: 8,192 steps


def _in_large_minibatches(learner: Learner) -> Learner:
    """Ours, for 64 games: steps are replayed as often, in a quarter of the gradient steps, at four times the rate.

    Four, not √4: where gradients are smaller than Adam's ε, its steps are proportional to them.
    """
    return replace(
        learner, rollout_steps=4, gradient_steps=16, minibatch_size=128, learning_rate=4.0 * learner.learning_rate
    )  # fmt: skip


@preset("gym/dqn")
def gym_dqn(env: EnvId = "CartPole-v1") -> RunConfig:
    """DQN on any Gymnasium environment with Discrete actions."""
    return _gym(env, DQN, NO_OPR)


@preset("gym/dqn-opr")
def gym_dqn_opr(env: EnvId = "CartPole-v1") -> RunConfig:
    """DQN with OPR, our default, on any Gymnasium environment with Discrete actions."""
    return _gym(env, DQN, VALUE_BASED_OPR)


@preset("gym/rainbow")
def gym_rainbow(env: EnvId = "CartPole-v1") -> RunConfig:
    """Rainbow on any Gymnasium environment with Discrete actions."""
    return _gym(env, RAINBOW, NO_OPR)


@preset("gym/rainbow-opr")
def gym_rainbow_opr(env: EnvId = "CartPole-v1") -> RunConfig:
    """Rainbow with OPR, our default, on any Gymnasium environment with Discrete actions."""
    return _gym(env, RAINBOW, VALUE_BASED_OPR)


def _gym(env: str, learner: Learner, opr: OPRConfig) -> RunConfig:
    return RunConfig(
        total_steps=100_000,
        env=EnvConfig(id=env, num_envs=8),
        network=SMALL_NETWORK,
        algorithm=learner,
        opr=opr,
        log_every=32,  # updates: 1,024 steps
    )


def _register_cage2(name: str, learner: Learner, opr: OPRConfig, text: str) -> None:
    def build(
        red: cage2.Red = "B_line",
        rules: cage2.Rules = "final",
        table: cage2.Table = "cardiff",
        horizon: cage2.Horizon = 30,
        green: cage2.Green = "Sleep",
    ) -> RunConfig:
        config = cage2._opening_config(red, rules, table, horizon, green, opr)
        env = replace(config.env, num_envs=CAGE2_GAMES)
        fitted = learner
        if isinstance(learner, RainbowConfig) and horizon > 30:
            fitted = replace(learner, value_min=learner.value_min * horizon / 30)  # longer games cost more
        return replace(
            config, total_steps=CAGE2_STEPS, env=env, algorithm=fitted, log_every=32, checkpoint_every=50_000
        )  # fmt: skip

    build.__doc__ = f"{text} on Cardiff's interface, 32 games side by side, 500,000 steps."
    preset(f"cage2/{name}")(build)


_register_cage2("dqn", CAGE2_DQN, NO_OPR, "DQN")
_register_cage2("dqn-opr", CAGE2_DQN, VALUE_BASED_OPR, "DQN with OPR, our default,")
_register_cage2("rainbow", CAGE2_RAINBOW, NO_OPR, "Rainbow")
_register_cage2("rainbow-opr", CAGE2_RAINBOW, VALUE_BASED_OPR, "Rainbow with OPR, our default,")


@preset("atari/dqn")
def atari_dqn(game: atari.GameName = "Pong", sticky: atari.Sticky = 0.0, long: atari.Long = False) -> RunConfig:
    """DQN on an Atari game with the settings of Mnih et al. (2015); a lost life is an end."""
    return _atari(game, sticky, long, NATURE, NO_OPR, life_loss_ends=True)


@preset("atari/dqn-modern")
def atari_dqn_modern(game: atari.GameName = "Pong", sticky: atari.Sticky = 0.0, long: atari.Long = False) -> RunConfig:
    """DQN on an Atari game with Dopamine's settings: Adam, less exploration; whole games."""
    return _atari(game, sticky, long, MODERN, NO_OPR)


@preset("atari/dqn-opr")
def atari_dqn_opr(game: atari.GameName = "Pong", sticky: atari.Sticky = 0.0, long: atari.Long = False) -> RunConfig:
    """The modern DQN with OPR, our default."""
    return _atari(game, sticky, long, MODERN, VALUE_BASED_OPR)


@preset("atari/rainbow")
def atari_rainbow(game: atari.GameName = "Pong", sticky: atari.Sticky = 0.0, long: atari.Long = False) -> RunConfig:
    """Rainbow on an Atari game, all six extensions; whole games."""
    return _atari(game, sticky, long, ATARI_RAINBOW, NO_OPR)


@preset("atari/rainbow-opr")
def atari_rainbow_opr(game: atari.GameName = "Pong", sticky: atari.Sticky = 0.0, long: atari.Long = False) -> RunConfig:
    """Rainbow, all six extensions, with OPR, our default."""
    return _atari(game, sticky, long, ATARI_RAINBOW, VALUE_BASED_OPR)


@preset("atari/fast-dqn")
def atari_fast_dqn(game: atari.GameName = "Pong", sticky: atari.Sticky = 0.0, long: atari.Long = False) -> RunConfig:
    """The modern DQN on 64 games, minibatches of 128, collecting while it learns (a policy lag of 1)."""
    return _fast(_atari(game, sticky, long, _in_large_minibatches(MODERN), NO_OPR, games=64))


@preset("atari/fast-rainbow")
def atari_fast_rainbow(
    game: atari.GameName = "Pong", sticky: atari.Sticky = 0.0, long: atari.Long = False
) -> RunConfig:
    """Rainbow on 64 games, minibatches of 128, collecting while it learns (a policy lag of 1)."""
    return _fast(_atari(game, sticky, long, _in_large_minibatches(ATARI_RAINBOW), NO_OPR, games=64))


def _fast(config: RunConfig) -> RunConfig:
    return replace(config, policy_lag=1, log_every=32, checkpoint_every=atari.FAST_CHECKPOINTS)


def _atari(
    game: str,
    sticky: float,
    long: bool,
    learner: Learner,
    opr: OPRConfig,
    *,
    games: int = 8,
    life_loss_ends: bool = False,
) -> RunConfig:
    env = atari._env(game, sticky, num_envs=games)
    kwargs = {**env.kwargs, "life_loss_ends": life_loss_ends}
    env = replace(env, kwargs=kwargs, store_executed=True)  # Q-learning learns from whoever acted
    config = atari._config(env, learner, opr, long)
    network = NetworkConfig(kind="nature_cnn", initialization="default")
    return replace(config, network=network, log_every=ATARI_LOG_EVERY)
