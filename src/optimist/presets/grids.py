"""What the presets of our two sparse-reward grids share: one setting for all methods, none of it tuned per method."""

from __future__ import annotations

from dataclasses import replace

from optimist.config import A2CConfig, AlgorithmConfig, EnvConfig, NetworkConfig, PPOConfig, RunConfig
from optimist.core.config import OPRConfig

NO_OPR = OPRConfig(enabled=False)

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


def grid_config(env: EnvConfig, algorithm: AlgorithmConfig, opr: OPRConfig) -> RunConfig:
    """A run of 200,000 steps on a grid; MLP-64 on one-hot observations."""
    return RunConfig(
        total_steps=200_000,
        env=env,
        network=NetworkConfig(hidden=(64, 64), activation="tanh"),
        algorithm=algorithm,
        opr=opr,
    )
