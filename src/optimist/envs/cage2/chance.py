"""The dice of one game: a xoroshiro128++ stream in the game itself, so a seed fixes all on any number of threads."""

from __future__ import annotations

from typing import Any

import numpy as np

from optimist.envs.cage2.compiled import rule

_R17, _R21, _R28, _R49 = (np.uint64(bits) for bits in (17, 21, 28, 49))
_L17, _L28, _L49 = (np.uint64(64 - bits) for bits in (17, 28, 49))
_HALF = np.uint64(32)
_SIGNED: Any = np.int64


@rule
def next_bits(game: Any) -> Any:
    """64 fresh bits (xoroshiro128++, Blackman and Vigna 2019)."""
    low = game.random[0]
    high = game.random[1]
    total = low + high
    bits = ((total << _R17) | (total >> _L17)) + low
    high ^= low
    game.random[0] = ((low << _R49) | (low >> _L49)) ^ high ^ (high << _R21)
    game.random[1] = (high << _R28) | (high >> _L28)
    return bits


@rule
def draw(game: Any, sides: int) -> int:
    """An integer uniform over 0..sides−1, from the upper 32 of 64 bits."""
    face: int = _SIGNED(((next_bits(game) >> _HALF) * np.uint64(sides)) >> _HALF)
    return face


@rule
def size(members: int) -> int:
    """How many members a set of up to 16 has."""
    members = members - ((members >> 1) & 0x5555)
    members = (members & 0x3333) + ((members >> 2) & 0x3333)
    members = (members + (members >> 4)) & 0x0F0F
    return (members + (members >> 8)) & 0x1F


@rule
def lowest(members: int) -> int:
    """The lowest member of a set that is not empty."""
    return size((members & -members) - 1)


@rule
def one_of(game: Any, members: int) -> int:
    """A member of a set that is not empty, drawn uniformly."""
    for _ in range(draw(game, size(members))):
        members &= members - 1
    return lowest(members)


@rule
def one_of_or_given(game: Any, members: int, given: int) -> int:
    """The given member where it is one, else the lowest: replay then differs from its record and says so."""
    if given < 16 and (members >> given) & 1:
        return given
    return lowest(members)
