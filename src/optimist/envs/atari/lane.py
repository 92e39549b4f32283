"""Lane: some of the games of a vector environment, begun and finished together, apart from the other lanes."""

from __future__ import annotations

import select
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optimist.envs.atari.apart import EmulatorsApart
from optimist.envs.atari.emulator import make_emulators
from optimist.envs.atari.fire import FireButton
from optimist.envs.atari.pool import PooledEmulators
from optimist.errors import OptimistError

Pixels = NDArray[np.uint8]
BACKENDS: dict[str, Callable[..., Any]] = {"ale": make_emulators, "envpool": PooledEmulators}
"""Whose emulators play, by name; from here on both look alike."""
Step = tuple[Pixels, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]


class Lane:
    """Games `columns` of a vector environment; while one lane plays, the moves of another can be decided."""

    def __init__(
        self,
        game: str,
        columns: slice,
        settings: dict[str, Any],
        *,
        backend: str,
        apart: bool,
        life_loss_ends: bool,
        fire_after_life_loss: bool,
        in_color: bool,
    ) -> None:
        """`settings`: those of the emulators, whose threads begin here; `apart`: in processes of their own."""
        self.columns, self.num_envs = columns, columns.stop - columns.start
        self.life_loss_ends = life_loss_ends
        make = BACKENDS[backend]
        self.emulators = (EmulatorsApart if apart else make)(game, self.num_envs, **settings)
        self.camera = make(game, self.num_envs, **settings, in_color=True) if in_color else None
        self.screens: Pixels | None = None
        self.action_meanings: list[str] = self.emulators.action_meanings
        has_fire = fire_after_life_loss and "FIRE" in self.action_meanings
        fire = self.action_meanings.index("FIRE") if has_fire else None
        self.fire = FireButton(game, self.num_envs, fire, settings["sticky"])
        self.executed: tuple[NDArray[Any], NDArray[np.bool_]] | None = None
        self.lives: NDArray[np.int32] = np.zeros(self.num_envs, np.int32)

    def reset(self, seeds: NDArray[np.int64] | None, mask: NDArray[np.bool_]) -> Pixels:
        """Observations after starting the masked games anew; the others' as they are."""
        options = None if mask.all() else {"reset_mask": mask}
        if not mask.any():
            seeds = np.empty(0, np.int64)
        obs: Pixels
        obs, infos = self.emulators.reset(seed=seeds, options=options)
        if self.camera is not None:
            self.screens = self.camera.reset(seed=seeds, options=options)[0][:, 0]
        self.lives = infos["lives"]
        self.fire.watch(np.zeros(self.num_envs, np.bool_), ended=mask)
        return obs

    def send(self, actions: NDArray[np.int64]) -> None:
        """Begin a step: the emulator's threads play while Python goes on. `receive` has to follow."""
        actions, pressed = self.fire.press(actions)
        self.executed = None if pressed is None else (actions, pressed)
        self.emulators.send(actions)
        if self.camera is not None:
            self.screens = self.camera.step(actions)[0][:, 0]

    def receive(self) -> Step:
        """What the step begun by `send` gave."""
        before = self.lives
        obs, rewards, terminated, truncated, told = self.receive_unread()
        obs = obs.copy() if isinstance(self.emulators, EmulatorsApart) else obs
        ended, lives = terminated | truncated, told["lives"]
        infos: dict[str, Any] = {"lives": lives}
        if self.life_loss_ends:
            infos["life_lost"] = lives_lost(before, lives, ended)
        if self.executed is not None:
            infos["executed"], infos["_executed"] = self.executed
        if ended.any():
            infos["final_obs"], infos["_final_obs"] = told["final_obs"], ended
        return obs, rewards.astype(np.float64), terminated, truncated, infos

    @property
    def line(self) -> int | None:
        """The file descriptor that can be read once the lane has played, where there is one."""
        return self.emulators.line.fileno() if isinstance(self.emulators, EmulatorsApart) else None

    def close(self) -> None:
        """Let go of processes; threads end with whatever holds them."""
        if isinstance(self.emulators, EmulatorsApart):
            self.emulators.close()

    def receive_unread(self) -> tuple[Any, ...]:
        """The same in the emulators' own words: who needs speed reads them later, many steps at once.

        The pictures may lie in memory that the next step writes.
        """
        step: tuple[Any, ...] = self.emulators.recv()
        before, self.lives = self.lives, step[4]["lives"]
        if self.fire.delay is not None:
            ended = step[2] | step[3]
            self.fire.watch(lives_lost(before, self.lives, ended), ended)
        return step


class Turns:
    """Lanes that are at play, and those of them that have played: first come, where they can say so."""

    def __init__(self, lanes: list[Lane]) -> None:
        self.lanes = lanes
        self.underway: dict[int, None] = {}  # in the order in which they began
        self.lines = {line: number for number, lane in enumerate(lanes) if (line := lane.line) is not None}
        self.poll = None
        if len(self.lines) == len(lanes):
            self.poll = select.poll()
            for line in self.lines:
                self.poll.register(line, select.POLLIN)

    def begin(self, number: int, actions: NDArray[np.int64]) -> None:
        """Have a lane play these moves."""
        self.lanes[number].send(actions)
        self.underway[number] = None

    def arrived(self) -> Iterator[tuple[int, tuple[Any, ...]]]:
        """Every lane that has played, at least one, and what it gave; or the one that began first."""
        if self.poll is None:
            done = [next(iter(self.underway))]
        else:
            done = [number for line, _ in self.poll.poll() if (number := self.lines[line]) in self.underway]
        for number in done:
            del self.underway[number]
            yield number, self.lanes[number].receive_unread()

    def abandon(self) -> None:
        """Wait for those at play, whatever they give."""
        while self.underway:
            with suppress(OptimistError, RuntimeError):  # the first error is the one that is told
                self.lanes[self.underway.popitem()[0]].receive_unread()


def lives_lost(before: NDArray[np.int32], lives: NDArray[np.int32], ended: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Where a life was lost in a game that goes on. With none left it is about to end: Qbert takes some more frames."""
    lost: NDArray[np.bool_] = (lives < before) & (lives > 0) & ~ended
    return lost


def join_steps(steps: list[Step]) -> Step:
    """The lanes' steps as one of all games; entries of `infos` that some lanes lack are marked absent there."""
    if len(steps) == 1:
        return steps[0]
    obs, rewards, terminated, truncated = (np.concatenate([step[i] for step in steps]) for i in range(4))
    told = [step[4] for step in steps]
    infos: dict[str, Any] = {}
    for key in dict.fromkeys(name for info in told for name in info if not name.startswith("_")):
        like = next(info[key] for info in told if key in info)
        rows = [
            info.get(key, np.zeros((len(step[1]), *like.shape[1:]), like.dtype))
            for info, step in zip(told, steps, strict=True)
        ]
        infos[key] = np.concatenate(rows)
        if any(f"_{key}" in info for info in told):
            absent = [np.zeros(len(step[1]), np.bool_) for step in steps]
            masks = [info.get(f"_{key}", none) for info, none in zip(told, absent, strict=True)]
            infos[f"_{key}"] = np.concatenate(masks)
    return obs, rewards, terminated, truncated, infos
