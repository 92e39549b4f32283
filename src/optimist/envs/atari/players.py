"""What an environment asks of those who play its games, whoever they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from optimist.envs.atari.board import Board

Games = NDArray[np.intp]
"""Numbers of games."""


class Players(Protocol):
    """Games on a board. Some can be played while the moves of others are decided."""

    board: Board

    def reset(self, games: Games, seeds: NDArray[np.int64] | None) -> None:
        """Begin these games anew, with these seeds or as their generators go on."""

    def begin(self, games: Games, actions: NDArray[np.int64]) -> None:
        """Have these games played, one step with these moves; `arrived` has to follow."""

    def arrived(self, unless: Callable[[], bool] | None = None) -> Games:
        """Games whose step is on the board now: at least one, unless something else has happened meanwhile."""

    def abandon(self) -> None:
        """Wait for games at play that nobody has waited for, whatever they give."""

    def rest(self) -> None:
        """Nothing is asked for now: beginnings of next games can be prepared."""

    def close(self) -> None:
        """Let go of everything."""
