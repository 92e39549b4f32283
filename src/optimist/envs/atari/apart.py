"""PlayersApart: games in processes of their own. Many are made at once, and none waits for Python's lock."""

from __future__ import annotations

import json
import os
import platform
import socket
import subprocess
import sys
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optimist.envs.atari.board import PREPARE, RESET, STEP, Board, has_ended
from optimist.envs.atari.emulator import find_rom
from optimist.envs.atari.players import Games
from optimist.errors import OptimistError, ProcessEnded, missing_extra

CAN_SHARE = (
    all(hasattr(os, name) for name in ("memfd_create", "eventfd"))
    and platform.machine() == "x86_64"
    and bool(sys.executable)
)
"""Memory and bells that processes share and that are gone with the last of them: Linux has these. On other processors
one process may see what another wrote in another order. A Python within another program cannot begin a second."""
NAP = 3e-4
"""Seconds between two looks at the board, where nobody is in a hurry."""
LONG = 0.5
"""Seconds without news after which the line to those who play is looked at."""
LAST_PATIENCE = 5.0
"""Seconds that processes get to end by themselves."""


class PlayersApart:
    """Games on a board that processes share, each of which plays some of them.

    The processes end when this is closed or forgotten, or when their host ends, however that comes.
    """

    def __init__(self, game: str, num_envs: int, bounds: list[int], *, stack: int, patience: float, **settings: Any):
        """They begin here and are waited for in `reset`. `bounds`: of each player's games.

        `patience`: seconds that players and host look for each other's news before they take it easy; `settings`: as
        in Console, and `idle`.
        """
        find_rom(game)
        if find_spec("numba") is None:
            raise missing_extra("playing Atari in processes", "atari", "numba")
        self.game, self.patience, self.last_words = game, patience, ""
        self.players = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))  # whose a game is
        self.playing = np.zeros(num_envs, np.bool_)
        self.unprepared = np.ones(num_envs, np.bool_)
        task = {"game": game, "num_envs": num_envs, "bounds": bounds, "stack": stack, "patience": patience, **settings}
        try:
            self.board, self.bells, self.line, self.leader = _begin(task)
        except OSError as error:  # no memory, or too many processes or files
            raise OptimistError(
                f"cannot begin processes that play {game}: {error.strerror}; env.kwargs.workers = 'threads' needs none"
            ) from error
        # Also where nobody closes it.
        self._end = weakref.finalize(self, _end, self.line, self.bells, self.leader, os.getpid())

    def reset(self, games: Games, seeds: NDArray[np.int64] | None) -> None:
        """Begin these games anew, with these seeds or as their generators go on."""
        self.board.seeds[games] = -1 if seeds is None else seeds
        self._ask(games, RESET)
        self.playing[games], self.unprepared[games] = True, True
        while self.playing.any():
            self.arrived()

    def begin(self, games: Games, actions: NDArray[np.int64]) -> None:
        """Have these games played, one step with these moves; `arrived` has to follow."""
        self.board.actions[games] = actions
        self._ask(games, STEP)
        self.playing[games] = True

    def arrived(self, unless: Callable[[], bool] | None = None) -> Games:
        """Games whose step is on the board now: at least one, unless something else has happened meanwhile."""
        board, begin = self.board, time.perf_counter()
        while True:
            found: Games = np.flatnonzero(self.playing & (board.asked == board.answered))
            if len(found):
                self.playing[found] = False
                self.unprepared[found] |= has_ended(board.told[found])
                return found
            if unless is not None and unless():
                return found
            waited = time.perf_counter() - begin
            time.sleep(0.0 if waited < self.patience else NAP)  # also lets other threads have Python's lock
            if waited > LONG:
                begin += LONG
                self._hear()

    def abandon(self) -> None:
        """Wait for games at play that nobody has waited for, whatever they give."""
        with suppress(ProcessEnded):  # whoever asks next is told
            while self.playing.any():
                self.arrived()

    def rest(self) -> None:
        """Nothing is asked for now: beginnings of next games can be prepared."""
        games = np.flatnonzero(self.unprepared & ~self.playing)
        self._ask(games, PREPARE)
        self.unprepared[games] = False

    def close(self) -> None:
        """End the processes."""
        self._end()

    def _ask(self, games: Games, request: int) -> None:
        self.board.ask(games, request)
        for player in set(self.players[games].tolist()):
            os.eventfd_write(self.bells[player], 1)

    def _hear(self) -> None:
        """An error if the line is dead, or if something is said there: why they cannot go on."""
        try:
            said = self.line.recv(4096, socket.MSG_DONTWAIT)
            while more := self.line.recv(4096):
                said += more
            self.last_words = self.last_words or said.decode().partition("\n")[0]  # of whoever was first
        except BlockingIOError:
            return
        except ConnectionError:
            pass
        status = self.leader.wait()
        reason = self.last_words or (f"killed by signal {-status}" if status < 0 else f"exit status {status}")
        raise ProcessEnded(f"the process that plays {self.game} ended: {reason}")


def _begin(task: dict[str, Any]) -> tuple[Board, list[int], socket.socket, subprocess.Popen[bytes]]:
    """The board, a bell for each player, the line to the process that leads them, and that process."""
    line, theirs = socket.socketpair()
    for end in (line, theirs):
        end.settimeout(None)  # whatever socket.setdefaulttimeout says
    descriptor, bells = os.memfd_create("optimist"), list[int]()
    try:
        board = Board.make(task["num_envs"], task["stack"], descriptor)
        bells += (os.eventfd(0) for _ in task["bounds"][1:])
        return board, bells, line, _lead(theirs.fileno(), descriptor, bells, task)
    except OSError:
        line.close()
        for bell in bells:
            os.close(bell)
        raise
    finally:
        theirs.close()
        os.close(descriptor)


def _lead(line: int, board: int, bells: list[int], task: dict[str, Any]) -> subprocess.Popen[bytes]:
    # Not by multiprocessing, which would run the user's own script a second time; but found in the same places.
    places = list(map(str, sys.path))
    program = f"import sys; sys.path[:] = {places!r}; from optimist.envs.atari.player import lead; "
    program += f"lead({os.getpid()}, {line}, {board}, {bells}, {json.dumps(task)!r})"
    return subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        pass_fds=(line, board, *bells),
        process_group=0,  # signals to a whole group are for the host: this one ends when it hangs up
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


def _end(line: socket.socket, bells: list[int], leader: subprocess.Popen[bytes], host: int) -> None:
    """Hang up, and see to it that the processes are gone."""
    if os.getpid() != host:  # a copy of the host, made by a fork: they are not its to end
        return
    with suppress(OSError):  # it may have gone before
        line.shutdown(socket.SHUT_RDWR)
    line.close()
    try:
        leader.wait(LAST_PATIENCE)
    except subprocess.TimeoutExpired:
        leader.kill()
        leader.wait()
    while bells:
        os.close(bells.pop())
