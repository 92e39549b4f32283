"""The interface of a defender of the original game: 52 bits in, one of 145 actions out, for many games at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Logits = Callable[[NDArray[np.int8]], NDArray[np.float32]]
"""A network: inputs [N, I] → unnormalised log-probabilities [N, A] of its actions."""


@runtime_checkable
class Defender(Protocol):
    """A blue agent for N games at once; it keeps its own memory of each game and does not know the attacker.

    `optimist cage2 score` plays any defender.
    """

    table: str
    """Blue's table in its training: `official` or `cardiff`."""

    def reset(self, num_games: int) -> None:
        """Start new games and clear the memory of the last ones."""

    def act(self, observations: NDArray[np.int8], *, greedy: bool, generator: np.random.Generator) -> NDArray[np.int64]:
        """Flat actions [N] (0..144) for the game's observations [N, 52], which are all 0 at the start of a game.

        Called once per step of all games. `greedy` takes the most probable action, else `generator` draws one.
        """


class PolicyDefender:
    """A policy with the game's own interface, without memory."""

    def __init__(self, network: Logits, table: str = "official") -> None:
        self.network, self.table = network, table

    def reset(self, num_games: int) -> None:
        """Do nothing: there is no memory."""

    def act(self, observations: NDArray[np.int8], *, greedy: bool, generator: np.random.Generator) -> NDArray[np.int64]:
        """The policy's actions [N]."""
        return choose_action(self.network(observations), greedy=greedy, generator=generator)


def choose_action(logits: NDArray[Any], *, greedy: bool, generator: np.random.Generator) -> NDArray[np.int64]:
    """The most probable action of each row, or a sample of softmax(logits): argmax of logits + Gumbel noise."""
    noise = 0.0 if greedy else generator.gumbel(size=logits.shape)
    actions: NDArray[np.int64] = np.argmax(logits + noise, axis=-1)
    return actions
