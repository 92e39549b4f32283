"""Random numbers of one game (xoroshiro128++), and bit operations on sets.

The generator's state is part of the game, so a seed fixes a game on any number of threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cage2.rules.compile import rule

_R17, _R21, _R28, _R49 = (np.uint64(bits) for bits in (17, 21, 28, 49))
_L17, _L28, _L49 = (np.uint64(64 - bits) for bits in (17, 28, 49))
_HALF = np.uint64(32)
_SIGNED: Any = np.int64


@rule
def next_bits(game: Any) -> Any:
    """64 random bits (xoroshiro128++, Blackman and Vigna 2019)."""
    low = game.random[0]
    high = game.random[1]
    total = low + high
    bits = ((total << _R17) | (total >> _L17)) + low
    high ^= low
    game.random[0] = ((low << _R49) | (low >> _L49)) ^ high ^ (high << _R21)
    game.random[1] = (high << _R28) | (high >> _L28)
    return bits


@rule
def draw(game: Any, number: int) -> int:
    """Random integer in 0..number−1, from the upper 32 of 64 bits."""
    value: int = _SIGNED(((next_bits(game) >> _HALF) * np.uint64(number)) >> _HALF)
    return value


@rule
def count_bits(mask: int) -> int:
    """Number of bits set in a mask of up to 16 bits."""
    mask = mask - ((mask >> 1) & 0x5555)
    mask = (mask & 0x3333) + ((mask >> 2) & 0x3333)
    mask = (mask + (mask >> 4)) & 0x0F0F
    return (mask + (mask >> 8)) & 0x1F


@rule
def lowest_bit(mask: int) -> int:
    """Index of the lowest bit of a mask that is not 0."""
    return count_bits((mask & -mask) - 1)


@rule
def draw_bit(game: Any, mask: int) -> int:
    """Index of a random bit of a mask that is not 0."""
    for _ in range(draw(game, count_bits(mask))):
        mask &= mask - 1
    return lowest_bit(mask)


@rule
def recorded_bit(mask: int, recorded: int) -> int:
    """The recorded bit if it is in the mask, else the lowest: the replay then reports a difference."""
    if recorded < 16 and (mask >> recorded) & 1:
        return recorded
    return lowest_bit(mask)
