"""DeepSea, Key-Door-Treasure and pure luck: one set of values for all methods, tuned for none."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

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
from optimist.presets.registry import VALUE_BASED_OPR, Method, register

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
    replay_start=1_000,  # ours: the 10,000 of Atari runs are a twentieth of this run
)
DQN = DQNConfig(
    rollout_steps=4,  # × 16 envs = 64 steps an update
    gradient_steps=8,
    minibatch_size=64,  # each step is replayed 8 times; PPO's 4 passes use larger minibatches
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
    value_min=-1.0,  # returns are between −0.01 and 1.1
    value_max=2.0,
)

OPR = OPRConfig()
# The paper's method and Atari numbers with a memory that fits a grid: `capacity_transitions` 100 → 5,000, and no limit
# by episodes (none is shorter than a step). The paper gives no K and no number of cloned rows; these are ours.
PAPER_OPR = replace(
    OPRConfig.paper("atari"), capacity_transitions=5_000, capacity_episodes=5_000, return_window=100, bc_batch_size=256
)
# The SIL authors' settings. Ours: imitation starts at once, as 100 steps are eight successful DeepSea-12 episodes.
SIL_PPO = replace(SILConfig.stock("ppo"), start_transitions=1)
SIL_A2C = replace(SILConfig.stock("a2c"), start_transitions=1)


def _methods(task: str) -> dict[str, Method]:
    return {
        "ppo": Method(f"PPO on {task}.", PPO),
        "opr": Method(f"PPO with OPR, our default, on {task}.", PPO, OPR),
        "opr-paper": Method(f"PPO with the paper's OPR on {task}; memory of 5,000 transitions.", PPO, PAPER_OPR),
        "a2c": Method(f"A2C on {task}.", A2C),
        "a2c-opr": Method(f"A2C with OPR, our default, on {task}.", A2C, OPR),
        "ppo-sil": Method(f"PPO with self-imitation, its authors' settings, on {task}.", PPO, sil=SIL_PPO),
        "ppo-opr-sil": Method(f"PPO with OPR, our default, and self-imitation, on {task}.", PPO, OPR, SIL_PPO),
        "a2c-sil": Method(f"A2C with self-imitation, its authors' settings, on {task}.", A2C, sil=SIL_A2C),
        "a2c-sil-opr": Method(f"A2C with OPR, our default, and self-imitation, on {task}.", A2C, OPR, SIL_A2C),
        "acper": Method(f"Actor-critic with prioritised replay, a reconstruction, on {task}.", ACPER),
        "acper-opr": Method(f"ACPER with OPR, our default, on {task}.", ACPER, OPR),
        "dqn": Method(f"DQN on {task}.", DQN),
        "dqn-opr": Method(f"DQN with OPR, our default, on {task}.", DQN, VALUE_BASED_OPR),
        "rainbow": Method(f"Rainbow on {task}.", RAINBOW),
        "rainbow-opr": Method(f"Rainbow with OPR, our default, on {task}.", RAINBOW, VALUE_BASED_OPR),
    }


def deepsea(
    method: Method,
    size: Annotated[
        int, "N. Rows and columns of the grid; random actions reach the treasure with probability 2^−N."
    ] = 12,
) -> RunConfig:
    """DeepSea: N rows to descend, one path to the treasure, a small cost on the way."""
    return _grid("optimist/DeepSea-v0", method, size=size)


def keydoor(
    method: Method,
    height: Annotated[int, "H. Rows of the H × 9 grid."] = 6,
    apple: Annotated[bool, "Put an apple worth 0.1 near the start."] = False,
) -> RunConfig:
    """Key-Door-Treasure: fetch the key that unlocks the way to the treasure."""
    return _grid("optimist/KeyDoorTreasure-v0", method, height=height, apple=apple)


def pureluck(
    method: Method,
    length: Annotated[int, "Steps of an episode."] = 10,
    actions: Annotated[int, "Actions, none of which has an effect."] = 4,
) -> RunConfig:
    """Pure luck: rewards that do not depend on actions; good episodes teach nothing."""
    return _grid("optimist/PureLuck-v0", method, length=length, actions=actions)


def _grid(env_id: str, method: Method, **kwargs: int) -> RunConfig:
    return RunConfig(
        total_steps=200_000,
        env=EnvConfig(id=env_id, num_envs=16, kwargs=kwargs),
        network=NetworkConfig(hidden=(64, 64), activation="tanh"),  # on one-hot observations
        algorithm=method.algorithm,
        log_every=16 if isinstance(method.algorithm, ValueBasedConfig) else 1,  # their updates are of 64 steps
    )


register("deepsea", _methods("DeepSea"), deepsea)
register("keydoor", _methods("Key-Door-Treasure"), keydoor)
register("pureluck", {name: _methods("pure luck")[name] for name in ("ppo", "opr", "opr-paper")}, pureluck)
