"""Atari: CleanRL's PPO, the paper's set-up, the SIL authors' A2C, DQN and Rainbow, and fast versions for a GPU.

One step is one action, 4 frames of the emulator. Sticky actions are off, as in the PPO paper and CleanRL; scores with
and without them belong in different columns.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Literal

from optimist.config import (
    A2CConfig,
    ACPERConfig,
    DQNConfig,
    EnvConfig,
    NetworkConfig,
    OPRConfig,
    PPOConfig,
    RainbowConfig,
    RunConfig,
    SILConfig,
    ValueBasedConfig,
)
from optimist.config.toml import overlay
from optimist.presets.registry import VALUE_BASED_OPR, Method, register

GameName = Annotated[str, "One of the games `optimist games` lists, for example Pong."]
Sticky = Annotated[float, "Probability that the console repeats the previous action; 0.25 in Machado et al. (2018)."]
Emulator = Annotated[
    Literal["auto", "ale", "a2600"],
    "ale-py, or the console of packages/a2600, which plays the same games faster; auto: a2600 where it is installed.",
]
Long = Annotated[bool, "50 million steps (200M frames) instead of 10 million (40M frames)."]

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
# environments: those of Tianshou's atari_ppo.py (0.4.11 and later), whose defaults supply what the table omits.
PAPER = replace(
    CLEANRL,
    rollout_steps=100,  # Tianshou: 1,000 steps per collect over 10 environments
    last_minibatch="merged",  # Tianshou: 256 + 256 + 488
)
# Ours, for many environments: 8 times as many steps an update, minibatches 4 times as large, and a learning rate to
# match. Fewer updates must each change the policy more: with a clip of 0.1 the KL of one was 0.001, and Pong rose above
# −19.5 after 1.0M steps instead of 0.47M (one seed each).
FAST = replace(CLEANRL, minibatch_size=1024, learning_rate=1e-3, clip_eps=0.2, value_clip=None)
# SIL's A2C on Atari (baselines): TensorFlow's RMSprop, constant rate, and 0.5 of ½(R − V)².
A2C = A2CConfig(
    rollout_steps=5,
    learning_rate=7e-4,
    rmsprop_form="tensorflow",
    value_coef=0.25,
    entropy_coef=0.01,
    max_grad_norm=0.5,
)
# ACER keeps 50,000 steps an environment; here 50,000 in all, stacked frames of 28 kB each: 1.4 GB.
ACPER = ACPERConfig(replay_capacity=50_000, rmsprop_form="tensorflow")
# Mnih et al. (2015), extended data table 1. Ours: 8 environments × 4 steps to 8 gradient steps, where theirs is one
# environment and a gradient step every 4 steps: the same ratio, in larger portions.
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
    target_interval=10_000,  # steps, 40,000 frames, as in their code and in dqn_zoo; the article says updates
    loss="huber",
    max_grad_norm=None,
)
# Dopamine's DQN (JAX): Adam, squared errors, and exploration that decreases sooner.
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
    loss="squared",
)
# Hessel et al. (2018): unlike in Dopamine, dueling streams and noisy layers are on. Replay, target and rate are both's.
# σ₀ is dqn_zoo's, and that of Dopamine's full Rainbow; the article's 0.5 is for small networks.
RAINBOW = RainbowConfig(
    rollout_steps=4,
    gradient_steps=8,
    minibatch_size=32,
    replay_capacity=1_000_000,
    save_replay=False,
    learning_starts=20_000,
    learning_rate=6.25e-5,
    adam_eps=1.5e-4,
    noisy_sigma=0.1,
    target_interval=8_000,
    max_grad_norm=10.0,  # as usual where streams are dueling (Wang et al., 2016)
)
# Ours, for 64 environments: steps are replayed as often, in a quarter of the gradient steps, at four times the rate.
# Four, not √4: where gradients are smaller than Adam's ε, its steps are proportional to them.
FAST_MODERN = replace(MODERN, gradient_steps=16, minibatch_size=128, learning_rate=4 * MODERN.learning_rate)
FAST_RAINBOW = replace(RAINBOW, gradient_steps=16, minibatch_size=128, learning_rate=4 * RAINBOW.learning_rate)

OPR = OPRConfig()
# No more than the last N_max steps of an episode are ever stored, so no more are kept while it is played.
PAPER_OPR = OPRConfig.paper("atari")
PAPER_OPR = replace(PAPER_OPR, max_episode_steps=PAPER_OPR.capacity_transitions)
# Other readings of the paper: a memory of 100 whole games, of which the last 4,000 steps are kept; cloning as a phase
# every 50 updates, without the loss term; replayed rows that count like fresh ones.
PAPER_EPISODES = OPRConfig.paper("atari")
PAPER_EPISODES = replace(
    PAPER_EPISODES, capacity_transitions=PAPER_EPISODES.capacity_episodes * PAPER_EPISODES.max_episode_steps
)
PAPER_PHASES = replace(PAPER_OPR, bc_coef=0.0, bc_phase_interval=50, bc_phase_unit="updates")
PAPER_ROWS = replace(PAPER_OPR, augment_rows="full")
SMOKE_OPR = OPRConfig(capacity_transitions=5_000, capacity_episodes=20, max_episode_steps=1_200, bc_batch_size=64)

PAPER_RUN: dict[str, Any] = {
    "env": {"num_envs": 10},
    "network": {"initialization": "default_heads"},  # Tianshou's
    "evaluate_every": 100_000,  # "epochs" of 100,000 steps
    "evaluate_episodes": 10,  # 10 test environments, whole games
    "evaluate_in": "background",
}
# Many emulators profit from more workers than cores, at a priority that lets the learner run first.
MANY: dict[str, Any] = {"num_envs": 64, "kwargs": {"priority": "idle"}}
FAST_RUN: dict[str, Any] = {"env": MANY, "checkpoint_every": 2_500_000}
SIL_ENV: dict[str, Any] = {"env": {"num_envs": 16, "kwargs": {"life_loss_ends": False}}}  # the SIL authors'
SMOKE_RUN: dict[str, Any] = {
    "total_steps": 10_240,
    "matmul_precision": "highest",
    "env": {"kwargs": {"max_frames": 4_800}},  # games of at most 1,200 steps
    "checkpoint_every": 10_240,
    "final_episodes": 2,
}
LIVES: dict[str, Any] = {"env": {"kwargs": {"life_loss_ends": True}}}  # Mnih et al.; Rainbow in dqn_zoo
FAST_Q_RUN: dict[str, Any] = {**FAST_RUN, "policy_lag": 1, "log_every": 32}

METHODS = {
    "ppo": Method("PPO on an Atari game with CleanRL's settings, 8 environments × 128 steps.", CLEANRL),
    "opr": Method("CleanRL's PPO with OPR, our default.", CLEANRL, OPR),
    "paper": Method(
        "The paper's Atari set-up and OPR; what it leaves open as in Tianshou's example.",
        PAPER,
        PAPER_OPR,
        settings=PAPER_RUN,
    ),
    "paper-ppo": Method("The paper's Atari set-up without OPR.", PAPER, settings=PAPER_RUN),
    "paper-episodes": Method(
        "The paper's Atari set-up and OPR, its memory read as 100 episodes.",
        PAPER,
        PAPER_EPISODES,
        settings=PAPER_RUN,
    ),
    "paper-phases": Method(
        "The paper's Atari set-up and OPR, its cloning read as a phase every 50 updates, without the loss term.",
        PAPER,
        PAPER_PHASES,
        settings=PAPER_RUN,
    ),
    "paper-rows": Method(
        "The paper's Atari set-up and OPR, its replayed rows read as rows like others, in every term of the loss.",
        PAPER,
        PAPER_ROWS,
        settings=PAPER_RUN,
    ),
    "fast": Method("PPO with OPR, our default, for a GPU: 64 environments × 128 steps.", FAST, OPR, settings=FAST_RUN),
    "ppo-sil": Method(
        "CleanRL's PPO with self-imitation, the SIL authors' settings for PPO.", CLEANRL, sil=SILConfig.stock("ppo")
    ),
    "a2c": Method(
        "A2C as the SIL authors run it: 16 environments × 5 steps, a lost life is no end.", A2C, settings=SIL_ENV
    ),
    "a2c-opr": Method("A2C as the SIL authors run it, with OPR, our default.", A2C, OPR, settings=SIL_ENV),
    "a2c-sil": Method(
        "A2C with self-imitation, its authors' settings.", A2C, sil=SILConfig.stock("a2c"), settings=SIL_ENV
    ),
    "acper": Method(
        "Actor-critic with prioritised replay, a reconstruction: 16 environments × 20 steps, 4 replayed steps to one.",
        ACPER,
        settings=SIL_ENV,
    ),
    "fast-ppo": Method("PPO for a GPU: `atari/fast` without OPR.", FAST, settings=FAST_RUN),
    "dqn": Method(
        "DQN on an Atari game with the settings of Mnih et al. (2015); a lost life is an end.",
        NATURE,
        settings=LIVES,
    ),
    "dqn-modern": Method("DQN on an Atari game with Dopamine's settings: Adam, less exploration; whole games.", MODERN),
    "dqn-opr": Method("The modern DQN with OPR, our default.", MODERN, VALUE_BASED_OPR),
    "rainbow": Method("Rainbow on an Atari game, all six extensions; a lost life is an end.", RAINBOW, settings=LIVES),
    "rainbow-opr": Method(
        "Rainbow, all six extensions, with OPR, our default.", RAINBOW, VALUE_BASED_OPR, settings=LIVES
    ),
    "fast-dqn": Method(
        "The modern DQN on 64 environments, minibatches of 128, collecting while it learns (a policy lag of 1).",
        FAST_MODERN,
        settings=FAST_Q_RUN,
    ),
    "fast-rainbow": Method(
        "Rainbow on 64 environments, minibatches of 128, collecting while it learns (a policy lag of 1).",
        FAST_RAINBOW,
        settings=overlay(FAST_Q_RUN, LIVES),
    ),
}
SMOKE = {
    "smoke": Method(
        "About a minute on two cores: too short to learn anything, long enough to see that everything works.",
        replace(CLEANRL, rollout_steps=64, epochs=1),
        SMOKE_OPR,
        settings=SMOKE_RUN,
    )
}


def smoke(method: Method, game: GameName = "Pong", sticky: Sticky = 0.0, emulator: Emulator = "auto") -> RunConfig:
    """An Atari game, for a run of fixed length."""
    return atari(method, game, sticky, emulator)


def atari(
    method: Method,
    game: GameName = "Pong",
    sticky: Sticky = 0.0,
    emulator: Emulator = "auto",
    long: Long = False,
) -> RunConfig:
    """An Atari game; `optimist games` lists their names."""
    value_based = isinstance(method.algorithm, ValueBasedConfig)
    kwargs = {"game": game, "sticky": sticky, "emulator": emulator}
    return RunConfig(
        total_steps=50_000_000 if long else 10_000_000,
        matmul_precision="high",
        env=EnvConfig(
            id="optimist/Atari-v0",
            num_envs=8,
            kwargs=kwargs | ({"life_loss_ends": False} if value_based else {}),
            clip_rewards=True,
            # The policy did not choose a FIRE that the environment presses. In a policy gradient its probability, which
            # may be anything, let ratios grow without bound (docs/environments/atari.md); Q-learning is off-policy.
            forced_actions="executed" if value_based else "sampled",
            frame_stack=4,
        ),
        network=NetworkConfig(kind="nature_cnn", initialization="default" if value_based else "orthogonal"),
        algorithm=method.algorithm,
        checkpoint_every=1_000_000,  # with M and the games in play, a checkpoint may have more than a gigabyte
        log_every=256 if value_based else 1,  # updates: 8,192 steps
        final_episodes=30,
    )


register("atari", METHODS, atari)
register("atari", SMOKE, smoke)
