"""Table: cells with value, interval and marks, written as HTML, Markdown, CSV and LaTeX."""

from __future__ import annotations

import csv
import html
import io
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

FORMATS = {".md": "Markdown", ".csv": "CSV", ".tex": "LaTeX"}
LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$", "–": "--", "−": "$-$", "·": r"$\cdot$",
    "×": r"$\times$", "≥": r"$\geq$", "τ": r"$\tau$", "…": r"\dots{}", "“": "``", "”": "''",
}  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """A text, or a number with the half width of its interval, the runs behind it, marks and emphasis."""

    text: str = ""
    value: float | None = None
    half_width: float | None = None
    runs: int | None = None
    marks: str = ""
    strong: bool = False
    digits: int | None = None

    @property
    def shown(self) -> str:
        """`1,234 ± 56`; a dash where there is nothing."""
        if self.value is None:
            return self.text or "–"
        digits = decimals(self.value, self.half_width) if self.digits is None else self.digits
        shown = number(self.value, digits)
        if self.half_width is not None and math.isfinite(self.half_width):
            shown += f" ± {number(self.half_width, digits)}"
        return shown


@dataclass(frozen=True)
class Head:
    """A column's head: its name, what stands small below it, and the group it belongs to."""

    name: str
    fine: str = ""
    group: str = ""
    numeric: bool = True
    url: str = ""


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
    """On a page the first column becomes a line above the rows that share it, which leaves room for the others."""

    def html(self) -> str:
        """The table inside a container that scrolls by itself."""
        heads = self.heads[self.grouped :]
        head = "".join(_html_head(column) for column in heads)
        body, group = "", ""
        for row in self.rows:
            if self.grouped and row[0].shown != group:
                group = row[0].shown
                body += f'<tr class="over"><th colspan="{len(heads)}" scope="rowgroup">{html.escape(group)}</th></tr>\n'
            body += f"<tr>{_html_row(heads, row[self.grouped :])}</tr>\n"
        notes = "".join(f"<li>{html.escape(note)}</li>" for note in self.notes)
        kind = "table tall" if len(self.rows) > 20 else "table"
        return (
            f'<figure class="{kind}" id="{self.name}-table"><figcaption><b>{html.escape(self.title)}</b> '
            f'{html.escape(self.caption)}</figcaption><div class="scroll" tabindex="0" role="region" '
            f'aria-label="{html.escape(self.title)}"><table><thead>{self._html_groups()}<tr>{head}</tr></thead>\n'
            f"<tbody>{body}</tbody></table></div>{f'<ul class=notes>{notes}</ul>' if notes else ''}</figure>\n"
        )

    def _groups(self) -> list[tuple[str, int]]:
        """Groups of neighbouring columns with the number of columns each; empty where no column has one."""
        if not any(column.group for column in self.heads):
            return []
        return [(group, len(list(found))) for group, found in itertools.groupby(self.heads, lambda head: head.group)]

    def _html_groups(self) -> str:
        """A row above the heads, if columns are grouped."""
        cells = ""
        for group, count in self._groups():
            kind = " class=group" if group else ""
            cells += f'<th colspan="{count}"{kind} scope="colgroup"><span>{html.escape(group)}</span></th>'
        return f'<tr class="groups">{cells}</tr>' if cells else ""

    def markdown(self) -> str:
        """The table as GitHub's Markdown, heads with their small print in brackets."""
        heads = [_escape_pipe(_full(column)) for column in self.heads]
        rule = ["---:" if column.numeric else "---" for column in self.heads]
        rows = [[_escape_pipe(_markdown(cell)) for cell in row] for row in self.rows]
        lines = [f"**{self.title}** {self.caption}".strip(), ""]
        lines += [f"| {' | '.join(cells)} |" for cells in (heads, rule, *rows)]
        if self.notes:
            lines += ["", *(f"- {note}" for note in self.notes)]
        return "\n".join(lines) + "\n"

    def csv(self) -> str:
        """One row a row; value, half width, runs and marks of a cell in columns of their own where they occur."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        parts = [_csv_parts([row[at] for row in self.rows]) for at in range(len(self.heads))]
        writer.writerow(
            name for column, kinds in zip(self.heads, parts, strict=True) for name in _csv_heads(column, kinds)
        )
        for row in self.rows:
            writer.writerow(value for cell, kinds in zip(row, parts, strict=True) for value in _csv_values(cell, kinds))
        return out.getvalue()

    def latex(self) -> str:
        """A booktabs table; marks as superscripts, the highest in bold, the heads' small print below."""
        align = "".join("r" if column.numeric else "l" for column in self.heads)
        heads = " & ".join(latex(column.name) for column in self.heads)
        rows = "\n".join("    " + " & ".join(_latex(cell) for cell in row) + r" \\" for row in self.rows)
        caption = latex(f"{self.title} {self.caption}".strip())
        fine = [f"{column.name}: {column.fine}." for column in self.heads if column.fine]
        notes = "".join(f"\n  \\par\\footnotesize {latex(note)}" for note in (*fine, *self.notes))
        return (
            "% needs \\usepackage{booktabs}\n\\begin{table}\n  \\centering\\small\n"
            f"  \\caption{{{caption}}}\n  \\label{{tab:{self.name}}}\n"
            f"  \\begin{{tabular}}{{{align}}}\n    \\toprule\n{self._latex_groups()}    {heads} \\\\\n"
            f"    \\midrule\n{rows}\n"
            f"    \\bottomrule\n  \\end{{tabular}}{notes}\n\\end{{table}}\n"
        )

    def _latex_groups(self) -> str:
        """A row above the heads with a rule below each group."""
        cells, rules, at = [], "", 1
        for group, count in self._groups():
            cells.append(rf"\multicolumn{{{count}}}{{c}}{{{latex(group)}}}")
            rules += rf"\cmidrule(lr){{{at}-{at + count - 1}}}" if group else ""
            at += count
        return f"    {' & '.join(cells)} \\\\\n    {rules}\n" if cells else ""

    def save(self, folder: Path) -> list[Path]:
        """The three files."""
        paths = []
        for suffix, text in ((".md", self.markdown()), (".csv", self.csv()), (".tex", self.latex())):
            path = folder / f"{self.name}{suffix}"
            path.write_text(text, encoding="utf-8")
            paths.append(path)
        return paths


