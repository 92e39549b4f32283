"""Atari: CleanRL's PPO with and without OPR, the paper's set-up, a fast one for many environments, and a smoke test.

One step is one action, 4 frames of the emulator. Sticky actions are off, as in the PPO paper and CleanRL; scores with
and without them belong in different columns.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from optimist.anchors.config import SILConfig
from optimist.config import (
    A2CConfig,
    ACPERConfig,
    AlgorithmConfig,
    EnvConfig,
    NetworkConfig,
    PPOConfig,
    RunConfig,
)
from optimist.core.config import OPRConfig
from optimist.presets.grids import NO_OPR
from optimist.presets.registry import preset

GameName = Annotated[str, "One of the games `optimist games` lists, for example Pong."]
Sticky = Annotated[float, "Probability that the console repeats the previous action; 0.25 in Machado et al. (2018)."]
Long = Annotated[bool, "50 million steps (200M frames) instead of 10 million (40M frames)."]

FINAL_GAMES = 30

# CleanRL's ppo_atari: 8 environments × 128 steps, 4 passes of 4 minibatches, learning rate to 0.
CLEANRL = PPOConfig(
    rollout_steps=128,
    epochs=4,
    minibatch_size=256,
    learning_rate=2.5e-4,
    learning_rate_schedule="linear",
    adam_eps=1e-5,
    gamma=0.99,
    gae_lambda=0.95,
    clip_eps=0.1,
    value_clip=0.1,
    value_coef=0.25,  # of (R − V)²: CleanRL's 0.5 of ½(R − V)²
    entropy_coef=0.01,
    max_grad_norm=0.5,
    normalize_advantages="minibatch",
)

# The paper's appendix table gives rate, γ, λ, entropy, value coefficient, clip, gradient norm, batch and 10
# environments: those of Tianshou's atari_ppo.py (0.4.11 and later), whose defaults fill what the table leaves out.
PAPER = replace(
    CLEANRL,
    rollout_steps=100,  # Tianshou: 1,000 steps per collect over 10 environments
    last_minibatch="merged",  # Tianshou: 256 + 256 + 488
)

# Ours, for many environments: 8 times as many steps an update, minibatches 4 times as large, and a learning rate to
# match. Updates so few have to go further each: with a clip of 0.1 the KL of one was 0.001, and Pong
# rose above −19.5 after 1.0M steps instead of 0.47M (one seed each).
FAST = replace(CLEANRL, minibatch_size=1024, learning_rate=1e-3, clip_eps=0.2, value_clip=None)

# How games are divided. Many want more workers than cores, at a priority that lets whoever decides pass first.
FEW = {"lanes": 0, "workers": "auto"}
MANY = {"lanes": 0, "workers": "auto", "priority": "idle"}

FAST_CHECKPOINTS = 2_500_000  # 39,000 steps of each of 64 environments: longer than any game

# SIL's A2C on Atari (baselines): TensorFlow's RMSprop, constant rate, and 0.5 of ½(R − V)².
A2C = A2CConfig(
    rollout_steps=5,
    learning_rate=7e-4,
    rmsprop_form="tensorflow",
    value_coef=0.25,
    entropy_coef=0.01,
    max_grad_norm=0.5,
)


@preset("atari/ppo")
def ppo(game: GameName = "Pong", sticky: Sticky = 0.0, long: Long = False) -> RunConfig:
    """PPO on an Atari game with CleanRL's settings, 8 environments × 128 steps."""
    return _config(_env(game, sticky, num_envs=8), CLEANRL, NO_OPR, long)


@preset("atari/opr")
def opr(game: GameName = "Pong", sticky: Sticky = 0.0, long: Long = False) -> RunConfig:
    """CleanRL's PPO with OPR, our default."""
    return _config(_env(game, sticky, num_envs=8), CLEANRL, OPRConfig(), long)


@preset("atari/paper")
def paper(game: GameName = "Pong", sticky: Sticky = 0.0, long: Long = False) -> RunConfig:
    """The paper's Atari set-up and literal OPR; what it leaves open as in Tianshou's example."""
    literal = OPRConfig.paper("atari")
    # No more than the last N_max steps of a game are ever stored, so no more are kept while it is played.
    literal = replace(literal, max_episode_steps=literal.capacity_transitions)
    config = _config(_env(game, sticky, num_envs=10), PAPER, literal, long)
    return replace(
        config,
        network=NetworkConfig(kind="nature_cnn", initialization="default_heads"),  # Tianshou's
        evaluate_every=100_000,  # "epochs" of 100,000 steps
        evaluate_episodes=10,  # 10 test environments, whole games
        evaluate_in="background",
    )


