"""The processes that play: one that knows how, and those it has play, each some of the games."""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import socket
import time
from contextlib import suppress
from itertools import pairwise
from typing import Any, NoReturn

from optimist.cores import be_idle
from optimist.envs.atari.board import RESET, STEP, WHAT, Board
from optimist.envs.atari.console import Console
from optimist.envs.atari.shrink import shrink_once

NAP = 0.2
"""Seconds after which a player that is gone is missed."""
PR_SET_PDEATHSIG = 1
"""Linux's number for: when the process that began this one ends, so does this one."""


def lead(host: int, to_host: int, descriptor: int, bells: list[int], task: str) -> NoReturn:
    """Have the games played until the host hangs up or is gone, or a player is.

    `host`: number of its process; `to_host`, `descriptor`, `bells`: of a socket, of the board and of what wakes each
    player; `task`: for Player, in JSON. The first line that is said is why it cannot go on, in words.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # a host that ignores the ends of its children hands that on
    line, players = socket.socket(fileno=to_host), list[int]()
    try:
        settings = json.loads(task)
        bounds, num_envs, stack = (settings.pop(name) for name in ("bounds", "num_envs", "stack"))
        board = Board.make(num_envs, stack, descriptor)
        shrink_once()  # compiled here, for all
        for bell, (begin, end) in zip(bells, pairwise(bounds), strict=True):
            players.append(_fork(line, board.part(slice(begin, end)), bell, settings))
        _watch(line, host)
    except Exception as error:  # whatever it is, the host says it
        _say(line, f"{type(error).__name__}: {error}")
    for player in players:  # nobody else may be there to bury them
        with suppress(ProcessLookupError, ChildProcessError):
            os.kill(player, signal.SIGKILL)
            os.waitpid(player, 0)
    os._exit(0)


def _fork(line: socket.socket, games: Board, bell: int, settings: dict[str, Any]) -> int:
    """Begin a player; its number."""
    leader = os.getpid()
    if player := os.fork():
        return player
    try:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == leader:  # it may have gone before it was said
            Player(games, bell, **settings).play()
    except Exception as error:
        _say(line, f"{type(error).__name__}: {error}")
    os._exit(1)


def _watch(line: socket.socket, host: int) -> None:
    """Until the host hangs up or is gone, or a player is. A copy of the host, made by a fork, keeps the line open."""
    hung_up = select.poll()
    hung_up.register(line, select.POLLIN)
    while not hung_up.poll(1e3 * NAP) and os.getppid() == host:
        player, status = os.waitpid(-1, os.WNOHANG)
        if player and os.WIFSIGNALED(status):  # else it has said why
            _say(line, f"killed by signal {os.WTERMSIG(status)}")
        if player:
            return


def _say(line: socket.socket, words: str) -> None:
    with suppress(ConnectionError):
        line.sendall(f"{' '.join(words.split())}\n".encode())


class Player:
    """Plays some of the games, those that are behind first."""

    def __init__(self, games: Board, bell: int, *, patience: float, idle: bool, **settings: Any) -> None:
        """`patience`: seconds to look for something to do before falling asleep.

        `idle`: play only where nobody else wants the core; `settings`: as in Console.
        """
        if idle:
            be_idle()
        self.games, self.bell, self.patience = games, bell, patience
        numbers = range(len(games.asked))
        self.consoles = [Console(row=games.part(slice(number, number + 1)), **settings) for number in numbers]

    def play(self) -> NoReturn:
        """For ever."""
        while True:
            if waiting := self.waiting():
                self.answer(min(waiting, key=self.games.asked.__getitem__))
            else:
                self.wait()

    def waiting(self) -> list[int]:
        """Games of which something is asked for."""
        asked, answered = self.games.asked, self.games.answered
        return [number for number in range(len(asked)) if asked[number] != answered[number]]

    def wait(self) -> None:
        """Look for something to do, then sleep until the bell rings. It may have been rung for what is done already."""
        end = time.perf_counter() + self.patience
        while time.perf_counter() < end:
            if self.waiting():
                return
        os.eventfd_read(self.bell)

    def answer(self, number: int) -> None:
        """Do what is asked for of a game, and say so."""
        games, console = self.games, self.consoles[number]
        asked = int(games.asked[number])
        if (request := asked & WHAT) == STEP:
            console.step()
        elif request == RESET:
            console.reset(int(games.seeds[number]))
        else:
            console.prepare()
        games.answered[number] = asked
