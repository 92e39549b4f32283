"""From a screen to an observation: the maximum of two screens, resized to 84 × 84 by area."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from optimist.envs.atari.buffers import OBS_SIZE

MAX_COVERED = 4
"""Most source pixels that one resized pixel covers along an axis, for axes of up to 250 pixels."""
Function = TypeVar("Function", bound=Callable[..., Any])
AreaWeights = tuple[NDArray[np.int64], NDArray[np.float32]]


def cached_njit(function: Function) -> Function:
    """Compile at the first call, without the GIL; cache on disk where Numba finds a writable folder."""
    import numba

    try:
        return cast(Function, numba.njit(nogil=True, cache=True)(function))
    except RuntimeError:  # no writable cache folder: each process compiles its own
        return cast(Function, numba.njit(nogil=True)(function))


@cache
def area_weights(length: int) -> AreaWeights:
    """For each of 84 resized pixels: its first source pixel [84], and the weights [84, 4] of the pixels it covers."""
    scale = length / OBS_SIZE
    first_pixels, weights = np.zeros(OBS_SIZE, np.int64), np.zeros((OBS_SIZE, MAX_COVERED), np.float32)
    for pixel in range(OBS_SIZE):
        left, right = pixel * scale, min((pixel + 1) * scale, float(length))
        first, last = int(np.ceil(left)), min(int(np.floor(right)), length - 1)
        width = min(scale, length - left)
        first_pixels[pixel] = first
        covered = []
        if first - left > 1e-3:
            first_pixels[pixel] = first - 1
            covered.append((first - left) / width)
        covered += [1.0 / width] * (last - first)
        if right - last > 1e-3:
            covered.append(min(right - last, 1.0, width) / width)
        weights[pixel, : len(covered)] = covered
    return first_pixels, weights


@cached_njit
def max_pool_and_resize(
    screens: NDArray[np.uint8], rows: AreaWeights, columns: AreaWeights, frame: NDArray[np.uint8]
) -> None:
    """Max-pool two screens into the first, and write its area-resized 84 × 84 version to `frame`.

    Sums and rounding have the order of OpenCV's INTER_AREA: area means halfway between two integers are frequent, and
    have to be rounded in the same direction.
    """
    height, width = screens.shape[1:]
    first_rows, row_weights = rows
    first_columns, column_weights = columns
    line = np.zeros(width + MAX_COVERED, np.float32)  # padded: weights of pixels that are not covered are 0
    lines = np.zeros((height + MAX_COVERED, OBS_SIZE), np.float32)
    for y in range(height):
        for x in range(width):
            screens[0, y, x] = max(screens[0, y, x], screens[1, y, x])
            line[x] = screens[0, y, x]
        for x in range(OBS_SIZE):
            first = first_columns[x]
            total = line[first] * column_weights[x, 0]
            total += line[first + 1] * column_weights[x, 1]
            lines[y, x] = total + line[first + 2] * column_weights[x, 2]
    for y in range(OBS_SIZE):
        first = first_rows[y]
        for x in range(OBS_SIZE):
            total = lines[first, x] * row_weights[y, 0]
            total += lines[first + 1, x] * row_weights[y, 1]
            total += lines[first + 2, x] * row_weights[y, 2]
            frame[y, x] = np.rint(total + lines[first + 3, x] * row_weights[y, 3])


def compile_resize() -> None:
    """Compile `max_pool_and_resize` before its first use."""
    screens = np.zeros((2, OBS_SIZE, OBS_SIZE), np.uint8)
    max_pool_and_resize(screens, area_weights(OBS_SIZE), area_weights(OBS_SIZE), screens[0].copy())
