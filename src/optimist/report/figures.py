"""Figures from run folders: SVG and PNG, labelled axes, colours that colour-blind readers can tell apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optimist.errors import missing_extra
from optimist.tracking.metrics_log import read_metrics

COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
"""Okabe and Ito's palette."""
FLOAT = NDArray[np.float64]


def training_curves(
    curves: Mapping[str, Sequence[Path]],
    out: Path,
    *,
    title: str,
    metric: str = "rollout/raw_return",
    label: str = "return, mean of the last 100 training games",
    zoom: tuple[float, float] | None = None,
) -> list[Path]:
    """`out`.svg and `out`.png: a line per method (mean over its runs) with the range over runs as a band.

    `zoom` adds an inset with these limits of the vertical axis over the last half of training.
    """
    pyplot = _pyplot()
    figure, axes = pyplot.subplots(figsize=(7.5, 4.5), layout="constrained")
    inset = axes.inset_axes((0.42, 0.12, 0.55, 0.5)) if zoom else None
    for color, (name, runs) in zip(COLORS, curves.items(), strict=False):
        steps, values = _aligned([read_metrics(run / "metrics.jsonl") for run in runs], metric)
        for panel in (axes, inset):
            if panel is not None:
                panel.plot(steps / 1e6, values.mean(0), color=color, label=f"{name} ({len(runs)} seeds)", linewidth=1.6)
                panel.fill_between(steps / 1e6, values.min(0), values.max(0), color=color, alpha=0.2, linewidth=0)
    axes.set(xlabel="environment steps (millions)", ylabel=label, title=title)
    axes.grid(alpha=0.3)
    axes.legend(
        loc="upper left" if zoom is None else "center left", bbox_to_anchor=(0.0, 0.3) if zoom else None, fontsize=8
    )
    if inset is not None and zoom is not None:
        inset.set(ylim=zoom, xlim=(axes.get_xlim()[1] / 2, axes.get_xlim()[1]))
        inset.grid(alpha=0.3)
        inset.tick_params(labelsize=7)
    paths = [out.with_suffix(suffix) for suffix in (".svg", ".png")]
    for path in paths:
        figure.savefig(path, dpi=150)
    pyplot.close(figure)
    return paths


def _aligned(runs: Sequence[list[dict[str, Any]]], metric: str) -> tuple[FLOAT, FLOAT]:
    """Steps [S] that every run logged, and the metric there, [runs, S]."""
    found = [{line["step"]: line[metric] for line in run if line.get(metric) is not None} for run in runs]
    steps = sorted(set.intersection(*(set(values) for values in found)))
    return np.array(steps, float), np.array([[values[step] for step in steps] for values in found], float)


def _pyplot() -> Any:
    try:
        import matplotlib
    except ImportError as error:
        raise missing_extra("drawing figures", "report", "matplotlib") from error
    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot
