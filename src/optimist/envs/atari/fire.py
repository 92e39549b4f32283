"""Games that wait for FIRE after a lost life or when they begin, and the hand that presses it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from optimist.envs.atari.players import Games

STEPS_UNTIL_IT_WAITS = {
    "Breakout": 0,  # no ball before FIRE
    "Gopher": 36,  # FIRE is ignored for the first 32 or so
    "NameThisGame": 64,  # FIRE is ignored for the first 8 to 60
}
"""Steps after a lost life at which FIRE is needed. Found by playing on without FIRE after a lost life in each of the
49: these three then stand still for ever; the others go on, by themselves or at some other move, but for VideoPinball.
That waits for a shot of the player's own, the plunger pulled down and FIRE, which is left to him."""
STEPS_UNTIL_IT_BEGINS = {
    "NameThisGame": 104,  # FIRE is ignored for the first 90 to 97, and with it the one that a reset presses
}
"""Steps of a new game at which FIRE is needed. Found by moving in two different ways without FIRE from the start of
each of the 49: all others that can move without FIRE show a difference within 106 steps. To score, VideoPinball,
Tennis and Bowling want FIRE at a moment of the player's choice."""
STICKY_BEGINNINGS = {
    "Breakout": 0,  # a reset presses FIRE for a single frame
}
"""The same where the console repeats actions: it swallows some of the presses that a reset makes."""


class FireButton:
    """Presses FIRE once when the game waits for it, after a lost life or at its start; all environments at once."""

    def __init__(self, game: str, num_envs: int, fire: int | None, sticky: float = 0.0) -> None:
        """`fire`: the action that is FIRE; None if the game has none."""
        self.fire = -1 if fire is None else fire
        self.delay = None if fire is None else STEPS_UNTIL_IT_WAITS.get(game)
        beginnings = STEPS_UNTIL_IT_BEGINS | (STICKY_BEGINNINGS if sticky else {})
        self.first_delay = -1 if fire is None else beginnings.get(game, -1)
        self.steps_left = np.full(num_envs, -1)  # until FIRE; below 0: not to be pressed

    def press(self, games: Games, actions: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
        """The actions to execute in these games, and where FIRE replaced what was asked for; None if nowhere."""
        if self.delay is None:
            return actions, None
        pressed = self.steps_left[games] == 0
        self.steps_left[games] -= 1
        if not pressed.any():
            return actions, None
        return np.where(pressed, self.fire, actions), pressed

    def watch(self, games: Games, life_lost: NDArray[np.bool_], ended: NDArray[np.bool_]) -> None:
        """Take note of lost lives and new games; most of these are started by their reset."""
        if self.delay is not None:
            self.steps_left[games[life_lost]] = self.delay
            self.steps_left[games[ended]] = self.first_delay
