"""Numbers as text, ticks, sparklines and histograms, for templates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

SPARK: Final = (96, 26)
"""Width and height of a sparkline."""


def figure_text(value: float | None, *, signed: bool = False) -> str:
    """A number by the rules of figures: `3,825`, `−7.18`, `0.003`, `–` for none."""
    if value is None or not math.isfinite(value):
        return "–"
    size = abs(value)
    digits = 0 if size >= 99.95 or value == int(value) else 1 if size >= 9.995 else 2 if size >= 0.0995 else 3
    text = f"{value:z,.{digits}f}"
    if signed and value > 0 and float(text.replace(",", "")):
        text = f"+{text}"
    return text.replace("-", "−")


def axis_text(value: float) -> str:
    """A tick: `10k`, `2.5M`."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= size:
            return f"{value / (1e3 if letter == 'k' else size):.3g}{letter}".replace("-", "−")
    return f"{value:,.6g}".replace("-", "−")


def duration(seconds: float | None) -> str:
    """`16 s`, `2 min`, `3 h`."""
    if seconds is None or not math.isfinite(seconds):
        return "–"
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def ticks(low: float, high: float, about: int = 4) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten from low to high, about so many."""
    span = high - low
    if span <= 0:
        return [low]
    power = 10.0 ** math.floor(math.log10(span / about))
    step = next(power * size for size in (1, 2, 5, 10) if span / (power * size) <= about)
    return [round(k * step, 12) for k in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def spark_path(points: Sequence[tuple[float, float]], budget: float) -> str:
    """A sparkline's path; its width is the budget of the run."""
    if len(points) < 2:
        return ""
    width, height = SPARK
    low, high = min(y for _, y in points), max(y for _, y in points)
    last, span = max(budget, points[-1][0], 1.0), (high - low) or 1.0
    corners = (f"{x / last * width:.1f} {height - 3 - (y - low) / span * (height - 6):.1f}" for x, y in points)
    return "M" + "L".join(corners)


class Bin(NamedTuple):
    """Returns from low to high, and how many."""

    low: float
    high: float
    stored: int
    recent: int


def histogram(stored: Sequence[float], recent: Sequence[float], about: int = 24) -> list[Bin]:
    """Bins of one width over both sets of returns."""
    values = [value for value in (*stored, *recent) if math.isfinite(value)]
    if not values:
        return []
    low, high = min(values), max(values)
    marks = ticks(low, high, about) if high > low else [low]
    width = marks[1] - marks[0] if len(marks) > 1 else abs(low) * 0.05 or 0.1
    start = math.floor(low / width) * width if len(marks) > 1 else low - width / 2
    number = max(1, math.floor((high - start) / width + 1e-9) + 1)
    edges = start + width * np.arange(number + 1)
    kept, seen = (np.histogram(np.asarray(part, float), edges)[0] for part in (stored, recent))
    return [
        Bin(round(float(a), 9), round(float(b), 9), int(k), int(s))
        for a, b, k, s in zip(edges[:-1], edges[1:], kept, seen, strict=True)
    ]


def histogram_figure(bins: Sequence[Bin], threshold: float | None, chosen: int | None) -> dict[str, Any]:
    """Positions of a histogram of two rows over one x-axis, 560 × 330: stored episodes above, recent returns below."""
    width, left, right, tops, tall = 560.0, 40.0, 14.0, (36.0, 186.0), 106.0
    low, high = bins[0].low, bins[-1].high
    if len(bins) == 1:
        low, high = low - 4 * (high - low), high + 4 * (high - low)
    if threshold is not None and math.isfinite(threshold):
        low, high = min(low, threshold), max(high, threshold)

    def place(value: float) -> float:
        return round(left + (value - low) / ((high - low) or 1.0) * (width - left - right), 2)

    rows = []
    for top, which, name in ((tops[0], 2, "stored episodes"), (tops[1], 3, "recent episodes")):
        most = max(max(int(one[which]) for one in bins), 1)
        bars = [
            {"x": place(one.low) + 0.75, "width": max(place(one.high) - place(one.low) - 1.5, 1.0),
             "height": round(int(one[which]) / most * tall, 2), "count": int(one[which])}
            for one in bins
        ]  # fmt: skip
        rows.append({"name": name, "top": top, "base": top + tall, "most": most, "bars": bars})
    tau = None if threshold is None or not math.isfinite(threshold) else place(threshold)
    marks = [(place(tick), axis_text(tick)) for tick in ticks(low, high, 5)]
    areas = [
        {"x": place(one.low), "width": place(one.high) - place(one.low), "bin": one, "number": number,
         "chosen": number == chosen}
        for number, one in enumerate(bins)
    ]  # fmt: skip
    return {"rows": rows, "tau": tau, "marks": marks, "areas": areas, "width": width, "left": left, "right": right}
