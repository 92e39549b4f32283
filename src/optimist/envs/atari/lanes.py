"""Lanes: games in groups, each a vector environment whose threads play it apart from the others."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optimist.envs.atari.board import Board
from optimist.envs.atari.emulator import make_emulators
from optimist.envs.atari.players import Games
from optimist.envs.atari.pool import PooledEmulators
from optimist.errors import OptimistError

BACKENDS: dict[str, Callable[..., Any]] = {"ale": make_emulators, "envpool": PooledEmulators}
"""Whose emulators play, by name; from here on both look alike."""


class Lanes:
    """Games on a board that nobody else sees. A lane plays when all of its games have a move."""

    def __init__(self, game: str, num_envs: int, bounds: list[int], *, stack: int, backend: str, **settings: Any):
        """`bounds`: of the games of each lane; `settings`: those of the emulators, whose threads begin here."""
        self.board = Board.make(num_envs, stack)
        self.columns = [slice(begin, end) for begin, end in pairwise(bounds)]
        self.lanes = np.repeat(np.arange(len(self.columns)), np.diff(bounds))  # in which a game is
        make = BACKENDS[backend]
        self.emulators = [make(game, lane.stop - lane.start, stack=stack, **settings) for lane in self.columns]
        self.missing = np.diff(bounds)  # moves that a lane waits for
        self.underway: dict[int, None] = {}  # lanes at play, in the order in which they began

    def reset(self, games: Games, seeds: NDArray[np.int64] | None) -> None:
        """Begin these games anew, with these seeds or as their generators go on."""
        self.abandon()
        mask, of_games = np.zeros(len(self.lanes), np.bool_), np.zeros(len(self.lanes), np.int64)
        mask[games], of_games[games] = True, 0 if seeds is None else seeds

        def restart(number: int) -> None:
            lane = self.columns[number]
            if mask[lane].any():
                options = None if mask[lane].all() else {"reset_mask": mask[lane]}
                chosen = None if seeds is None else of_games[lane][mask[lane]]
                self.board.obs[lane], told = self.emulators[number].reset(seed=chosen, options=options)
                self.board.told["lives"][lane] = told["lives"]

        # ALE reads the ROM again for every seed, a tenth of a second each: all lanes do so at once.
        with ThreadPoolExecutor(len(self.columns)) as threads:
            list(threads.map(restart, range(len(self.columns))))

    def begin(self, games: Games, actions: NDArray[np.int64]) -> None:
        """Have these games played, one step with these moves; `arrived` has to follow."""
        self.board.actions[games] = actions
        numbers, counts = np.unique(self.lanes[games], return_counts=True)
        self.missing[numbers] -= counts
        for number in numbers[self.missing[numbers] == 0].tolist():
            lane = self.columns[number]
            self.missing[number] = lane.stop - lane.start
            self.emulators[number].send(self.board.actions[lane])
            self.underway[number] = None

    def arrived(self, unless: Callable[[], bool] | None = None) -> Games:
        """Games whose step is on the board now: the lane that began first, which has to be waited for."""
        if unless is not None:  # nobody can say whether a lane has played
            while not unless():
                pass
            return np.empty(0, np.intp)
        number = next(iter(self.underway))
        del self.underway[number]
        lane = self.columns[number]
        self.board.part(lane).write(self.emulators[number].recv())
        return np.arange(lane.start, lane.stop)

    def abandon(self) -> None:
        """Wait for games at play that nobody has waited for, whatever they give."""
        while self.underway:
            with suppress(OptimistError, RuntimeError):
                self.arrived()
        self.missing = np.bincount(self.lanes)

    def rest(self) -> None:
        """Games that end are restarted by their emulators, when they end."""

    def close(self) -> None:
        """Let go of the emulators: their threads end with them."""
        self.emulators = []
