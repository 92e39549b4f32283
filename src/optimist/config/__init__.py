"""Every setting of a run, as frozen dataclasses that validate themselves; imports no torch."""

from __future__ import annotations

from optimist.config.actor_critic import A2CConfig, ACPERConfig, ActorCriticConfig, CardiffPPOConfig, PPOConfig
from optimist.config.run import AlgorithmConfig, EnvConfig, NetworkConfig, RunConfig
from optimist.config.sil import SILConfig
from optimist.config.value_based import DQNConfig, RainbowConfig, ValueBasedConfig
from optimist.core.config import OPRConfig
from optimist.core.settings import whole_number

__all__ = [
    "A2CConfig",
    "ACPERConfig",
    "ActorCriticConfig",
    "AlgorithmConfig",
    "CardiffPPOConfig",
    "DQNConfig",
    "EnvConfig",
    "NetworkConfig",
    "OPRConfig",
    "PPOConfig",
    "RainbowConfig",
    "RunConfig",
    "SILConfig",
    "ValueBasedConfig",
    "whole_number",
]
