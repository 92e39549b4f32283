"""OPR for other libraries; each name loads its library when first used.

from optimist.integrations import OPRCallback     Stable-Baselines3: model.learn(100_000, callback=OPRCallback())
from optimist.integrations import OPRPPO, OPRA2C  Tianshou: in place of PPO and A2C
from optimist.integrations import with_opr        RLlib: with_opr(PPOConfig()); OPRLearner is the learner it sets

CleanRL and other loops of your own call `optimist.OptimisticRegularizer` with `optimist.Steps`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from optimist.integrations.rllib import OPRLearner, with_opr
    from optimist.integrations.sb3 import OPRCallback
    from optimist.integrations.tianshou import OPRA2C, OPRPPO

__all__ = ["OPRA2C", "OPRPPO", "OPRCallback", "OPRLearner", "with_opr"]

_MODULES = {
    "OPRCallback": "sb3",
    "OPRA2C": "tianshou",
    "OPRPPO": "tianshou",
    "OPRLearner": "rllib",
    "with_opr": "rllib",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'optimist.integrations' has no attribute '{name}'; it has {', '.join(__all__)}")
    return getattr(importlib.import_module(f"optimist.integrations.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
