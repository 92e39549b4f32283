"""Sparks: small line charts in plain SVG for the page of each run; light enough for a thousand runs."""

from __future__ import annotations

import html
from collections.abc import Sequence

import numpy as np

from optimist.report.runs import Curve
from optimist.report.scores import short_number, short_steps

WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 240, 112, 44, 20, 18
POINTS = 60


def spark(title: str, unit: str, curves: Sequence[tuple[Curve, str, str]]) -> str:
    """Curves of one unit over steps, each with its colour and name; extremes and last step stand at the axes."""
    low = min(float(curve.values.min()) for curve, *_ in curves)
    high = max(float(curve.values.max()) for curve, *_ in curves)
    last = max(float(curve.steps[-1]) for curve, *_ in curves)
    label = f"{title} ({unit})" if unit not in ("–", "") else title
    lines = "".join(_line(curve, color, low, high, last) for curve, color, _ in curves)
    words = html.escape(label)
    names = " ".join(f'<tspan fill="{color}">{html.escape(name)}</tspan>' for _, color, name in curves if name)
    top, bottom = (short_number(high), short_number(low)) if high > low else (short_number(high), "")
    return (
        f'<svg class="spark" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{words}, '
        f'from {short_number(low)} to {short_number(high)}">'
        f'<text x="0" y="11" class="t">{words}</text><text x="{WIDTH - 2}" y="11" class="e">{names}</text>'
        f'<path class="axis" d="M{LEFT} {TOP}V{HEIGHT - BOTTOM}H{WIDTH - 2}"/>'
        f'<text x="{LEFT - 4}" y="{TOP + 8}" class="e">{top}</text>'
        f'<text x="{LEFT - 4}" y="{HEIGHT - BOTTOM}" class="e">{bottom}</text>'
        f'<text x="{LEFT}" y="{HEIGHT - 5}">0</text>'
        f'<text x="{WIDTH - 2}" y="{HEIGHT - 5}" class="e">{short_steps(int(last))} steps</text>{lines}</svg>'
    )


def _line(curve: Curve, color: str, low: float, high: float, last: float) -> str:
    chosen = np.unique(np.linspace(0, len(curve.steps) - 1, min(POINTS, len(curve.steps))).round().astype(int))
    x = LEFT + (WIDTH - 4 - LEFT) * curve.steps[chosen] / max(last, 1.0)
    span = high - low
    share = (curve.values[chosen] - low) / span if span > 0 else np.full(len(chosen), 0.5)
    y = HEIGHT - BOTTOM - 2 - (HEIGHT - BOTTOM - TOP - 4) * share
    if len(chosen) == 1:
        return f'<circle cx="{x[0]:.1f}" cy="{y[0]:.1f}" r="2.5" fill="{color}"/>'
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
    return f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="1.6"/>'
