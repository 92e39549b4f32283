"""CAGE Challenge 2: the exact game, many games at once, and its strongest defender. Importing it loads no Numba."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import gymnasium

if TYPE_CHECKING:
    from cage2.agents.user import CyborgAgent as CyborgAgent
    from cage2.cardiff import CardiffVectorEnv as CardiffVectorEnv
    from cage2.cardiff import fall_back as fall_back
    from cage2.cardiff import fingerprint as fingerprint
    from cage2.cardiff import scan_memory as scan_memory
    from cage2.env import CageEnv as CageEnv
    from cage2.env import CardiffEnv as CardiffEnv
    from cage2.env import ExpertEnv as ExpertEnv
    from cage2.expert.env import ExpertVectorEnv as ExpertVectorEnv
    from cage2.game import play_game as play_game
    from cage2.scoring import Score as Score
    from cage2.scoring import score as score
    from cage2.vector_env import CageVectorEnv as CageVectorEnv
    from cage2.verify import verify_files as verify_files

__version__ = "0.1.0"

_MODULES = {
    "vector_env": ("CageVectorEnv",),
    "env": ("CageEnv", "CardiffEnv", "ExpertEnv"),
    "cardiff": ("CardiffVectorEnv", "fall_back", "fingerprint", "scan_memory"),
    "expert.env": ("ExpertVectorEnv",),
    "verify": ("verify_files",),
    "scoring": ("Score", "score"),
    "agents.user": ("CyborgAgent",),
    "game": ("play_game",),
}


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


ENTRY_POINTS = {
    "": {"entry_point": f"{__name__}.env:CageEnv", "vector_entry_point": f"{__name__}.vector_env:CageVectorEnv"},
    "Cardiff": {
        "entry_point": f"{__name__}.env:CardiffEnv",
        "vector_entry_point": f"{__name__}.cardiff:CardiffVectorEnv",
    },
    "Expert": {
        "entry_point": f"{__name__}.env:ExpertEnv",
        "vector_entry_point": f"{__name__}.expert.env:ExpertVectorEnv",
    },
}
"""Interface → its environments: 52 bits and 145 actions, the Cardiff agent's interface, the expert interface."""


def register_envs() -> None:
    """Register `cage2/Scenario2-v0`, `cage2/Scenario2Cardiff-v0` and `cage2/Scenario2Expert-v0` with Gymnasium."""
    for interface, entries in ENTRY_POINTS.items():
        env_id = f"{__name__}/Scenario2{interface}-v0"
        if env_id not in gymnasium.registry:
            gymnasium.register(env_id, **entries)  # type: ignore[arg-type]


register_envs()
