"""Chart: small multiples drawn as files (SVG, PDF, PNG) and panel by panel for the page, in the page's colours."""

from __future__ import annotations

import html
import io
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from optimist.errors import missing_extra
from optimist.report.formatting import render, short_number
from optimist.report.runs import FLOAT, Curve

PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#5b4a9e")
"""Okabe and Ito's colours without yellow and black, which are invisible on a white or a dark page, and a violet."""
DASHES = ("-", "--", ":", "-.")
INK, MUTED, GRID = "#1b1b1f", "#6b6b77", "#dddde3"
VARIABLES = {INK: "var(--ink)", MUTED: "var(--muted)", GRID: "var(--line)"} | {
    color: f"var(--c{number})" for number, color in enumerate(PALETTE)
}
"""Colours of the files → variables of the page, which has a light and a dark set of them."""
STYLE = {
    "font.size": 9, "font.family": "sans-serif", "axes.titlesize": 9.5, "axes.titleweight": "bold",
    "axes.titlelocation": "left", "axes.labelsize": 8.5, "xtick.labelsize": 8, "ytick.labelsize": 8,
    "axes.spines.top": False, "axes.spines.right": False, "axes.edgecolor": MUTED, "axes.labelcolor": INK,
    "axes.titlecolor": INK, "text.color": INK, "xtick.color": MUTED, "ytick.color": MUTED, "xtick.labelcolor": INK,
    "ytick.labelcolor": INK, "axes.grid": True, "grid.color": GRID, "grid.linewidth": 0.6, "axes.axisbelow": True,
    "lines.linewidth": 1.5, "svg.fonttype": "none", "axes.unicode_minus": True, "axes.linewidth": 0.7,
    "xtick.major.width": 0.7, "ytick.major.width": 0.7, "figure.constrained_layout.use": True,
    "axes.formatter.useoffset": False, "pdf.fonttype": 42,
}  # fmt: skip
OPEN_PANELS = 12
POINTS = 160  # of a drawn curve
NARROW, WIDE = 3.73, {1: 12.8, 2: 6.3}
"""Widths of a panel on the page in inches of 96 pixels: on a phone or in three columns, and in one or two columns."""
TEXT_WIDTH = 244.0
"""Points that a line of text above a narrow panel may take."""
LABEL_SIZE, LINE = 8.5, 0.36
"""Points of a row's label, and the height of a further line of it in rows."""


class Key(NamedTuple):
    """One entry of a legend, and the style of its line."""

    label: str
    color: str
    dash: str = "-"
    full: str = ""
    """The whole name where the label is shorter."""


class Panel(NamedTuple):
    """One pair of axes."""

    title: str
    draw: Callable[[Any], None]
    height: float | None = None
    """In inches; None for the chart's."""


