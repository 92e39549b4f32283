"""CAGE Challenge 2: the Cardiff agent's PPO, faithful, with OPR, and on the plain interface; of the paper's size."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

from optimist.anchors.config import SILConfig
from optimist.config import A2CConfig, ACPERConfig, CardiffPPOConfig, EnvConfig, NetworkConfig, RunConfig
from optimist.core.config import OPRConfig
from optimist.presets.grids import NO_OPR, NO_SIL
from optimist.presets.registry import preset

Red = Annotated[str, "Attacker: B_line, Meander, Sleep, or mixed (half B_line, half Meander)."]
Rules = Annotated[str, "Rule set: final, or competition (the leaderboard's)."]
Table = Annotated[str, "Table of alarms: official, or cardiff (what the Cardiff agent was trained with)."]
Horizon = Annotated[int, "Steps of a game."]
Green = Annotated[str, "Users: Sleep, or GreenAgent (noise)."]

EPISODES = 100_000  # paper, table of CAGE 2; Cardiff's script too, with games of 100 steps
STEPS_PER_UPDATE = 20_000  # Cardiff
SMALL_GAMES = 32


@preset("cage2/cardiff")
def cardiff(
    red: Red = "B_line", rules: Rules = "final", table: Table = "cardiff", horizon: Horizon = 30, green: Green = "Sleep"
) -> RunConfig:
    """Cardiff's PPO on Cardiff's interface, its habits included."""
    game = {"red": red, "rules": rules, "table": table, "horizon": horizon, "green": green, "opening": True}
    return _config(_cardiff_env(game, faithful=True), NO_OPR)


@preset("cage2/cardiff-opr-paper")
def cardiff_opr_paper(
    red: Red = "B_line", rules: Rules = "final", table: Table = "cardiff", horizon: Horizon = 30, green: Green = "Sleep"
) -> RunConfig:
    """Cardiff's PPO, its habits included, with OPR as the paper has it."""
    game = {"red": red, "rules": rules, "table": table, "horizon": horizon, "green": green, "opening": True}
    return _config(_cardiff_env(game, faithful=True), OPRConfig.paper("cage2"))


@preset("cage2/cardiff-opr")
def cardiff_opr(
    red: Red = "B_line", rules: Rules = "final", table: Table = "cardiff", horizon: Horizon = 30, green: Green = "Sleep"
) -> RunConfig:
    """Cardiff's PPO with OPR, our default; learns from executed actions, and a game's return ends with it."""
    game = {"red": red, "rules": rules, "table": table, "horizon": horizon, "green": green, "opening": True}
    return _config(_cardiff_env(game, faithful=False), OPRConfig())


@preset("cage2/ppo")
def ppo(
    red: Red = "B_line",
    rules: Rules = "final",
    table: Table = "official",
    horizon: Horizon = 30,
    green: Green = "Sleep",
) -> RunConfig:
    """Cardiff's PPO on the challenge's own interface, 52 bits and 145 actions: the paper's baseline."""
    game = {"red": red, "rules": rules, "table": table, "horizon": horizon, "green": green}
    return _config(_env("optimist/CAGE2-v0", game), NO_OPR)


@preset("cage2/sil")
def sil(
    red: Red = "B_line", rules: Rules = "final", table: Table = "cardiff", horizon: Horizon = 30, green: Green = "Sleep"
) -> RunConfig:
    """Cardiff's PPO with self-imitation, every game stored: no reward is positive, so the authors' rule stores none."""
    return _opening_config(red, rules, table, horizon, green, NO_OPR, _sil("ppo"))


@preset("cage2/opr-sil")
def opr_sil(
    red: Red = "B_line", rules: Rules = "final", table: Table = "cardiff", horizon: Horizon = 30, green: Green = "Sleep"
) -> RunConfig:
    """Cardiff's PPO with OPR, our default, and self-imitation."""
    return _opening_config(red, rules, table, horizon, green, OPRConfig(), _sil("ppo"))


@preset("cage2/a2c")
def a2c(
    red: Red = "B_line", rules: Rules = "final", table: Table = "cardiff", horizon: Horizon = 30, green: Green = "Sleep"
) -> RunConfig:
    """A2C on Cardiff's interface, 32 games side by side."""
    return _small_updates(_opening_config(red, rules, table, horizon, green, NO_OPR), A2CConfig())


