"""optimist: Optimistic Policy Regularization (OPR), a memory of good episodes that a policy gradient holds on to."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from optimist.config import A2CConfig, EnvConfig, NetworkConfig, PPOConfig, RunConfig
    from optimist.core.anchor import Anchor, NoAnchor
    from optimist.core.config import OPRConfig
    from optimist.core.episode import Steps
    from optimist.core.regularizer import OptimisticRegularizer
    from optimist.door import Agent, load, train
    from optimist.errors import OptimistError

__version__ = "0.1.0"

_HOME = {
    "optimist.config": ["A2CConfig", "EnvConfig", "NetworkConfig", "PPOConfig", "RunConfig"],
    "optimist.core.anchor": ["Anchor", "NoAnchor"],
    "optimist.core.config": ["OPRConfig"],
    "optimist.core.episode": ["Steps"],
    "optimist.core.regularizer": ["OptimisticRegularizer"],
    "optimist.door": ["Agent", "load", "train"],
    "optimist.errors": ["OptimistError"],
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "A2CConfig",
    "Agent",
    "Anchor",
    "EnvConfig",
    "NetworkConfig",
    "NoAnchor",
    "OPRConfig",
    "OptimistError",
    "OptimisticRegularizer",
    "PPOConfig",
    "RunConfig",
    "Steps",
    "load",
    "train",
]


def __getattr__(name: str) -> Any:  # names are loaded when first used, so that `optimist --help` needs no torch
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'optimist' has no attribute '{name}'")
    return getattr(importlib.import_module(_MODULE_OF[name]), name)
