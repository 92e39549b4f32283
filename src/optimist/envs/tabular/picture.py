"""A grid world as a picture and as text: its cells, the path so far, and the agent."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

Picture = NDArray[np.uint8]
FLOOR, WALL, KEY, DOOR, OPEN_DOOR, TREASURE, APPLE = ".", "#", "k", "D", "d", "T", "a"
SIDE = 384  # pixels of the longer side, about
COLOURS = {
    "floor": "ffffff", "line": "e4e4e0", "wall": "84878e", "path": "e8f1fb", "trace": "0b5cad",
    "agent": "d55e00", KEY: "b47a00", DOOR: "b23a0a", OPEN_DOOR: "b23a0a", TREASURE: "ffd466", APPLE: "00694b",
}  # fmt: skip


@dataclass(frozen=True)
class Scene:
    """What is at each cell now, and the cells (row, column) that the agent visited, the last one its own."""

    cells: list[list[str]]
    path: list[tuple[int, int]]


def text_of(scene: Scene) -> str:
    """The grid in characters: `o` the agent, `*` the path; # wall, k key, D door, d open door, a apple, T treasure."""
    rows = [list(row) for row in scene.cells]
    for row, column in scene.path:
        if rows[row][column] == FLOOR:
            rows[row][column] = "*"
    row, column = scene.path[-1]
    rows[row][column] = "o"
    return "\n".join(" ".join(row) for row in rows)


def picture_of(scene: Scene) -> Picture:
    """The grid in colour, [H, W, 3]."""
    height, width = len(scene.cells), len(scene.cells[0])
    size = max(12, SIDE // max(height, width))
    picture = np.full((height * size, width * size, 3), _colour("floor"), np.uint8)
    for row, column in np.ndindex(height, width):
        kind = scene.cells[row][column]
        cell = picture[row * size : (row + 1) * size, column * size : (column + 1) * size]
        cell[:] = _colour("wall" if kind == WALL else "path" if (row, column) in scene.path else "floor")
        cell[0], cell[:, 0] = _colour("line"), _colour("line")
        if kind not in (FLOOR, WALL):
            cell[_shape(kind, size)] = _colour(kind)
    centres = [(row * size + size // 2, column * size + size // 2) for row, column in scene.path]
    for (row, column), (to_row, to_column) in pairwise(centres):
        _line(picture, row, column, to_row, to_column, thickness=max(1, size // 10))
    row, column = centres[-1]
    _disc(picture, row, column, radius=size // 4)
    return picture


def _colour(name: str) -> NDArray[np.uint8]:
    return np.array(list(bytes.fromhex(COLOURS[name])), np.uint8)


def _shape(kind: str, size: int) -> NDArray[np.bool_]:
    """The pixels of an object within its cell."""
    y, x = np.abs(np.indices((size, size)) - (size - 1) / 2) / size  # distance from the centre, in cells
    if kind == TREASURE:
        return np.asarray(x + y < 0.42)
    if kind == APPLE:
        return np.asarray(x**2 + y**2 < 0.09)
    if kind == KEY:
        return np.asarray((x < 0.09) & (y < 0.36) | (x**2 + y**2 < 0.03))
    frame = (x < 0.42) & (y < 0.46)
    return np.asarray(frame if kind == DOOR else frame & ((x > 0.32) | (y > 0.4)))


def _line(picture: Picture, row: int, column: int, to_row: int, to_column: int, thickness: int) -> None:
    steps, half = max(abs(to_row - row), abs(to_column - column), 1), thickness // 2
    for y, x in np.linspace((row, column), (to_row, to_column), steps + 1).round().astype(int):
        picture[max(y - half, 0) : y + half + 1, max(x - half, 0) : x + half + 1] = _colour("trace")


def _disc(picture: Picture, row: int, column: int, radius: int) -> None:
    y, x = np.ogrid[: picture.shape[0], : picture.shape[1]]
    picture[(y - row) ** 2 + (x - column) ** 2 <= radius**2] = _colour("agent")


def render(scene: Scene, mode: str | None) -> Any:
    """The scene as `rgb_array` or `ansi` ask for it; None without a mode."""
    return None if mode is None else picture_of(scene) if mode == "rgb_array" else text_of(scene)
