"""MuJoCo: CleanRL's PPO for continuous control, with OPR and with self-imitation; rewards at once or delayed."""

from __future__ import annotations

from typing import Annotated

from optimist.anchors.config import SILConfig
from optimist.config import EnvConfig, NetworkConfig, PPOConfig, RunConfig
from optimist.core.config import OPRConfig
from optimist.presets.grids import NO_OPR, NO_SIL
from optimist.presets.registry import preset

EnvId = Annotated[str, "Gymnasium id, for example Hopper-v5 or HalfCheetah-v5."]
Delay = Annotated[int, "Steps over which rewards are held back and then paid at once; 1 for none, 20 in Oh et al."]

# CleanRL's ppo_continuous_action: 2,048 steps an update, 32 minibatches, 10 passes, learning rate to 0. Its one
# environment is eight here, for speed.
PPO = PPOConfig(
    rollout_steps=256,
    epochs=10,
    minibatch_size=64,
    learning_rate=3e-4,
    learning_rate_schedule="linear",
    adam_eps=1e-5,
    gamma=0.99,
    gae_lambda=0.95,
    clip_eps=0.2,
    value_clip=0.2,
    value_coef=0.25,  # of (R − V)²: CleanRL's 0.5 of ½(R − V)²
    entropy_coef=0.0,
    max_grad_norm=0.5,
    normalize_advantages="minibatch",
)


@preset("mujoco/ppo")
def ppo(env: EnvId = "Hopper-v5", delay: Delay = 1) -> RunConfig:
    """PPO on a MuJoCo task with CleanRL's settings."""
    return _config(env, delay, NO_OPR)


@preset("mujoco/ppo-opr")
def ppo_opr(env: EnvId = "Hopper-v5", delay: Delay = 1) -> RunConfig:
    """PPO on a MuJoCo task with OPR, our default."""
    return _config(env, delay, OPRConfig())


@preset("mujoco/ppo-sil")
def ppo_sil(env: EnvId = "Hopper-v5", delay: Delay = 1) -> RunConfig:
    """PPO on a MuJoCo task with self-imitation, its authors' settings."""
    return _config(env, delay, NO_OPR, SILConfig.stock("ppo"))


@preset("mujoco/ppo-opr-sil")
def ppo_opr_sil(env: EnvId = "Hopper-v5", delay: Delay = 1) -> RunConfig:
    """PPO on a MuJoCo task with OPR, our default, and self-imitation."""
    return _config(env, delay, OPRConfig(), SILConfig.stock("ppo"))


def _config(env: str, delay: int, opr: OPRConfig, sil: SILConfig = NO_SIL) -> RunConfig:
    return RunConfig(
        total_steps=1_000_000,
        env=EnvConfig(
            id=env,
            num_envs=8,
            reward_delay=delay,
            # CleanRL divides by the running spread of discounted returns. A fixed factor of about that size keeps
            # returns in a memory comparable with values, and thresholds in the same units throughout.
            reward_scale=0.01,
        ),
        network=NetworkConfig(hidden=(64, 64), activation="tanh", normalize_observations=True),
        algorithm=PPO,
        opr=opr,
        sil=sil,
        checkpoint_every=250_000,  # environments restart there
    )
