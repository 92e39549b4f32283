"""Figures from run folders: SVG and PNG, labelled axes, colours that colour-blind readers can tell apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optimist.errors import missing_extra
from optimist.report.scores import counted
from optimist.tracking.metrics_log import read_metrics

COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
"""Okabe and Ito's palette."""
FLOAT = NDArray[np.float64]


Curve = Sequence[Sequence[float]]
"""Points (environment steps, value) of one run."""


def training_curves(
    runs: Mapping[str, Sequence[Path]], out: Path, *, title: str, zoom: tuple[float, float] | None = None
) -> list[Path]:
    """`draw_curves` of the returns that run folders logged."""
    curves = {
        name: [_curve(read_metrics(folder / "metrics.jsonl"), "rollout/raw_return") for folder in folders]
        for name, folders in runs.items()
    }
    return draw_curves(curves, out, title=title, zoom=zoom)


def draw_curves(
    curves: Mapping[str, Sequence[Curve]],
    out: Path,
    *,
    title: str,
    label: str = "return, mean of the last 100 training games",
    zoom: tuple[float, float] | None = None,
) -> list[Path]:
    """`out`.svg and `out`.png: a line per method (mean over its runs) with the range over runs as a band.

    `zoom` adds a second panel: the last half of training between these limits of the vertical axis.
    """
    pyplot = require_matplotlib()
    figure, panels = pyplot.subplots(
        1, 2 if zoom else 1, figsize=(9.5 if zoom else 6.5, 4.6), width_ratios=(3, 2) if zoom else (1,), squeeze=False
    )
    axes, *others = panels[0]
    for color, (name, runs) in zip(COLORS, curves.items(), strict=False):
        steps, values = _aligned(runs)
        for panel in (axes, *others):
            panel.plot(
                steps / 1e6, values.mean(0), color=color, label=f"{name} ({counted(len(runs), 'seed')})", linewidth=1.6
            )
            panel.fill_between(steps / 1e6, values.min(0), values.max(0), color=color, alpha=0.2, linewidth=0)
    for panel in (axes, *others):
        panel.set(xlabel="environment steps (millions)")
        panel.grid(alpha=0.3)
    axes.set(ylabel=label)
    if zoom:
        others[0].set(ylim=zoom, xlim=(axes.get_xlim()[1] / 2, axes.get_xlim()[1]), title="the last half, enlarged")
    figure.suptitle(title, fontsize=11)
    figure.legend(*axes.get_legend_handles_labels(), loc="lower center", ncols=3, frameon=False, fontsize=9)
    figure.tight_layout(rect=(0, 0.02 + 0.05 * -(-len(curves) // 3), 1, 1))  # room for the legend's rows
    paths = [out.with_suffix(suffix) for suffix in (".svg", ".png")]
    for path in paths:
        figure.savefig(path, dpi=150)
    pyplot.close(figure)
    return paths


def _curve(lines: Sequence[Mapping[str, Any]], metric: str) -> Curve:
    return [(line["step"], line[metric]) for line in lines if line.get(metric) is not None]


def _aligned(runs: Sequence[Curve]) -> tuple[FLOAT, FLOAT]:
    """Steps [S] at which every run has a point, and the values there, [runs, S]."""
    found = [{step: value for step, value in run} for run in runs]  # noqa: C416 (points may be lists)
    steps = sorted(set.intersection(*(set(values) for values in found)))
    return np.array(steps, float), np.array([[values[step] for step in steps] for values in found], float)


def require_matplotlib() -> Any:
    """matplotlib.pyplot, drawing to files only; an error that names the extra where it is not installed."""
    try:
        import matplotlib
    except ImportError as error:
        raise missing_extra("drawing figures", "report", "matplotlib") from error
    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot
