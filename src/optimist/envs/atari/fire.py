"""Games that wait for FIRE after a lost life, and the hand that presses it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

STEPS_UNTIL_IT_WAITS = {
    "Breakout": 0,  # no ball before FIRE
    "Gopher": 36,  # FIRE is ignored for the first 32 or so
    "NameThisGame": 64,  # FIRE is ignored for the first 8 to 60
}
"""Steps after a lost life at which FIRE is needed. Found by playing on without FIRE after a lost life in each of the
49: these three then stand still for ever; the others go on, by themselves or at some other move."""


class FireButton:
    """Presses FIRE once after each lost life, when the game waits for it; all environments at once."""

    def __init__(self, game: str, num_envs: int, fire: int | None) -> None:
        """`fire`: the action that is FIRE; None if the game has none."""
        self.fire = -1 if fire is None else fire
        self.delay = None if fire is None else STEPS_UNTIL_IT_WAITS.get(game)
        self.steps_left = np.full(num_envs, -1)  # until FIRE; below 0: not to be pressed

    def press(self, actions: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
        """The actions to execute, and where FIRE replaced what was asked for; None if nowhere."""
        if self.delay is None:
            return actions, None
        pressed = self.steps_left == 0
        self.steps_left -= 1
        if not pressed.any():
            return actions, None
        return np.where(pressed, self.fire, actions), pressed

    def watch(self, life_lost: NDArray[np.bool_], ended: NDArray[np.bool_]) -> None:
        """Take note of lost lives; a new game is started by its reset."""
        if self.delay is not None:
            self.steps_left[life_lost] = self.delay
            self.steps_left[ended] = -1
