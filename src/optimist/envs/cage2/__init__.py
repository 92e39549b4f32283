"""CAGE Challenge 2, exactly and fast: the rules of one game in small compiled functions, run over all games.

Importing this package loads no compiler; the names below load it when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import gymnasium

if TYPE_CHECKING:
    from optimist.envs.cage2.cardiff import CardiffVectorEnv, fall_back, fingerprint, scan_memory
    from optimist.envs.cage2.env import CageVectorEnv
    from optimist.envs.cage2.expert import ExpertVectorEnv
    from optimist.envs.cage2.single import CageEnv, CardiffEnv, ExpertEnv
    from optimist.envs.cage2.verify import verify_files

_HOMES = {
    "CageEnv": "single",
    "CageVectorEnv": "env",
    "CardiffEnv": "single",
    "CardiffVectorEnv": "cardiff",
    "ExpertEnv": "single",
    "ExpertVectorEnv": "expert",
    "fall_back": "cardiff",
    "fingerprint": "cardiff",
    "scan_memory": "cardiff",
    "verify_files": "verify",
}

__all__ = [
    "CageEnv",
    "CageVectorEnv",
    "CardiffEnv",
    "CardiffVectorEnv",
    "ExpertEnv",
    "ExpertVectorEnv",
    "fall_back",
    "fingerprint",
    "register_cage2",
    "scan_memory",
    "verify_files",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def register_cage2() -> None:
    """Registers the game as it is (52 bits, 145 actions), and behind the Cardiff and the expert interface."""
    for name, single, many in (
        ("optimist/CAGE2-v0", "single:CageEnv", "env:CageVectorEnv"),
        ("optimist/CAGE2Cardiff-v0", "single:CardiffEnv", "cardiff:CardiffVectorEnv"),
        ("optimist/CAGE2Expert-v0", "single:ExpertEnv", "expert:ExpertVectorEnv"),
    ):
        if name not in gymnasium.registry:
            gymnasium.register(name, entry_point=f"{__name__}.{single}", vector_entry_point=f"{__name__}.{many}")
