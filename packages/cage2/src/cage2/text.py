"""Plain text for the terminal: tables, numbers, JSON without nan."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any


def text_table(header: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> str:
    """Columns two spaces apart; the first `left` columns are aligned left, the others right."""
    lines = [list(header), *map(list, rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    texts = [
        "  ".join(
            word.ljust(width) if column < left else word.rjust(width)
            for column, (word, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]
    return "\n".join([texts[0], "-" * max(map(len, texts)), *texts[1:]])


def with_interval(mean: float, half_width: float) -> str:
    """A mean with the half width of its interval, if there is one: `-41.42 ± 0.07`."""
    return f"{mean:z.2f} ± {half_width:.2f}" if math.isfinite(half_width) else f"{mean:z.2f}"


def strict(value: Any) -> Any:
    """The same value for JSON, with None for nan and infinity."""
    if isinstance(value, dict):
        return {key: strict(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [strict(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
