"""The method: six short equations and one buffer. Knows torch, the standard library and `optimist.errors`."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from optimist.core.admission import ReturnWindow
    from optimist.core.advantages import discounted_returns, gae
    from optimist.core.anchor import Anchor, NoAnchor
    from optimist.core.cloning import bc_loss
    from optimist.core.config import OPRConfig
    from optimist.core.episode import Episode, EpisodeBuilder
    from optimist.core.memory import GoodEpisodeMemory, GoodRows
    from optimist.core.policy import Policy
    from optimist.core.regularizer import OptimisticRegularizer
    from optimist.core.shaping import bound_log_ratio, log_ratio, shape_rewards
    from optimist.core.steps import Batch, Rollout, Steps

_HOME = {
    "advantages": ["discounted_returns", "gae"],
    "anchor": ["Anchor", "NoAnchor"],
    "steps": ["Batch", "Rollout", "Steps"],
    "cloning": ["bc_loss"],
    "config": ["OPRConfig"],
    "episode": ["Episode", "EpisodeBuilder"],
    "memory": ["GoodEpisodeMemory", "GoodRows"],
    "policy": ["Policy"],
    "regularizer": ["OptimisticRegularizer"],
    "shaping": ["bound_log_ratio", "log_ratio", "shape_rewards"],
    "admission": ["ReturnWindow"],
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "Anchor",
    "Batch",
    "Episode",
    "EpisodeBuilder",
    "GoodEpisodeMemory",
    "GoodRows",
    "NoAnchor",
    "OPRConfig",
    "OptimisticRegularizer",
    "Policy",
    "ReturnWindow",
    "Rollout",
    "Steps",
    "bc_loss",
    "bound_log_ratio",
    "discounted_returns",
    "gae",
    "log_ratio",
    "shape_rewards",
]


def __getattr__(name: str) -> Any:  # torch is loaded by the first name that needs it, not by the config
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'optimist.core' has no attribute '{name}'")
    return getattr(importlib.import_module(f"optimist.core.{_MODULE_OF[name]}"), name)
