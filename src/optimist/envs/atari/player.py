"""The process that plays the games of a lane, and the board it shares with its host."""

from __future__ import annotations

import json
import mmap
import os
import socket
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optimist.envs.atari.emulator import make_emulators

STEP, RESET = b"s", b"r"
"""What a host asks for; with what moves or seeds stands on the board."""
DONE, ENDED = b".", b"!"
"""What a player answers; the second where games have ended. Anything else is why it cannot go on, in words, and the
last it says."""


def make_board(descriptor: int, num_envs: int, stack: int) -> NDArray[np.void]:
    """Room for the games in memory that two processes share: moves go one way, pictures and numbers the other."""
    pictures = (num_envs, stack, 84, 84)
    columns: list[tuple[str, type, tuple[int, ...]]] = [
        ("obs", np.uint8, pictures),
        ("final_obs", np.uint8, pictures),  # of games that have just ended; other rows mean nothing
        ("actions", np.int64, (num_envs,)),
        ("seeds", np.int64, (num_envs,)),  # below 0: the game's own generator goes on
        ("chosen", np.bool_, (num_envs,)),  # to be started anew
        ("rewards", np.int32, (num_envs,)),
        ("terminated", np.bool_, (num_envs,)),
        ("truncated", np.bool_, (num_envs,)),
        ("lives", np.int32, (num_envs,)),
    ]
    layout = np.dtype(columns, align=True)
    if os.fstat(descriptor).st_size < layout.itemsize:
        os.ftruncate(descriptor, layout.itemsize)
    return np.ndarray((), layout, mmap.mmap(descriptor, layout.itemsize))


def play(host: int, board: int, task: str) -> None:
    """Play until the host hangs up. `host`, `board`: file descriptors; `task`: what `make_emulators` takes, in JSON."""
    line = socket.socket(fileno=host)
    try:
        player = Player(board, **json.loads(task))
        while request := line.recv(1):
            line.sendall(player.step() if request == STEP else player.reset())
    except ConnectionError:  # the host is gone
        pass
    except Exception as error:  # whatever it is, the host says it
        with suppress(ConnectionError):
            line.sendall(" ".join(f"{type(error).__name__}: {error}".split()).encode())
    line.close()
    os._exit(0)  # nothing is left to do, and the emulators' threads need not be waited for


class Player:
    """The games of a board."""

    def __init__(self, board: int, *, num_envs: int, stack: int, **settings: Any) -> None:
        self.emulators = make_emulators(num_envs=num_envs, stack=stack, **settings)
        self.board = make_board(board, num_envs, stack)

    def reset(self) -> bytes:
        """Start the chosen games anew; the answer to that."""
        board, chosen = self.board, self.board["chosen"].copy()
        seeds = board["seeds"][chosen]
        options = None if chosen.all() else {"reset_mask": chosen}
        board["obs"][:], told = self.emulators.reset(seed=None if (seeds < 0).any() else seeds, options=options)
        board["lives"][:] = told["lives"]
        return DONE

    def step(self) -> bytes:
        """One step of each game; the answer to that."""
        board = self.board
        self.emulators.send(board["actions"])
        board["obs"][:], board["rewards"][:], terminated, truncated, told = self.emulators.recv()
        board["terminated"][:], board["truncated"][:], board["lives"][:] = terminated, truncated, told["lives"]
        ended = terminated | truncated
        if not ended.any():
            return DONE
        board["final_obs"][ended] = told["final_obs"][ended]
        return ENDED