@preset("cage2/a2c-opr")
def a2c_opr(
    red: Red = "B_line", rules: Rules = "final", table: Table = "cardiff", horizon: Horizon = 30, green: Green = "Sleep"
) -> RunConfig:
    """A2C on Cardiff's interface with OPR, our default."""
    return _small_updates(_opening_config(red, rules, table, horizon, green, OPRConfig()), A2CConfig())


@preset("cage2/a2c-sil")
def a2c_sil(
    red: Red = "B_line", rules: Rules = "final", table: Table = "cardiff", horizon: Horizon = 30, green: Green = "Sleep"
) -> RunConfig:
    """A2C on Cardiff's interface with self-imitation, every game stored."""
    return _small_updates(_opening_config(red, rules, table, horizon, green, NO_OPR, _sil("a2c")), A2CConfig())


@preset("cage2/acper")
def acper(
    red: Red = "B_line", rules: Rules = "final", table: Table = "cardiff", horizon: Horizon = 30, green: Green = "Sleep"
) -> RunConfig:
    """Actor-critic with prioritised replay, a reconstruction, on Cardiff's interface."""
    return _small_updates(_opening_config(red, rules, table, horizon, green, NO_OPR), ACPERConfig())


@preset("cage2/acper-opr")
def acper_opr(
    red: Red = "B_line", rules: Rules = "final", table: Table = "cardiff", horizon: Horizon = 30, green: Green = "Sleep"
) -> RunConfig:
    """ACPER on Cardiff's interface with OPR, our default."""
    return _small_updates(_opening_config(red, rules, table, horizon, green, OPRConfig()), ACPERConfig())


def _sil(learner: str) -> SILConfig:
    """The SIL authors' settings, but for the rule of what is stored."""
    return replace(SILConfig.stock(learner), admission="any")


def _opening_config(
    red: str, rules: str, table: str, horizon: int, green: str, opr: OPRConfig, sil: SILConfig = NO_SIL
) -> RunConfig:
    """Cardiff's interface and opening without its two habits, as for `cage2/cardiff-opr`."""
    game = {"red": red, "rules": rules, "table": table, "horizon": horizon, "green": green, "opening": True}
    return replace(_config(_cardiff_env(game, faithful=False), opr), sil=sil)


def _small_updates(config: RunConfig, learner: A2CConfig | ACPERConfig) -> RunConfig:
    """For learners that take one step on each rollout: short ones of 32 games instead of Cardiff's 20,000 steps. Ours.

    Raw penalties of up to 150 a game and advantages as they come end in policies of a single action.
    """
    env = replace(config.env, num_envs=SMALL_GAMES, reward_scale=0.1)
    return replace(config, env=env, algorithm=replace(learner, gae_lambda=0.95, normalize_advantages="batch"))


def _cardiff_env(game: dict[str, Any], *, faithful: bool) -> EnvConfig:
    """Cardiff's 62 inputs, 36 outputs and opening.

    Faithful means its two habits: returns leak from one game into the one before it, and during the forced opening
    the action that was drawn is stored, not the one that was played.
    """
    return _env("optimist/CAGE2Cardiff-v0", game, "ignored" if faithful else "end", store_executed=not faithful)


def _env(name: str, game: dict[str, Any], truncation: Any = "end", *, store_executed: bool = True) -> EnvConfig:
    """As many games side by side as make Cardiff's 20,000 steps when each is played to its end."""
    return EnvConfig(
        id=name,
        num_envs=max(1, STEPS_PER_UPDATE // game["horizon"]) if game["horizon"] > 0 else 1,
        kwargs=game,
        truncation=truncation,
        store_executed=store_executed,
        group_key="red",  # a threshold per attacker
    )


def _config(env: EnvConfig, opr: OPRConfig) -> RunConfig:
    """A run of 100,000 games: 3 million steps at 30 steps a game, 150 updates of 666 whole games."""
    horizon = max(1, env.kwargs["horizon"])
    return RunConfig(
        total_steps=EPISODES * horizon,
        env=env,
        network=NetworkConfig(hidden=(64, 64), activation="relu", initialization="default"),  # Cardiff
        algorithm=CardiffPPOConfig(rollout_steps=horizon),  # its defaults are Cardiff's
        opr=opr,
        checkpoint_every=20 * env.num_envs * horizon,
    )
