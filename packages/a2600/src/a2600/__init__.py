"""An exact, fast Atari 2600 console for training: `make_vec("Frostbite", num_envs=64)`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from a2600.errors import A2600Error, CoreMissing, InexactGame, RomError, StateError, UnknownGame
from a2600.games import all_games, gym_name

if TYPE_CHECKING:
    from a2600.env import AtariVectorEnv

__version__ = "0.1.0"
__all__ = [
    "A2600Error",
    "CoreMissing",
    "InexactGame",
    "RomError",
    "StateError",
    "UnknownGame",
    "all_games",
    "make_vec",
    "register_envs",
]


def make_vec(game: str, num_envs: int = 1, **options: Any) -> AtariVectorEnv:
    """N environments of a game; the options are those of `a2600.env.AtariVectorEnv`."""
    from a2600.env import AtariVectorEnv

    return AtariVectorEnv(game, num_envs, **options)


def register_envs() -> None:
    """Register `a2600/NAME-v0` for `gymnasium.make_vec`; done when a2600 is imported."""
    import gymnasium

    for game in all_games():
        name = f"a2600/{gym_name(game)}-v0"
        if name not in gymnasium.registry:
            gymnasium.register(name, vector_entry_point="a2600.env:AtariVectorEnv", kwargs={"game": game})


register_envs()
