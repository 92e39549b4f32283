"""The page: one HTML file of sections, whose parts are paragraphs, tables, charts and collapsible groups of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from optimist.report.charts import Chart
from optimist.report.formatting import render
from optimist.report.runs import Problem
from optimist.report.tables import Table

PROBLEMS = {
    "unfinished": ("unfinished runs", "in no table; their curves are drawn where the method has no finished run"),
    "repeated": ("repeated runs", "same method, environment, budget and seed as another run"),
    "other": ("other", "damaged, changed during the run, or without the requested statistic"),
}
"""Kind of problem → its title and meaning."""
MAX_OPEN = 8
"""A list of up to this many problems is open on the page."""


class Details(NamedTuple):
    """Parts below a summary line that opens them."""

    summary: str
    parts: Sequence[Part]
    open: bool = False


Part: TypeAlias = "Table | Chart | Details | str"
"""A text is a paragraph; HTML that a template made stays as it is."""


class Section(NamedTuple):
    """A part of the page, with its entry in the navigation."""

    id: str
    title: str
    parts: Sequence[Part]


def render_page(title: str, sections: Sequence[Section], problems: Sequence[Problem], **values: Any) -> str:
    """The whole file, style included."""
    found = {kind: [problem for problem in problems if problem.kind == kind] for kind in PROBLEMS}
    groups = [(*PROBLEMS[kind], group) for kind, group in found.items() if group]
    templates = resources.files("optimist.report").joinpath("templates")
    style = "".join(templates.joinpath(name).read_text(encoding="utf-8") for name in ("style.css", "report.css"))
    return render("page.html", title=title, sections=sections, groups=groups, most=MAX_OPEN, style=style, **values)


def save_parts(parts: Iterable[Part], out: Path) -> None:
    """Write tables to `out`/tables and charts to `out`/figures."""
    for part in _flat(parts):
        if isinstance(part, Table):
            part.save(out / "tables")
        elif isinstance(part, Chart):
            part.save(out / "figures")


def _flat(parts: Iterable[Part]) -> Iterator[Part]:
    for part in parts:
        yield from _flat(part.parts) if isinstance(part, Details) else [part]
