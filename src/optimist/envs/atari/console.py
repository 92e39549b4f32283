"""Console: one game, played in the thread that asks. The same game that ALE's vector environment plays in its own.

That one hands every step to a thread of its pool and back. For a game in a process of its own this is twice more than
needed, and whoever waits looks busily for news at first.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optimist.envs.atari.board import Board
from optimist.envs.atari.emulator import FRAME_SKIP, find_rom, import_ale
from optimist.envs.atari.shrink import shares, shrink


class Beginning(NamedTuple):
    """The state of a console in which a game begins, and what can be seen."""

    state: Any
    screens: NDArray[np.uint8]


class Console:
    """A game on a row of the board: raw rewards, a lost life ends nothing, a new game within the step.

    A game begins from the beginning of the one before, so that it can be prepared while that one is played: nothing in
    a game has a part in the next. Sticky joysticks are the exception. Their chances go on from game to game, and
    nothing can be prepared.
    """

    def __init__(self, game: str, row: Board, *, sticky: float, no_ops: int, max_frames: int) -> None:
        ale = import_ale()
        ale.ALEInterface.setLoggerMode(ale.LoggerMode.Error)
        self.row, self.sticky, self.no_ops, self.max_frames = row, sticky, no_ops, max_frames
        self.obs: NDArray[np.uint8] = row.obs[0]
        self.rom = ale.roms.get_rom_path(find_rom(game))
        self.ale = ale.ALEInterface()
        self.ale.setFloat("repeat_action_probability", sticky)
        self.ale.loadROM(self.rom)
        self.actions = self.ale.getMinimalActionSet()
        self.idle, self.fire = ale.Action.NOOP, ale.Action.FIRE
        self.has_fire = self.fire in self.actions
        height, width = self.ale.getScreenDims()
        self.screens = np.zeros((2, height, width), np.uint8)
        self.shares = shares(height), shares(width)
        self.chances = np.random.RandomState()
        self.frames = 0
        self.last: Any = None  # the state in which this game began
        self.next: Beginning | None = None

    def reset(self, seed: int) -> None:
        """Begin anew; a seed below 0 lets the generators go on."""
        if seed >= 0:
            self.chances = np.random.RandomState(seed)
            self.ale.setInt("random_seed", seed)
            self.ale.loadROM(self.rom)
            self.last = self.next = None
        self._begin()
        self.row.told["lives"] = self.ale.lives()

    def step(self) -> None:
        """One step with the move on the board, and what it gave put there."""
        ale, move, reward = self.ale, self.actions[int(self.row.actions[0])], 0
        ends = False
        for later in reversed(range(FRAME_SKIP)):
            reward += ale.act(move)
            self.frames += 1
            if ends := ale.game_over() or self.frames >= self.max_frames:
                break  # without a look at the last frame, as ALE has it
            if later < 2:
                ale.getScreenGrayscale(self.screens[later])
        self.obs[:-1] = self.obs[1:]
        shrink(self.screens, *self.shares, self.obs[-1])
        over = ale.game_over()
        told = self.row.told[0]
        told["reward"], told["terminated"], told["truncated"] = reward, over, ends and not over
        if ends:
            self.row.final_obs[0] = self.obs
            self._begin()
        told["lives"] = ale.lives()

    def prepare(self) -> None:
        """Have the next game ready, as far as that can be: to begin one takes as long as twenty steps."""
        if self.next is None and not self.sticky:
            state = self._state()
            self.next = self._beginning()
            self.ale.restoreState(state)

    def _begin(self) -> None:
        """A new game: empty pictures but for the last."""
        beginning = self.next or self._beginning()
        self.last, self.next, self.frames = beginning.state, None, 0
        self.ale.restoreState(self.last)
        self.screens[:] = beginning.screens
        self.obs[:-1] = 0
        shrink(self.screens, *self.shares, self.obs[-1])

    def _beginning(self) -> Beginning:
        """FIRE where there is one, then some frames without action."""
        ale = self.ale
        if self.last is not None and not self.sticky:
            ale.restoreState(self.last)
        ale.reset_game()
        frames = self._draw(self.no_ops + 1) - self.has_fire
        if self.has_fire:
            ale.act(self.fire)
        for _ in range(frames):
            ale.act(self.idle)
            if ale.game_over():
                ale.reset_game()
        screens = np.zeros_like(self.screens)
        ale.getScreenGrayscale(screens[0])
        return Beginning(self._state(), screens)

    def _state(self) -> Any:
        return self.ale.cloneState(include_rng=True)  # resets draw what is left in the console's memory from it

    def _draw(self, below: int) -> int:
        """A number of [0, below), as C++'s standard library draws it from a Mersenne Twister."""
        while True:
            product = int(self.chances.randint(0, 2**32, dtype=np.uint32)) * below
            if (product & 0xFFFFFFFF) >= (2**32 - below) % below:
                return product >> 32
