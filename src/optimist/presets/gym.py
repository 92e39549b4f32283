"""Gymnasium environments by id: values known to solve the classic ones, robust ones for the rest; and MuJoCo."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

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
)
from optimist.presets.atari import CLEANRL
from optimist.presets.registry import VALUE_BASED_OPR, Method, register

# Environment id → steps, environments and PPO. Origin: RL Baselines3 Zoo, hyperparams/ppo.yml, except where a line says
# "ours"; those values were chosen on seeds 0 to 2. Not available here: a decreasing clip range, observation
# normalisation, state-dependent exploration.
PPO_SETTINGS = {
    "CartPole-v1": (
        100_000,
        8,
        PPOConfig(
            rollout_steps=32, epochs=20, minibatch_size=256, learning_rate=1e-3, learning_rate_schedule="linear",
            gamma=0.98, gae_lambda=0.8, entropy_coef=0.0,
        ),
    ),
    "Acrobot-v1": (
        200_000,  # ours: the zoo's 1,000,000 are not needed
        16,
        PPOConfig(
            rollout_steps=256, epochs=10, minibatch_size=256, learning_rate=1e-3,  # passes, minibatch and rate: ours
            gamma=0.99, gae_lambda=0.94, entropy_coef=0.0,
        ),
    ),
    "LunarLander-v3": (
        1_000_000,
        16,
        PPOConfig(
            # Ours: shorter rollouts, no entropy bonus, a decreasing rate. The zoo's 1,024 steps, 4 passes, minibatches
            # of 64, rate 3e-4 and bonus 0.01 end at 175 (seed 0), these at 257.
            rollout_steps=256, epochs=8, minibatch_size=256, learning_rate=1e-3, learning_rate_schedule="linear",
            gamma=0.999, gae_lambda=0.98, entropy_coef=0.0,
        ),
    ),
    "Pendulum-v1": (
        200_000,  # ours: 100,000 in the zoo, with state-dependent exploration
        8,  # ours: 4 × 1,024 steps there
        PPOConfig(
            rollout_steps=256, epochs=10, minibatch_size=128, learning_rate=1e-3, learning_rate_schedule="linear",
            gamma=0.9, gae_lambda=0.95, entropy_coef=0.0,
        ),
    ),
}  # fmt: skip

# Stable-Baselines3's own defaults for PPO and A2C, the 2,048 steps of a PPO update spread over 8 environments.
PPO = PPOConfig(rollout_steps=256, epochs=10, minibatch_size=64, learning_rate=3e-4, entropy_coef=0.0)
PPO_STEPS = 1_000_000
A2C = A2CConfig(rollout_steps=5, learning_rate=7e-4, gae_lambda=1.0, entropy_coef=0.0)
# A2C's settings; segments of 20 steps as in ACER; replay starts sooner than on Atari (ours).
ACPER = ACPERConfig(rollout_steps=20, learning_rate=7e-4, entropy_coef=0.0, max_grad_norm=0.5, replay_start=1_000)

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
    value_min=-100.0,  # ours: the sum of usual rewards at γ = 0.99
    value_max=100.0,
)

OPR = OPRConfig()
# The Atari table's 100 transitions are less than one good CartPole episode: the memory has our default size instead.
PAPER_OPR = replace(
    OPRConfig.paper("atari"), capacity_transitions=OPR.capacity_transitions, capacity_episodes=OPR.capacity_episodes
)
# The SIL authors' settings, but any episode is stored, as all rewards may be negative, and time limits bootstrap.
SIL_PPO = replace(SILConfig.stock("ppo"), admission="any", time_limit="bootstrap")
SIL_A2C = replace(SILConfig.stock("a2c"), admission="any", time_limit="bootstrap")

A2C_RUN: dict[str, Any] = {"total_steps": 500_000}  # the zoo's for CartPole-v1
Q_RUN: dict[str, Any] = {
    "total_steps": 100_000,
    "network": {"hidden": (64, 64), "activation": "relu", "initialization": "default"},  # Stable-Baselines3's
    "log_every": 32,  # updates: 1,024 steps
}
TASK = "on a Gymnasium environment"
Q_TASK = "on any Gymnasium environment with Discrete actions"
GYM = {
    "ppo": Method(f"PPO {TASK}.", PPO),
    "opr": Method(f"PPO with OPR, our default, {TASK}.", PPO, OPR),
    "opr-paper": Method(f"PPO with the paper's OPR {TASK}; memory of 50,000 transitions.", PPO, PAPER_OPR),
    "a2c": Method(f"A2C {TASK}.", A2C, settings=A2C_RUN),
    "a2c-opr": Method(f"A2C with OPR, our default, {TASK}.", A2C, OPR, settings=A2C_RUN),
    "ppo-sil": Method(f"PPO with self-imitation {TASK}.", PPO, sil=SIL_PPO),
    "ppo-opr-sil": Method(f"PPO with OPR, our default, and self-imitation {TASK}.", PPO, OPR, SIL_PPO),
    "a2c-sil": Method(f"A2C with self-imitation {TASK}.", A2C, sil=SIL_A2C, settings=A2C_RUN),
    "acper": Method(f"Actor-critic with prioritised replay, a reconstruction, {TASK}.", ACPER, settings=A2C_RUN),
    "acper-opr": Method(f"ACPER with OPR, our default, {TASK}.", ACPER, OPR, settings=A2C_RUN),
    "dqn": Method(f"DQN {Q_TASK}.", DQN, settings=Q_RUN),
    "dqn-opr": Method(f"DQN with OPR, our default, {Q_TASK}.", DQN, VALUE_BASED_OPR, settings=Q_RUN),
    "rainbow": Method(f"Rainbow {Q_TASK}.", RAINBOW, settings=Q_RUN),
    "rainbow-opr": Method(f"Rainbow with OPR, our default, {Q_TASK}.", RAINBOW, VALUE_BASED_OPR, settings=Q_RUN),
}

# CleanRL's ppo_continuous_action: 2,048 steps an update, 32 minibatches, 10 passes. Its one environment is eight here,
# for speed. The other values are those of its ppo_atari.
MUJOCO_PPO = replace(
    CLEANRL,
    rollout_steps=256,
    epochs=10,
    minibatch_size=64,
    learning_rate=3e-4,
    clip_eps=0.2,
    value_clip=0.2,
    entropy_coef=0.0,
)
MUJOCO_SIL = SILConfig.stock("ppo")
MUJOCO = {
    "ppo": Method("PPO on a MuJoCo task with CleanRL's settings.", MUJOCO_PPO),
    "ppo-opr": Method("PPO on a MuJoCo task with OPR, our default.", MUJOCO_PPO, OPR),
    "ppo-sil": Method("PPO on a MuJoCo task with self-imitation, its authors' settings.", MUJOCO_PPO, sil=MUJOCO_SIL),
    "ppo-opr-sil": Method(
        "PPO on a MuJoCo task with OPR, our default, and self-imitation.", MUJOCO_PPO, OPR, MUJOCO_SIL
    ),
}


def gym(method: Method, env: Annotated[str, "Gymnasium id, for example CartPole-v1."] = "CartPole-v1") -> RunConfig:
    """A Gymnasium environment; PPO has values of its own for the classic ones."""
    total_steps, num_envs, algorithm = PPO_STEPS, 8, method.algorithm
    if isinstance(method.algorithm, PPOConfig):
        total_steps, num_envs, algorithm = PPO_SETTINGS.get(env, (total_steps, num_envs, algorithm))
    return RunConfig(total_steps=total_steps, env=EnvConfig(id=env, num_envs=num_envs), algorithm=algorithm)


def mujoco(
    method: Method,
    env: Annotated[str, "Gymnasium id, for example Hopper-v5 or HalfCheetah-v5."] = "Hopper-v5",
    delay: Annotated[int, "Rewards are paid as a sum every so many steps; 1 for no delay, 20 in Oh et al."] = 1,
) -> RunConfig:
    """A MuJoCo task, with immediate or delayed rewards."""
    return RunConfig(
        total_steps=1_000_000,
        env=EnvConfig(
            id=env,
            num_envs=8,
            reward_delay=delay,
            # CleanRL divides by the running deviation of discounted returns. A fixed factor of about that size keeps
            # returns in a memory comparable with values, and thresholds in the same units throughout.
            reward_scale=0.01,
        ),
        network=NetworkConfig(hidden=(64, 64), activation="tanh", normalize_observations=True),
        algorithm=method.algorithm,
        checkpoint_every=250_000,  # environments restart there
    )


register("gym", GYM, gym)
register("mujoco", MUJOCO, mujoco)