def number(value: float, digits: int) -> str:
    """1,234.5, with a real minus sign."""
    text = f"{value:,.{digits}f}"
    if text.strip("-0.,") == "":
        text = text.lstrip("-")  # −0.00
    return text.replace("-", "−")


def decimals(value: float, half_width: float | None = None) -> int:
    """As many digits behind the point as the interval, or the value's size, gives meaning to."""
    if half_width is not None and math.isfinite(half_width) and half_width > 0:
        return min(3, max(0, 1 - math.floor(math.log10(half_width)))) if half_width < 100 else 0
    size = abs(value)
    return 3 if 0 < size < 0.1 else 2 if size < 10 else 1 if size < 1000 else 0


def latex(text: str) -> str:
    """The text with LaTeX's special characters escaped."""
    return "".join(LATEX.get(character, character) for character in text)


def _full(column: Head) -> str:
    """The head in one line: with its small print or, without, its group."""
    words = column.fine or column.group
    return f"{column.name} ({words})" if words else column.name


def _html_head(column: Head) -> str:
    name = html.escape(column.name)
    if column.url:
        name = f'<a href="{html.escape(column.url)}" rel="noreferrer">{name}</a>'
    fine = f"<small>{html.escape(column.fine)}</small>" if column.fine else ""
    return f'<th scope="col"{"" if column.numeric else " class=text"}>{name}{fine}</th>'


def _html_row(heads: Sequence[Head], row: Sequence[Cell]) -> str:
    cells = ""
    for at, (column, cell) in enumerate(zip(heads, row, strict=True)):
        shown = html.escape(cell.shown)
        if cell.strong:
            shown = f"<b>{shown}</b>"
        if cell.marks:
            shown += f"<sup>{html.escape(cell.marks)}</sup>"
        if cell.runs is not None:
            shown += f'<small class="n">n = {cell.runs}</small>'
        kind = "" if column.numeric else " class=text"
        cells += f'<th scope="row">{shown}</th>' if at == 0 else f"<td{kind}>{shown}</td>"
    return cells


def _markdown(cell: Cell) -> str:
    shown = f"**{cell.shown}**" if cell.strong else cell.shown
    shown += f"<sup>{cell.marks}</sup>" if cell.marks else ""
    return shown + (f" (n = {cell.runs})" if cell.runs is not None else "")


def _escape_pipe(text: str) -> str:
    return text.replace("|", r"\|")


def _latex(cell: Cell) -> str:
    shown = latex(cell.shown)
    if cell.strong:
        shown = rf"\textbf{{{shown}}}"
    shown += rf"\textsuperscript{{{latex(cell.marks)}}}" if cell.marks else ""
    return shown + (f" ({cell.runs})" if cell.runs is not None else "")


def _csv_parts(cells: Sequence[Cell]) -> list[str]:
    """Which parts of a column's cells get a column."""
    kinds = ["value"]
    kinds += ["half_width_95"] if any(cell.half_width is not None for cell in cells) else []
    kinds += ["runs"] if any(cell.runs is not None for cell in cells) else []
    return kinds + (["marks"] if any(cell.marks for cell in cells) else [])


def _csv_heads(column: Head, kinds: Sequence[str]) -> list[str]:
    name = _full(column)
    return [name if kind == "value" else f"{name}: {kind}" for kind in kinds]


def _csv_values(cell: Cell, kinds: Sequence[str]) -> list[str | float | int]:
    parts: dict[str, str | float | int | None] = {
        "value": cell.text if cell.value is None else cell.value,
        "half_width_95": cell.half_width,
        "runs": cell.runs,
        "marks": cell.marks,
    }
    values = [parts[kind] for kind in kinds]
    return ["" if value is None or value != value else value for value in values]
