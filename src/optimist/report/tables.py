"""Table: cells with value, interval and marks, written as HTML, Markdown, LaTeX and CSV."""

from __future__ import annotations

import csv
import io
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from optimist.report.formatting import decimals, number, render


@dataclass(frozen=True)
class Cell:
    """A text, or a number with the half width of its interval, its number of runs, marks and emphasis."""

    text: str = ""
    value: float | None = None
    half_width: float | None = None
    runs: int | None = None
    marks: str = ""
    strong: bool = False
    digits: int | None = None
    brief: str = ""
    """What the page shows in place of a long text, which becomes its tooltip."""
    href: str = ""
    """Where the page links the cell to."""
    parts: Mapping[str, Any] | None = None
    """The numbers of a text by the name of their column in CSV, `` for the first."""

    @property
    def shown(self) -> str:
        """`1,234 ± 56`; a dash for an empty cell."""
        if self.value is None:
            return self.text or "–"
        digits = decimals(self.value, self.half_width) if self.digits is None else self.digits
        shown = number(self.value, digits)
        if self.half_width is not None and math.isfinite(self.half_width):
            shown += f" ± {number(self.half_width, digits)}"
        return shown


@dataclass(frozen=True)
class Head:
    """A column's header: its name, the small print below it, and the group of columns it belongs to."""

    name: str
    fine: str = ""
    group: str = ""
    numeric: bool = True
    url: str = ""

    @property
    def full(self) -> str:
        """Name and small print in one line; without small print, name and group."""
        words = self.fine or self.group
        return f"{self.name} ({words})" if words else self.name


@dataclass(frozen=True)
class Table:
    """A table with its caption and notes; the first column names the rows."""

    name: str
    title: str
    heads: Sequence[Head]
    rows: Sequence[Sequence[Cell]]
    caption: str = ""
    notes: Sequence[str] = field(default_factory=tuple)
    grouped: bool = False
    """In HTML the first column becomes a line above the rows that share it."""
    records: Sequence[Mapping[str, Any]] = ()
    """The rows of the CSV file in place of the cells."""

    @property
    def groups(self) -> list[tuple[str, int]]:
        """Groups of adjacent columns with their number of columns; empty where no column has a group."""
        if not any(head.group for head in self.heads):
            return []
        return [(group, len(list(found))) for group, found in itertools.groupby(self.heads, lambda head: head.group)]

    def html(self) -> str:
        """The table in a container that scrolls horizontally."""
        return render("table.html", table=self)

    def markdown(self) -> str:
        """GitHub's Markdown, headers with their small print in parentheses."""
        return render("table.md", table=self)

    def latex(self) -> str:
        """A booktabs table with marks as superscripts and the headers' small print below."""
        return render("table.tex", table=self)

    def csv(self) -> str:
        """Full precision, one number a field; intervals, runs and marks in columns of their own."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        if self.records:
            names = list(dict.fromkeys(name for record in self.records for name in record))
            writer.writerows([names, *([record.get(name, "") for name in names] for record in self.records)])
            return out.getvalue()
        parts = [_csv_parts([row[at] for row in self.rows]) for at in range(len(self.heads))]
        writer.writerow(
            head.full if part == "value" else f"{head.full}: {part}"
            for head, found in zip(self.heads, parts, strict=True)
            for part in found
        )
        for row in self.rows:
            writer.writerow(_csv_value(cell, part) for cell, found in zip(row, parts, strict=True) for part in found)
        return out.getvalue()

    def save(self, folder: Path) -> None:
        """Write NAME.md, NAME.csv and NAME.tex."""
        for suffix, text in ((".md", self.markdown()), (".csv", self.csv()), (".tex", self.latex())):
            (folder / f"{self.name}{suffix}").write_text(text, encoding="utf-8")


def _csv_parts(cells: Sequence[Cell]) -> list[str]:
    """The parts of a column's cells that get a column."""
    parts = ["value"]
    parts += dict.fromkeys(part for cell in cells for part in cell.parts or () if part)
    parts += ["half_width_95"] if any(cell.half_width is not None for cell in cells) else []
    parts += ["runs"] if any(cell.runs is not None for cell in cells) else []
    return parts + (["marks"] if any(cell.marks for cell in cells) else [])


def _csv_value(cell: Cell, part: str) -> Any:
    if cell.parts is not None:
        value = cell.parts.get("" if part == "value" else part)
    elif part == "value":
        value = cell.text if cell.value is None else cell.value
    else:
        value = getattr(cell, part.removesuffix("_95"), None)
    return "" if value is None or value != value else value
