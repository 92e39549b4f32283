"""Emulators in a process of their own: many are made at once, and none waits for Python's lock."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import weakref
from contextlib import suppress
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete
from numpy.typing import NDArray

from optimist.envs.atari.emulator import action_names, find_rom
from optimist.envs.atari.player import DONE, ENDED, RESET, STEP, make_board
from optimist.errors import OptimistError, ProcessEnded

HAS_SHARED_MEMORY = hasattr(os, "memfd_create")
"""Memory that processes share and that is gone with the last of them: Linux has it."""
PATIENCE = 5.0
"""Seconds that a process gets to end by itself."""


class EmulatorsApart:
    """N games in a process of their own, behind the interface of ALE's vector environment as this package uses it.

    The process ends when this is closed or forgotten, or when its host ends, however that comes.
    """

    def __init__(self, game: str, num_envs: int, *, stack: int, **settings: Any) -> None:
        """As `make_emulators`; the process begins here and is waited for in `reset`."""
        find_rom(game)
        self.game, self.num_envs, self.busy = game, num_envs, False
        self.action_meanings = list(action_names(game))
        self.single_observation_space = Box(0, 255, (stack, 84, 84), np.uint8)
        self.single_action_space = Discrete(len(self.action_meanings))
        task = {"game": game, "num_envs": num_envs, "stack": stack, **settings}
        try:
            board, self.line, self.process = _begin(task)
        except OSError as error:  # no memory, or too many processes or files
            raise OptimistError(
                f"cannot begin a process that plays {game}: {error.strerror}; env.kwargs.workers = 'threads' needs none"
            ) from error
        self.board: dict[str, NDArray[Any]] = {name: board[name] for name in board.dtype.names or ()}
        self._end = weakref.finalize(self, _end, self.line, self.process, os.getpid())  # also where nobody closes it

    def reset(
        self, *, seed: NDArray[np.int64] | None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.uint8], dict[str, Any]]:
        """Observations after starting the games in `options["reset_mask"]`, or all, anew; seeds are for these."""
        if self.busy:  # with a step that nobody waited for
            self._wait()
        chosen = np.ones(self.num_envs, np.bool_) if options is None else options["reset_mask"]
        self.board["chosen"][:], self.board["seeds"][:] = chosen, -1
        if seed is not None:
            self.board["seeds"][chosen] = seed
        self._ask(RESET)
        self._wait()
        return self.board["obs"].copy(), {"lives": self.board["lives"].copy()}

    def send(self, actions: NDArray[np.int64]) -> None:
        """Begin a step."""
        self.board["actions"][:] = actions
        self._ask(STEP)

    def recv(self) -> tuple[Any, ...]:
        """What the step gave; `final_obs` holds the last pictures of the games that ended with it.

        The observations lie on the board: the next step writes over them.
        """
        board, told = self.board, {}
        if self._wait() == ENDED:
            told["final_obs"] = board["final_obs"].copy()
        told["lives"] = board["lives"].copy()
        return board["obs"], board["rewards"].copy(), board["terminated"].copy(), board["truncated"].copy(), told

    def close(self) -> None:
        """End the process."""
        self._end()

    def _ask(self, request: bytes) -> None:
        with suppress(ConnectionError):  # whoever waits is told
            self.line.sendall(request)
        self.busy = True

    def _wait(self) -> bytes:
        """Until what was asked for is done; the answer."""
        answer = self._hear(1)
        if answer not in (DONE, ENDED):
            raise ProcessEnded(f"the process that plays {self.game} ended: {self._last_words(answer)}")
        self.busy = False
        return answer

    def _hear(self, most: int) -> bytes:
        """What the process says next; nothing if it is gone."""
        try:
            return self.line.recv(most)
        except ConnectionError:
            return b""

    def _last_words(self, said: bytes) -> str:
        while more := self._hear(4096):
            said += more
        status = self.process.wait()
        return said.decode() or (f"killed by signal {-status}" if status < 0 else f"exit status {status}")


def _begin(task: dict[str, Any]) -> tuple[NDArray[np.void], socket.socket, subprocess.Popen[bytes]]:
    """The board that is shared with a new process, the line to it, and the process."""
    memory = os.memfd_create("optimist")
    line, theirs = socket.socketpair()
    try:
        board = make_board(memory, task["num_envs"], task["stack"])
        return board, line, _play(theirs.fileno(), memory, task)
    except OSError:
        line.close()
        raise
    finally:
        os.close(memory)
        theirs.close()


def _play(line: int, board: int, task: dict[str, Any]) -> subprocess.Popen[bytes]:
    # Not by multiprocessing, which would run the user's own script a second time; but found in the same places.
    program = f"import sys; sys.path[:] = {sys.path!r}; from optimist.envs.atari.player import play; "
    program += f"play({line}, {board}, {json.dumps(task)!r})"
    return subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        pass_fds=(line, board),
        process_group=0,  # signals to a whole group are for the host: this one ends when it hangs up
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


def _end(line: socket.socket, process: subprocess.Popen[bytes], host: int) -> None:
    """Hang up, and see to it that the process is gone."""
    if os.getpid() != host:  # a copy of the host, made by a fork: it is not its to end
        return
    with suppress(OSError):  # it may have gone before
        line.shutdown(socket.SHUT_RDWR)
    line.close()
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
