"""The console's picture, 210 × 160 or higher, as the learner sees it: the brighter of two frames, 84 × 84."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from optimist.envs.atari.board import SIZE
from optimist.envs.compiling import compiled

MOST = 4
"""Pixels that a new one can cover, at most: of 250 in a line."""
Shares = tuple[NDArray[np.int64], NDArray[np.float32]]


@cache
def shares(length: int) -> Shares:
    """First pixel [84] and weights [84, 4] of the pixels that each of 84 new ones covers, of `length` in a line."""
    scale = length / SIZE
    begins, weights = np.zeros(SIZE, np.int64), np.zeros((SIZE, MOST), np.float32)
    for new in range(SIZE):
        left, right = new * scale, min((new + 1) * scale, float(length))
        first, last = int(np.ceil(left)), min(int(np.floor(right)), length - 1)
        width = min(scale, length - left)
        begins[new] = first
        entries = []
        if first - left > 1e-3:
            begins[new] = first - 1
            entries.append((first - left) / width)
        entries += [1.0 / width] * (last - first)
        if right - last > 1e-3:
            entries.append(min(right - last, 1.0, width) / width)
        weights[new, : len(entries)] = entries
    return begins, weights


@compiled
def shrink(screens: NDArray[np.uint8], rows: Shares, columns: Shares, picture: NDArray[np.uint8]) -> None:
    """Fill `picture` with the mean over areas of the brighter of two screens, which the first becomes.

    Sums and roundings come in the order in which OpenCV's INTER_AREA makes them: means that lie halfway between two
    numbers are frequent, and go the same way.
    """
    height, width = screens.shape[1:]
    row_begins, row_weights = rows
    column_begins, column_weights = columns
    line = np.zeros(width + MOST, np.float32)  # whoever covers fewer than most has weights of 0 for the rest
    lines = np.zeros((height + MOST, SIZE), np.float32)
    for y in range(height):
        for x in range(width):
            screens[0, y, x] = max(screens[0, y, x], screens[1, y, x])
            line[x] = screens[0, y, x]
        for x in range(SIZE):
            first = column_begins[x]
            total = line[first] * column_weights[x, 0]
            total += line[first + 1] * column_weights[x, 1]
            lines[y, x] = total + line[first + 2] * column_weights[x, 2]
    for y in range(SIZE):
        first = row_begins[y]
        for x in range(SIZE):
            total = lines[first, x] * row_weights[y, 0]
            total += lines[first + 1, x] * row_weights[y, 1]
            total += lines[first + 2, x] * row_weights[y, 2]
            picture[y, x] = np.rint(total + lines[first + 3, x] * row_weights[y, 3])


def shrink_once() -> None:
    """Have it compiled."""
    screens = np.zeros((2, SIZE, SIZE), np.uint8)
    shrink(screens, shares(SIZE), shares(SIZE), screens[0].copy())
