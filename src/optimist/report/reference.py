"""Published Atari scores, each with its source and budget; they stand apart from what is measured here."""

from __future__ import annotations

import json
import statistics
from functools import cache
from importlib import resources
from typing import Any, NamedTuple


class Published(NamedTuple):
    """What one source reports for one method on one game."""

    block: str
    """Which table of which source, with its budget in steps: `cleanrl_10M`."""
    method: str
    mean: float
    spread: float | None
    """Standard deviation over runs (over episodes for `nature_dqn_50M` and `sb3_zoo_10M`); None if there is none."""


@cache
def reference_scores() -> dict[str, Any]:
    """The whole collection: `sources`, `random_human`, `scores` (block → columns → game), and how to read them."""
    file = resources.files("optimist.report").joinpath("data/reference_scores.json")
    collection: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return collection


def published(game: str) -> list[Published]:
    """Every published score of a game, block by block; empty if the collection does not have it."""
    found = []
    for block, table in reference_scores()["scores"].items():
        for method, column in table["columns"].items():
            if (cell := column.get(game)) is not None:
                found.append(Published(block, method, *mean_and_spread(cell)))
    return found


def mean_and_spread(cell: Any) -> tuple[float, float | None]:
    """A cell of the collection, whatever shape its source gave it: the value, and the deviation if there is one."""
    if not isinstance(cell, dict):
        return float(cell), None
    cell = cell.get("final", cell)  # at the end of training, not the best point of the curve
    spread = statistics.stdev(cell["runs"]) if "runs" in cell else cell.get("std")
    return float(cell["mean"]), spread
