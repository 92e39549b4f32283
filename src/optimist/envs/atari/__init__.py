"""Atari 2600 through ALE's own vector environment: 84 × 84 × 4 uint8, raw rewards, every trap of the protocol closed.

Importing this package does not load ale-py (extra `atari`, GPL-2.0); making an environment does.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import gymnasium

from optimist.envs.atari.games import GAMES, Game, get_game

if TYPE_CHECKING:
    from optimist.envs.atari.vector import AtariVectorEnv

__all__ = ["GAMES", "AtariVectorEnv", "Game", "get_game", "register_atari"]


def __getattr__(name: str) -> Any:
    if name == "AtariVectorEnv":
        return import_module(f"{__name__}.vector").AtariVectorEnv
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def register_atari() -> None:
    """Registers one id for all games; which one, and with how sticky a joystick, the keywords say."""
    if "optimist/Atari-v0" not in gymnasium.registry:
        gymnasium.register("optimist/Atari-v0", vector_entry_point=f"{__name__}.vector:AtariVectorEnv")