@preset("atari/fast")
def fast(game: GameName = "Pong", sticky: Sticky = 0.0, long: Long = False) -> RunConfig:
    """PPO with OPR, our default, for a GPU: 64 environments × 128 steps."""
    config = _config(_env(game, sticky, num_envs=64), FAST, OPRConfig(), long)
    return replace(config, checkpoint_every=FAST_CHECKPOINTS)


@preset("atari/ppo-sil")
def ppo_sil(game: GameName = "Pong", sticky: Sticky = 0.0, long: Long = False) -> RunConfig:
    """CleanRL's PPO with self-imitation, the SIL authors' settings for PPO."""
    config = _config(_env(game, sticky, num_envs=8), CLEANRL, NO_OPR, long)
    return replace(config, sil=SILConfig.stock("ppo"))


@preset("atari/a2c")
def a2c(game: GameName = "Pong", sticky: Sticky = 0.0, long: Long = False) -> RunConfig:
    """A2C as the SIL authors run it: 16 environments × 5 steps, a lost life is no end."""
    return _config(_sil_env(game, sticky), A2C, NO_OPR, long)


@preset("atari/a2c-opr")
def a2c_opr(game: GameName = "Pong", sticky: Sticky = 0.0, long: Long = False) -> RunConfig:
    """A2C as the SIL authors run it, with OPR, our default."""
    return _config(_sil_env(game, sticky), A2C, OPRConfig(), long)


@preset("atari/a2c-sil")
def a2c_sil(game: GameName = "Pong", sticky: Sticky = 0.0, long: Long = False) -> RunConfig:
    """A2C with self-imitation, its authors' settings."""
    config = _config(_sil_env(game, sticky), A2C, NO_OPR, long)
    return replace(config, sil=SILConfig.stock("a2c"))


@preset("atari/acper")
def acper(game: GameName = "Pong", sticky: Sticky = 0.0, long: Long = False) -> RunConfig:
    """Actor-critic with prioritised replay, a reconstruction: 16 environments × 20 steps, 4 replayed steps to one."""
    # ACER keeps 50,000 steps an environment; here 50,000 in all, stacked frames of 28 kB each: 1.4 GB.
    learner = ACPERConfig(replay_capacity=50_000, rmsprop_form="tensorflow", value_coef=A2C.value_coef)
    return _config(_sil_env(game, sticky), learner, NO_OPR, long)


@preset("atari/fast-ppo")
def fast_ppo(game: GameName = "Pong", sticky: Sticky = 0.0, long: Long = False) -> RunConfig:
    """PPO for a GPU: `atari/fast` without OPR."""
    return replace(fast(game, sticky, long), opr=NO_OPR)


@preset("atari/smoke")
def smoke(game: GameName = "Pong", sticky: Sticky = 0.0) -> RunConfig:
    """About a minute on two cores: too short to learn anything, long enough to see that everything works."""
    env = _env(game, sticky, num_envs=8)
    return RunConfig(
        total_steps=10_240,
        env=replace(env, kwargs={**env.kwargs, "max_frames": 4_800}),  # games of at most 1,200 steps
        network=NetworkConfig(kind="nature_cnn"),
        algorithm=replace(CLEANRL, rollout_steps=64, epochs=1),
        opr=OPRConfig(capacity_transitions=5_000, capacity_episodes=20, max_episode_steps=1_200, bc_batch_size=64),
        checkpoint_every=10_240,
        final_episodes=2,
    )


def _env(game: str, sticky: float, num_envs: int) -> EnvConfig:
    return EnvConfig(
        id="optimist/Atari-v0",
        num_envs=num_envs,
        kwargs={"game": game, "sticky": sticky, **(FEW if num_envs <= 16 else MANY)},
        clip_rewards=True,
        # A FIRE that the environment presses is no move of the policy's: learning from it as if it were, whose
        # probability may be anything, let ratios grow without bound (docs/envs/atari.md).
        store_executed=False,
        frame_stack=4,
    )


def _sil_env(game: str, sticky: float) -> EnvConfig:
    """The SIL authors' set-up: 16 environments, whole games."""
    env = _env(game, sticky, num_envs=16)
    return replace(env, kwargs={**env.kwargs, "life_loss_ends": False})


def _config(env: EnvConfig, algorithm: AlgorithmConfig, opr: OPRConfig, long: bool) -> RunConfig:
    return RunConfig(
        total_steps=50_000_000 if long else 10_000_000,
        matmul_precision="high",
        env=env,
        network=NetworkConfig(kind="nature_cnn"),
        algorithm=algorithm,
        opr=opr,
        checkpoint_every=1_000_000,  # games restart there: rarely, so that long ones are not cut off too often
        final_episodes=FINAL_GAMES,
    )
