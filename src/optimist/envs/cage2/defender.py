"""Defender: what plays the original game, 52 bits in and one of 145 actions out, for many games side by side.

A defender keeps whatever it remembers of each game to itself, so that it is scored (`optimist cage2 score`) and
exported (`optimist export`) through the challenge's own interface, however it was trained.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Logits = Callable[[NDArray[np.int8]], NDArray[np.float32]]
"""A network: inputs [N, I] → unnormalised log-probabilities [N, A] of its outputs."""


@runtime_checkable
class Defender(Protocol):
    """A blue agent that plays N games at once; nobody tells it who attacks."""

    table: str
    """The table of alarms it was trained with: `official` or `cardiff`."""

    def reset(self, num_games: int) -> None:
        """So many new games begin; what was remembered of the old ones is forgotten."""

    def act(self, observations: NDArray[np.int8], *, greedy: bool, generator: np.random.Generator) -> NDArray[np.int64]:
        """Flat actions [N] (0..144) for the observations [N, 52] as the game gives them, all zero at its start.

        Called once per step of all games. `greedy` takes the most probable action, else one is drawn with
        `generator`.
        """


class PolicyDefender:
    """A policy on the plain interface: 52 bits in, 145 actions out, nothing remembered."""

    def __init__(self, network: Logits, table: str = "official") -> None:
        self.network, self.table = network, table

    def reset(self, num_games: int) -> None:
        """Nothing is remembered, so nothing is forgotten."""

    def act(self, observations: NDArray[np.int8], *, greedy: bool, generator: np.random.Generator) -> NDArray[np.int64]:
        """The policy's action in each game."""
        return choose(self.network(observations), greedy=greedy, generator=generator)


def choose(logits: NDArray[Any], *, greedy: bool, generator: np.random.Generator) -> NDArray[np.int64]:
    """The most probable output of each row, or one drawn from softmax(logits): argmax of logits + Gumbel noise."""
    noise = 0.0 if greedy else generator.gumbel(size=logits.shape)
    chosen: NDArray[np.int64] = np.argmax(logits + noise, axis=-1)
    return chosen