@dataclass(frozen=True)
class Chart:
    """Panels that share a legend and a caption."""

    name: str
    title: str
    panels: Sequence[Panel]
    caption: str = ""
    keys: Sequence[Key] = ()
    size: tuple[float, float] = (3.6, 2.6)
    """Width and height of a panel in inches."""
    columns: int = 3

    def save(self, folder: Path) -> list[Path]:
        """Write NAME.svg, NAME.png and NAME.pdf: all panels and the legend in one picture."""
        with self._figure() as figure:
            svg = self._write_svg(figure, folder)
            png, pdf = folder / f"{self.name}.png", folder / f"{self.name}.pdf"
            figure.savefig(png, dpi=150, facecolor="white")
            figure.savefig(pdf, facecolor="white", metadata={"CreationDate": None})
        return [svg, png, pdf]

    def save_svg(self, folder: Path) -> Path:
        """Write NAME.svg alone."""
        with self._figure() as figure:
            return self._write_svg(figure, folder)

    def _write_svg(self, figure: Any, folder: Path) -> Path:
        path = folder / f"{self.name}.svg"
        figure.savefig(path, facecolor="white", metadata={"Date": None, "Creator": None})
        path.write_text(_rounded(_with_tooltips(path.read_text(encoding="utf-8"))), encoding="utf-8")
        return path

    @contextmanager
    def _figure(self) -> Iterator[Any]:
        """All panels and the legend as a figure of matplotlib, closed afterwards."""
        pyplot = require_matplotlib()
        columns = min(self.columns, len(self.panels))
        rows = [self.panels[at : at + columns] for at in range(0, len(self.panels), columns)]
        heights = [max(self._height(panel) for panel in row) for row in rows]
        legend_columns = _legend_columns(self.keys, columns * self.size[0])
        legend = 0.2 * -(-len(self.keys) // legend_columns) + 0.15 if self.keys else 0
        size = columns * self.size[0], sum(heights) + legend + 0.3
        many = len(self.panels) > OPEN_PANELS  # constrained layout of fifty panels takes a minute
        layout = {"figure.constrained_layout.use": not many}
        with pyplot.rc_context(STYLE | layout | {"svg.hashsalt": self.name}):
            figure, axes = pyplot.subplots(len(rows), columns, figsize=size, squeeze=False, height_ratios=heights)
            if many:
                figure.subplots_adjust(
                    left=0.65 / size[0], right=1 - 0.1 / size[0], wspace=0.8 / self.size[0],
                    top=1 - 0.65 / size[1], bottom=(legend + 0.45) / size[1], hspace=0.85 / self.size[1],
                )  # fmt: skip
            for at, axis in enumerate(axes.flat):
                if at < len(self.panels):
                    self._draw(self.panels[at], axis)
                else:
                    axis.set_axis_off()
            place = {"y": 1 - 0.1 / size[1], "va": "top"} if many else {}
            figure.suptitle(self.title, fontsize=11, x=0.01, ha="left", fontweight="bold", **place)
            if self.keys:
                lines = [pyplot.Line2D([], [], color=key.color, linestyle=key.dash, linewidth=2) for key in self.keys]
                labels, where = [key.label for key in self.keys], "lower left" if many else "outside lower left"
                figure.legend(lines, labels, loc=where, frameon=False, fontsize=8.5, ncols=legend_columns)
            if not many:
                figure.get_layout_engine().execute(figure)  # once for both files
                figure.set_layout_engine("none")
            try:
                yield figure
            finally:
                pyplot.close(figure)

    def html(self) -> str:
        """The panels one by one, so that a narrow page shows them below each other."""
        columns = min(self.columns, len(self.panels))
        widths = {"narrow": NARROW} | ({"wide": WIDE[columns]} if columns in WIDE else {})
        pictures = [
            {form: self._inline(f"{self.name}-{number}-{form}", panel, width) for form, width in widths.items()}
            for number, panel in enumerate(self.panels)
        ]
        return render(
            "chart.html", chart=self, pictures=pictures, columns=columns, shown=OPEN_PANELS, variables=VARIABLES
        )

    def _height(self, panel: Panel) -> float:
        """In inches, with the further lines of a long title."""
        return (panel.height or self.size[1]) + 0.17 * _title(panel.title).count("\n")

    def _inline(self, name: str, panel: Panel, width: float) -> str:
        pyplot = require_matplotlib()
        with pyplot.rc_context(STYLE | {"svg.hashsalt": name}):
            figure, axis = pyplot.subplots(figsize=(width, self._height(panel)))
            self._draw(panel, axis)
            out = io.StringIO()
            figure.savefig(out, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
            pyplot.close(figure)
        return inline_svg(out.getvalue(), name, " – ".join(words for words in (self.title, panel.title) if words))

    @staticmethod
    def _draw(panel: Panel, axis: Any) -> None:
        panel.draw(axis)
        if panel.title:
            axis.set_title(_title(panel.title))


def inline_svg(svg: str, name: str, label: str) -> str:
    """matplotlib's SVG as a part of a page: scaled by the page, in its colours, with unique ids."""
    svg = _with_tooltips(svg[svg.index("<svg") :])
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<!--.*?-->\n?", "", svg, flags=re.DOTALL)
    svg = re.sub(r' (width|height)="[\d.]+pt"', "", svg, count=2)
    svg = re.sub(r'( id="|url\(#|xlink:href="#)', rf"\g<1>{name}-", svg)
    for color, variable in VARIABLES.items():
        svg = svg.replace(color, variable)
    svg = _rounded(svg)
    svg = re.sub(r"\n\s*", "\n", svg)
    return svg.replace("<svg", f'<svg role="img" aria-label="{html.escape(label)}"', 1)


def method_keys(methods: Sequence[str]) -> dict[str, Key]:
    """A colour for each method, the same in every chart; from the eighth method on also a dash."""
    return {
        method: Key(method, PALETTE[at % len(PALETTE)], DASHES[at // len(PALETTE) % len(DASHES)])
        for at, method in enumerate(methods)
    }


def step_axis(axis: Any, most: float) -> float:
    """Label the horizontal axis, from 0 to `most` steps; returns the factor from steps to the axis's unit."""
    size, word = (1e6, "millions") if most >= 1e6 else (1e3, "thousands") if most >= 1e3 else (1.0, "")
    axis.set_xlabel(f"environment steps ({word})" if word else "environment steps")
    axis.set_xlim(0, 1.01 * most / size)
    axis.yaxis.set_major_formatter(lambda value, _: short_number(round(value, 9)))
    return 1 / size


def aligned(curves: Sequence[Curve]) -> tuple[FLOAT, FLOAT]:
    """Steps [S] that all curves cover, and the values there [runs, S], by linear interpolation."""
    first, last = max(curve.steps[0] for curve in curves), min(curve.steps[-1] for curve in curves)
    if last < first:
        return np.empty(0), np.empty((len(curves), 0))
    steps = curves[0].steps[(curves[0].steps >= first) & (curves[0].steps <= last)]
    if len(steps) > POINTS or len(steps) == 0:
        steps = np.linspace(first, last, POINTS)
    return steps, np.stack([np.interp(steps, curve.steps, curve.values) for curve in curves])


def draw_band(axis: Any, x: FLOAT, mean: FLOAT, low: FLOAT, high: FLOAT, key: Key, alpha: float = 0.16) -> None:
    """A line with a band; nan bounds draw no band."""
    axis.plot(x, mean, color=key.color, linestyle=key.dash, linewidth=1.7)
    axis.fill_between(x, low, high, color=key.color, alpha=alpha, linewidth=0)


def draw_seeds(axis: Any, curves: Sequence[Curve], scale: float, key: Key, alpha: float) -> None:
    """Seeds as thin lines, their mean on the steps of all, and from three seeds on a band from lowest to highest.

    The mean ends with the shortest seed, at a dot; longer seeds continue.
    """
    if len(curves) > 1:
        for curve in curves:
            chosen = np.unique(np.linspace(0, len(curve.steps) - 1, min(POINTS, len(curve.steps))).round().astype(int))
            x, y = curve.steps[chosen] * scale, curve.values[chosen]
            axis.plot(x, y, color=key.color, linewidth=0.75, alpha=0.42)
    steps, values = aligned(curves)
    if len(steps):
        x, mean = steps * scale, values.mean(0)
        bounds = (values.min(0), values.max(0)) if len(curves) > 2 else (mean, mean)
        draw_band(axis, x, mean, *bounds, key, alpha)
        if len(steps) == 1 or max(curve.steps[-1] for curve in curves) > 1.01 * steps[-1]:
            axis.plot(x[-1], mean[-1], "o", color=key.color, markersize=3.5)


def include_zero(axis: Any) -> None:
    """Vertical limits that include 0, so that a constant 0 is at the bottom."""
    low, high = (float(bound) if np.isfinite(bound) else 0.0 for bound in axis.dataLim.intervaly)
    low, high = min(low, 0.0), max(high, 0.0)
    span = (high - low) or 1.0
    axis.set_ylim(low - 0.05 * span * (low < 0), high + 0.05 * span * (high > 0) + (high == low))
    if low < 0:
        axis.axhline(0.0, color=MUTED, linewidth=0.7, zorder=1)


class Rows:
    """Rows from top to bottom of axes without a vertical axis, each below its label, which may have several lines."""

    def __init__(self, labels: Sequence[str], spans: Sequence[float] = ()) -> None:
        """`spans`: the height of each row's marks beyond one line of them, in rows."""
        self.texts = [wrapped(label, LABEL_SIZE) for label in labels]
        self.at: list[float] = []
        """The vertical position of each row's first mark."""
        place = 0.0
        for text, span in zip(self.texts, spans or [0.0] * len(self.texts), strict=True):
            place += LINE * text.count("\n")
            self.at.append(place)
            place += 1.0 + span
        self.units = max(place, 1.0)

    def draw(self, axis: Any, tooltips: Sequence[str] = ()) -> None:
        """Write the labels and hide the vertical axis."""
        for text, place, full in zip(self.texts, self.at, tooltips or self.texts, strict=True):
            label = axis.text(
                0.0, place - 0.3, text, transform=axis.get_yaxis_transform(), va="bottom", fontsize=LABEL_SIZE
            )
            label.set_in_layout(False)  # a long name must not shrink the axes
            if full not in (text, " ".join(text.split("\n"))):
                label.set_gid(f"tip:{full}")
        axis.set_ylim(self.units - 0.55, -0.95)
        axis.set_yticks([])
        axis.spines["left"].set_visible(False)


def wrapped(text: str, size: float, *, bold: bool = False) -> str:
    """The text in lines that fit above a narrow panel."""
    lines = [""]
    for word in text.split(" "):
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and _text_width(longer, size, bold) > TEXT_WIDTH:
            lines.append(word)
        else:
            lines[-1] = longer
    return "\n".join(lines)


def _title(text: str) -> str:
    return "\n".join(wrapped(line, 9.5, bold=True) for line in text.split("\n"))


@cache
def _text_width(text: str, size: float, bold: bool) -> float:
    """In points."""
    require_matplotlib()
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextPath

    font = FontProperties(family="sans-serif", weight="bold" if bold else "normal")
    return float(TextPath((0, 0), text.replace("$", "S"), size=size, prop=font).get_extents().width)


def _rounded(svg: str) -> str:
    """Coordinates with two decimals."""
    return re.sub(r"<[^>]+>", lambda tag: re.sub(r"(\d+\.\d{2})\d+", r"\1", tag[0]), svg)


def _with_tooltips(svg: str) -> str:
    """Texts whose group is named `tip:WORDS` get these words as a tooltip."""
    return re.sub(r'<g id="tip:([^"]*)">', r"<g><title>\1</title>", svg)


def require_matplotlib() -> Any:
    """matplotlib.pyplot with the file back-end; raises MissingExtra where it is not installed."""
    try:
        import matplotlib
    except ImportError as error:
        raise missing_extra("drawing figures", "report", "matplotlib") from error
    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot


def _legend_columns(keys: Sequence[Key], width: float) -> int:
    longest = max((len(key.label) for key in keys), default=1)
    return max(1, min(len(keys), int(width / (0.068 * longest + 0.5))))
