"""CAGE Challenge 2: the Cardiff agent's PPO with and without OPR, other learners next to it, and the best defender."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

from optimist.config import (
    A2CConfig,
    ACPERConfig,
    CardiffPPOConfig,
    EnvConfig,
    NetworkConfig,
    OPRConfig,
    PPOConfig,
    RainbowConfig,
    RunConfig,
    SILConfig,
)
from optimist.config.toml import overlay
from optimist.presets import gym
from optimist.presets.registry import VALUE_BASED_OPR, Method, register

Red = Annotated[str, "Attacker: B_line, Meander, Sleep, or mixed (half B_line, half Meander)."]
Rules = Annotated[str, "Rule set: final, or competition (the leaderboard's)."]
Table = Annotated[str, "Table of alarms: official, or cardiff (used to train the Cardiff agent)."]
Horizon = Annotated[int, "Steps of an episode."]
Green = Annotated[str, "Users: Sleep, or GreenAgent (noise)."]

EPISODES = 100_000  # paper, table of CAGE 2; Cardiff's script too, with episodes of 100 steps
STEPS_PER_UPDATE = 20_000  # Cardiff

CARDIFF = CardiffPPOConfig()  # its defaults are Cardiff's; a rollout is one episode
# Ours: raw penalties of up to 150 an episode and advantages as they are end in policies of a single action.
A2C = A2CConfig(gae_lambda=0.95, normalize_advantages="batch")
ACPER = ACPERConfig(gae_lambda=0.95)
# Ours: as on Gymnasium environments, but more greedy at the end, and fitted to the size of the penalties (0.1 to 10 a
# step, none positive).
DQN = replace(
    gym.DQN,
    rollout_steps=1,
    epsilon_steps=100_000,  # a fifth of the run
    epsilon_final=0.01,
    learning_rate=5e-4,
    target_interval=2_000,
    temperature=1.0,
    cloning_margin=0.5,
)
RAINBOW = replace(
    gym.RAINBOW,
    rollout_steps=1,
    learning_rate=5e-4,
    target_interval=2_000,
    temperature=1.0,
    cloning_margin=0.5,
    value_min=-60.0,  # of an episode of 30 steps
    value_max=0.0,
)

OPR = OPRConfig()
# The SIL authors' settings, except that every episode is stored: no reward is positive, so their rule stores none.
SIL_PPO = replace(SILConfig.stock("ppo"), admission="any")
SIL_A2C = replace(SILConfig.stock("a2c"), admission="any")

# Cardiff's two habits: returns leak from one episode into the one before it, and during the forced opening the sampled
# action is stored instead of the executed one.
LEAK: dict[str, Any] = {"env": {"truncation": "ignored"}}
OPENING_AS_SAMPLED: dict[str, Any] = {"env": {"forced_actions": "sampled"}}
FAITHFUL = overlay(LEAK, OPENING_AS_SAMPLED)
# Without them: returns end with their episode, so values depend on the steps left, which the critic then sees; the
# forced opening is no choice of the policy's.
ENDS: dict[str, Any] = {"env": {"truncation": "end", "steps_left": True}, "network": {"privileged": 1}}
OPENING_MASKED: dict[str, Any] = {"env": {"forced_actions": "masked"}}
CORRECTED = overlay(ENDS, OPENING_MASKED)
# Ours, for learners that take one gradient step on each rollout: short rollouts of 32 environments.
SMALL: dict[str, Any] = {"env": {"num_envs": 32, "reward_scale": 0.1}}
Q_RUN: dict[str, Any] = {
    "env": {"num_envs": 32},
    "total_steps": 500_000,
    "log_every": 32,
    "checkpoint_every": 50_000,
}

Q_TASK = "on Cardiff's interface, 32 environments, 500,000 steps"
METHODS = {
    "cardiff": Method("Cardiff's PPO on Cardiff's interface, its habits included.", CARDIFF, settings=FAITHFUL),
    "cardiff-ends": Method(
        "Cardiff's PPO without its first habit: returns end with their episode, and the critic sees the steps left.",
        CARDIFF,
        settings=overlay(ENDS, OPENING_AS_SAMPLED),
    ),
    "cardiff-opening": Method(
        "Cardiff's PPO without its second habit: no policy loss on the forced opening.",
        CARDIFF,
        settings=overlay(LEAK, OPENING_MASKED),
    ),
    "cardiff-corrected": Method("Cardiff's PPO without either habit: the base of OPR.", CARDIFF, settings=CORRECTED),
    "cardiff-opr-paper": Method(
        "Cardiff's PPO, its habits included, with the paper's OPR.",
        CARDIFF,
        OPRConfig.paper("cage2"),
        settings=overlay(FAITHFUL, {"env": {"group_key": ""}}),  # the paper has one τ for all attackers
    ),
    "cardiff-opr": Method(
        "Cardiff's PPO without its habits, with OPR, our default.",
        CARDIFF,
        OPR,
        settings=CORRECTED,
    ),
    "sil": Method(
        "Cardiff's PPO without its habits, with self-imitation; every episode is stored.",
        CARDIFF,
        sil=SIL_PPO,
        settings=CORRECTED,
    ),
    "opr-sil": Method(
        "Cardiff's PPO without its habits, with OPR, our default, and self-imitation.",
        CARDIFF,
        OPR,
        SIL_PPO,
        settings=CORRECTED,
    ),
    "a2c": Method("A2C on Cardiff's interface, 32 environments.", A2C, settings=SMALL),
    "a2c-opr": Method("A2C on Cardiff's interface with OPR, our default.", A2C, OPR, settings=SMALL),
    "a2c-sil": Method(
        "A2C on Cardiff's interface with self-imitation; every episode is stored.", A2C, sil=SIL_A2C, settings=SMALL
    ),
    "acper": Method(
        "Actor-critic with prioritised replay, a reconstruction, on Cardiff's interface.", ACPER, settings=SMALL
    ),
    "acper-opr": Method("ACPER on Cardiff's interface with OPR, our default.", ACPER, OPR, settings=SMALL),
    "dqn": Method(f"DQN {Q_TASK}.", DQN, settings=Q_RUN),
    "dqn-opr": Method(f"DQN with OPR, our default, {Q_TASK}.", DQN, VALUE_BASED_OPR, settings=Q_RUN),
    "rainbow": Method(f"Rainbow {Q_TASK}.", RAINBOW, settings=Q_RUN),
    "rainbow-opr": Method(f"Rainbow with OPR, our default, {Q_TASK}.", RAINBOW, VALUE_BASED_OPR, settings=Q_RUN),
}
PLAIN = {
    "ppo": Method(
        "Cardiff's PPO on the challenge's own interface, 52 bits and 145 actions: the paper's baseline.", CARDIFF
    )
}
BEST = {
    "best": Method(
        "The strongest defender: memory, useful actions, masks, a critic that sees the true state; the attacker is "
        "not named to it.",
        PPOConfig(
            epochs=3,
            learning_rate=1e-3,
            learning_rate_schedule="linear",
            gamma=0.999,
            gae_lambda=0.95,
            entropy_coef=0.06,
            entropy_coef_final=0.0005,
        ),
    )
}


def cardiff(
    method: Method,
    red: Red = "B_line",
    rules: Rules = "final",
    table: Table = "cardiff",
    horizon: Horizon = 30,
    green: Green = "Sleep",
) -> RunConfig:
    """CAGE Challenge 2, a game of cyber-defence, on Cardiff's interface: 62 inputs, 36 outputs and a forced opening."""
    kwargs = {"red": red, "rules": rules, "table": table, "horizon": horizon, "green": green, "opening": True}
    return _run("optimist/CAGE2Cardiff-v0", kwargs, method)


def plain(
    method: Method,
    red: Red = "B_line",
    rules: Rules = "final",
    table: Table = "official",
    horizon: Horizon = 30,
    green: Green = "Sleep",
) -> RunConfig:
    """The challenge's own interface."""
    kwargs = {"red": red, "rules": rules, "table": table, "horizon": horizon, "green": green}
    return _run("optimist/CAGE2-v0", kwargs, method)


def _run(env_id: str, kwargs: dict[str, Any], method: Method) -> RunConfig:
    """A run of 100,000 episodes: 3 million steps at 30 steps an episode, 150 updates of 666 whole episodes."""
    horizon = max(1, kwargs["horizon"])  # the environment refuses a horizon below 1
    num_envs = max(1, STEPS_PER_UPDATE // horizon) if kwargs["horizon"] > 0 else 1
    algorithm = method.algorithm
    if isinstance(algorithm, CardiffPPOConfig):
        algorithm = replace(algorithm, rollout_steps=horizon)
    if isinstance(algorithm, RainbowConfig) and horizon > 30:  # longer episodes cost more
        algorithm = replace(algorithm, value_min=algorithm.value_min * horizon / 30)
    return RunConfig(
        total_steps=EPISODES * horizon,
        env=EnvConfig(id=env_id, num_envs=num_envs, kwargs=kwargs, truncation="end", group_key="red"),
        network=NetworkConfig(hidden=(64, 64), activation="relu", initialization="default"),  # Cardiff
        algorithm=algorithm,
        checkpoint_every=20 * num_envs * horizon,
    )


BEST_HORIZON = 100
TRUTH = 253  # entries of the observation with the true state, for the critic


def best(
    method: Method,
    rules: Rules = "competition",
    red: Annotated[
        str, "Attacker: mixed (half B_line, half Meander; they show within three steps), B_line or Meander."
    ] = "mixed",
    games: Annotated[int, "Environments in parallel; an update is one episode of each."] = 2048,
) -> RunConfig:
    """One policy for all attackers, trained on the score of the challenge."""
    assert isinstance(method.algorithm, PPOConfig)
    return RunConfig(
        total_steps=68_000_000,  # 332 updates; 4 minutes on an H200 for four concurrent runs
        matmul_precision="high",
        env=EnvConfig(
            id="optimist/CAGE2Expert-v0",
            num_envs=games,
            kwargs={"red": red, "rules": rules, "horizon": BEST_HORIZON, "scored_at": [30, 50, 100]},
            truncation="end",
            group_key="red",
        ),
        network=NetworkConfig(hidden=(256, 128), activation="relu", privileged=TRUTH, action_mask=True),
        algorithm=replace(method.algorithm, rollout_steps=BEST_HORIZON, minibatch_size=max(3_200, 5 * games)),
        checkpoint_every=10_000_000,
        tensorboard=False,
    )


register("cage2", METHODS, cardiff)
register("cage2", PLAIN, plain)
register("cage2", BEST, best)
