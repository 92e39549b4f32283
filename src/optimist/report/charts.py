"""Chart: small multiples drawn once for files (SVG, PNG) and panel by panel for the page, in colours that follow it."""

from __future__ import annotations

import html
import io
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from optimist.report.figures import require_matplotlib
from optimist.report.scores import counted, short_number

PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#5b4a9e")
"""Okabe and Ito's colours without yellow and black, which a white or a dark page swallows, and a violet."""
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
}  # fmt: skip
OPEN_PANELS = 12


class Key(NamedTuple):
    """One entry of a legend, and how its line is drawn."""

    label: str
    color: str
    dash: str = "-"


class Panel(NamedTuple):
    """One pair of axes."""

    title: str
    draw: Callable[[Any], None]
    height: float | None = None
    """In inches; the chart's if None."""


@dataclass(frozen=True)
class Chart:
    """Panels that share a legend and a caption."""

    name: str
    title: str
    panels: Sequence[Panel]
    caption: str
    keys: Sequence[Key] = ()
    size: tuple[float, float] = (3.6, 2.6)
    columns: int = 3

    def save(self, folder: Path) -> list[Path]:
        """`name`.svg and `name`.png: all panels and the legend in one picture."""
        pyplot = require_matplotlib()
        columns = min(self.columns, len(self.panels))
        lines = -(-len(self.panels) // columns)
        heights = [
            max(panel.height or self.size[1] for panel in self.panels[row * columns : (row + 1) * columns])
            for row in range(lines)
        ]
        legend = (
            0.2 * -(-len(self.keys) // _legend_columns(self.keys, columns * self.size[0])) + 0.15 if self.keys else 0
        )
        size = columns * self.size[0], sum(heights) + legend + 0.3
        many = len(self.panels) > OPEN_PANELS  # fitting the margins of fifty panels takes a minute
        layout = {"figure.constrained_layout.use": not many}
        with pyplot.rc_context(STYLE | layout | {"svg.hashsalt": self.name}):
            figure, axes = pyplot.subplots(lines, columns, figsize=size, squeeze=False, height_ratios=heights)
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
            self._add_legend(figure, "lower left" if many else "outside lower left", size[0])
            if not many:
                figure.get_layout_engine().execute(figure)  # once, not again for the second file
                figure.set_layout_engine("none")
            paths = [folder / f"{self.name}{suffix}" for suffix in (".svg", ".png")]
            figure.savefig(paths[0], facecolor="white", metadata={"Date": None})
            figure.savefig(paths[1], dpi=150, facecolor="white")
            pyplot.close(figure)
        return paths

    def _add_legend(self, figure: Any, place: str, width: float) -> None:
        if self.keys:
            lines = [
                require_matplotlib().Line2D([], [], color=k.color, linestyle=k.dash, linewidth=2) for k in self.keys
            ]
            words, columns = [key.label for key in self.keys], _legend_columns(self.keys, width)
            figure.legend(lines, words, loc=place, frameon=False, fontsize=8.5, ncols=columns)

    def html(self) -> str:
        """The panels one by one, so that a narrow page shows them below each other."""
        pictures = [self._inline(number, panel) for number, panel in enumerate(self.panels)]
        shown, hidden = "".join(pictures[:OPEN_PANELS]), pictures[OPEN_PANELS:]
        grid = f'<div class="panels" style="--columns:{self.columns}">'
        more = f"{grid}{''.join(hidden)}</div>"
        more = f"<details><summary>{counted(len(hidden), 'more panel')}</summary>{more}</details>" if hidden else ""
        return (
            f'<figure class="chart" id="{self.name}"><h4>{html.escape(self.title)}</h4>{legend_html(self.keys)}'
            f"{grid}{shown}</div>{more}"
            f"<figcaption>{html.escape(self.caption)} "
            f'<span class="files">Files: figures/{self.name}.svg, .png</span></figcaption></figure>\n'
        )

    def _inline(self, number: int, panel: Panel) -> str:
        pyplot = require_matplotlib()
        name = f"{self.name}-{number}"
        with pyplot.rc_context(STYLE | {"svg.hashsalt": name}):
            figure, axis = pyplot.subplots(figsize=(self.size[0], panel.height or self.size[1]))
            self._draw(panel, axis)
            out = io.StringIO()
            figure.savefig(out, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
            pyplot.close(figure)
        label = " – ".join(words for words in (self.title, panel.title) if words)
        return f'<div class="panel">{follow_page(out.getvalue(), name, label)}</div>'

    @staticmethod
    def _draw(panel: Panel, axis: Any) -> None:
        panel.draw(axis)
        if panel.title:
            axis.set_title(panel.title)


def follow_page(svg: str, name: str, label: str) -> str:
    """An SVG of matplotlib as part of a page: scaled by it, in its colours, with names nobody else uses."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<!--.*?-->\n?", "", svg, flags=re.DOTALL)
    svg = re.sub(r' (width|height)="[\d.]+pt"', "", svg, count=2)
    svg = re.sub(r'( id="|url\(#|xlink:href="#)', rf"\g<1>{name}-", svg)
    for color, variable in VARIABLES.items():
        svg = svg.replace(color, variable)
    svg = re.sub(r"<[^>]+>", lambda tag: re.sub(r"(\d+\.\d{2})\d+", r"\1", tag[0]), svg)  # hundredths are enough
    svg = re.sub(r"\n\s*", "\n", svg)
    return svg.replace("<svg", f'<svg role="img" aria-label="{html.escape(label)}"', 1)


def legend_html(keys: Iterable[Key]) -> str:
    """The legend as text with a stroke before each entry."""
    dashes = {"-": "none", "--": "6 3", ":": "2 3", "-.": "7 3 2 3"}
    items = "".join(
        '<li><svg viewBox="0 0 22 8" width="22" height="8" aria-hidden="true"><line x1="1" x2="21" y1="4" y2="4" '
        f'stroke="{VARIABLES.get(key.color, key.color)}" stroke-width="2.5" '
        f'stroke-dasharray="{dashes[key.dash]}"/></svg>{html.escape(key.label)}</li>'
        for key in keys
    )
    return f'<ul class="legend">{items}</ul>' if items else ""


def method_keys(methods: Sequence[str]) -> dict[str, Key]:
    """A colour for each method, the same in every chart; from the eighth on a dash as well."""
    return {
        method: Key(method, PALETTE[at % len(PALETTE)], DASHES[at // len(PALETTE) % len(DASHES)])
        for at, method in enumerate(methods)
    }


def step_axis(axis: Any, most: float) -> float:
    """Names the horizontal axis, from 0 to `most` steps; the factor from steps to its unit."""
    size, word = (1e6, "millions") if most >= 1e6 else (1e3, "thousands") if most >= 1e3 else (1.0, "")
    axis.set_xlabel(f"environment steps ({word})" if word else "environment steps")
    axis.set_xlim(0, 1.01 * most / size)
    axis.yaxis.set_major_formatter(lambda value, _: short_number(round(value, 9)))
    return 1 / size


def _legend_columns(keys: Sequence[Key], width: float) -> int:
    longest = max((len(key.label) for key in keys), default=1)
    return max(1, min(len(keys), int(width / (0.068 * longest + 0.5))))
