"""Trained defenders that come with the package, by name: `optimist cage2 score best`."""

from __future__ import annotations

from importlib import import_module

from optimist.envs.cage2.defender import Defender
from optimist.errors import unknown_name

LOADERS: dict[str, str] = {"best": "optimist.envs.cage2.agents.best:load"}
"""Name → `module:function`; the function takes the rule set (`final` or `competition`) and returns a Defender."""


def load_agent(name: str, rules: str) -> Defender:
    """The shipped defender of this name for a rule set."""
    if name not in LOADERS:
        raise unknown_name("run folder or shipped agent", name, LOADERS)
    module, _, function = LOADERS[name].partition(":")
    defender: Defender = getattr(import_module(module), function)(rules)
    return defender
