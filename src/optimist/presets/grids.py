"""What the presets of our two sparse-reward grids share: one setting for all methods, none of it tuned per method."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from optimist.algorithms.value_based_config import DQNConfig, RainbowConfig, ValueBasedConfig
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

NO_OPR = OPRConfig(enabled=False)
NO_SIL = SILConfig()

PPO = PPOConfig(
    rollout_steps=64,  # × 16 envs = 1,024 steps an update
    epochs=4,
    minibatch_size=256,
    learning_rate=1e-3,
    entropy_coef=0.01,
)

A2C = A2CConfig(
    rollout_steps=16,  # × 16 envs; ours: with A2C's usual 5, no rollout holds a whole DeepSea-12 episode
    learning_rate=1e-3,  # as PPO's
    entropy_coef=0.01,
)


ACPER = ACPERConfig(
    rollout_steps=A2C.rollout_steps,
    learning_rate=A2C.learning_rate,
    entropy_coef=A2C.entropy_coef,
    max_grad_norm=A2C.max_grad_norm,
    replay_start=1_000,  # ours: the 10,000 of Atari runs are a twentieth of this one
)

DQN = DQNConfig(
    rollout_steps=4,  # × 16 envs = 64 steps an update
    gradient_steps=8,
    minibatch_size=64,  # each step is learnt from 8 times; PPO's 4 passes take larger minibatches
    learning_rate=1e-3,  # as PPO's
    epsilon_steps=100_000,  # half of the run
    epsilon_final=0.01,  # at the usual 0.05 one of four DeepSea-12 episodes fails by chance
    target_interval=1_000,
)

RAINBOW = RainbowConfig(
    rollout_steps=DQN.rollout_steps,
    gradient_steps=DQN.gradient_steps,
    minibatch_size=DQN.minibatch_size,
    learning_rate=DQN.learning_rate,
    target_interval=DQN.target_interval,
    value_min=-1.0,  # returns lie between −0.01 and 1.1
    value_max=2.0,
)

VALUE_BASED_OPR = OPRConfig(bc_batch_size=64)
"""Our default, with as many cloned steps as a value-based learner's minibatch has replayed ones: its gradient steps are
many and small."""


def stock_sil(learner: str) -> SILConfig:
    """The SIL authors' settings; ours is only that it does not wait for 100 steps, eight successes of DeepSea-12."""
    return replace(SILConfig.stock(learner), start_transitions=1)


class Method(NamedTuple):
    """A learner and what holds it to the past."""

    name: str
    algorithm: AlgorithmConfig
    opr: OPRConfig
    sil: SILConfig
    text: str


METHODS = (
    Method("ppo-sil", PPO, NO_OPR, stock_sil("ppo"), "PPO with self-imitation, its authors' settings"),
    Method("ppo-opr-sil", PPO, OPRConfig(), stock_sil("ppo"), "PPO with OPR, our default, and self-imitation"),
    Method("a2c-sil", A2C, NO_OPR, stock_sil("a2c"), "A2C with self-imitation, its authors' settings"),
    Method("a2c-sil-opr", A2C, OPRConfig(), stock_sil("a2c"), "A2C with OPR, our default, and self-imitation"),
    Method("acper", ACPER, NO_OPR, NO_SIL, "Actor-critic with prioritised replay, a reconstruction"),
    Method("acper-opr", ACPER, OPRConfig(), NO_SIL, "ACPER with OPR, our default"),
    Method("dqn", DQN, NO_OPR, NO_SIL, "DQN"),
    Method("dqn-opr", DQN, VALUE_BASED_OPR, NO_SIL, "DQN with OPR, our default"),
    Method("rainbow", RAINBOW, NO_OPR, NO_SIL, "Rainbow"),
    Method("rainbow-opr", RAINBOW, VALUE_BASED_OPR, NO_SIL, "Rainbow with OPR, our default"),
)
"""Beyond PPO, A2C and OPR, which have functions of their own."""


def literal_opr() -> OPRConfig:
    """The paper's method and Atari numbers, with a memory that fits a grid.

    Changed: `capacity_transitions` 100 → 5,000, and `capacity_episodes` out of the way (no episode is shorter than a
    step). Of the values the paper does not give, K = 100 and 256 cloned steps a minibatch are ours.
    """
    return replace(
        OPRConfig.paper("atari"),
        capacity_transitions=5_000,
        capacity_episodes=5_000,
        return_window=100,
        bc_batch_size=256,
    )


def grid_config(env: EnvConfig, algorithm: AlgorithmConfig, opr: OPRConfig, sil: SILConfig = NO_SIL) -> RunConfig:
    """A run of 200,000 steps on a grid; MLP-64 on one-hot observations."""
    return RunConfig(
        total_steps=200_000,
        env=env,
        network=NetworkConfig(hidden=(64, 64), activation="tanh"),
        algorithm=algorithm,
        opr=opr,
        sil=sil,
        log_every=16 if isinstance(algorithm, ValueBasedConfig) else 1,  # their updates are of 64 steps
    )
