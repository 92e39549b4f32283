"""optimist: Optimistic Policy Regularization (OPR), a policy gradient regularized by a memory of good episodes."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from optimist.api import Agent, load, resume, train
    from optimist.config import A2CConfig, EnvConfig, NetworkConfig, PPOConfig, RunConfig
    from optimist.core.anchor import Anchor, NoAnchor
    from optimist.core.config import OPRConfig
    from optimist.core.regularizer import OptimisticRegularizer
    from optimist.core.steps import Steps
    from optimist.errors import OptimistError

__version__ = "0.1.0"

_HOME = {
    "optimist.config": ["A2CConfig", "EnvConfig", "NetworkConfig", "PPOConfig", "RunConfig"],
    "optimist.core.anchor": ["Anchor", "NoAnchor"],
    "optimist.core.config": ["OPRConfig"],
    "optimist.core.steps": ["Steps"],
    "optimist.core.regularizer": ["OptimisticRegularizer"],
    "optimist.api": ["Agent", "load", "resume", "train"],
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
    "resume",
    "train",
]

_INTEGRATIONS = {
    "OPRCallback": ["OPRCallback", "sb3", "stable_baselines3"],
    "OPRPPO, OPRA2C": ["OPRPPO", "OPRA2C", "tianshou"],
    "with_opr": ["with_opr", "OPRLearner", "rllib", "ray"],
}
_IMPORT_OF = {
    guess: f"from optimist.integrations import {names}" for names, guesses in _INTEGRATIONS.items() for guess in guesses
}


class _GuessedModule:
    """The last of the import system's finders: names the import to write for a guess such as `optimist.sb3`."""

    @staticmethod
    def find_spec(fullname: str, path: Any = None, target: Any = None) -> None:
        package, _, guess = fullname.rpartition(".")
        if package in ("optimist", "optimist.integrations") and guess in _IMPORT_OF:
            raise ModuleNotFoundError(f"no module '{fullname}'; write: {_IMPORT_OF[guess]}", name=fullname)


sys.meta_path.append(_GuessedModule)


def __getattr__(name: str) -> Any:  # names are imported at first use, so that `optimist --help` loads no torch
    if name in _IMPORT_OF:  # not an AttributeError, whose message `from optimist import …` drops
        raise ImportError(f"'{name}' is not in optimist; write: {_IMPORT_OF[name]}")
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'optimist' has no attribute '{name}'")
    return getattr(importlib.import_module(_MODULE_OF[name]), name)
