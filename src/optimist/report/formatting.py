"""Values as text: counts, budgets and numbers in words, and Jinja templates for pages and tables."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Any

from optimist.errors import missing_extra

if TYPE_CHECKING:
    from jinja2 import Environment

LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "±": r"$\pm$", "–": "--", "−": "$-$", "·": r"$\cdot$",
    "×": r"$\times$", "≥": r"$\geq$", "τ": r"$\tau$", "…": r"\dots{}", "“": "``", "”": "''",
}  # fmt: skip


def counted(number: int, noun: str) -> str:
    """`1 run`, `2 runs`."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def readable(value: Any) -> str:
    """`10,000,000` for a budget, `not stated` for None."""
    if value is None:
        return "not stated"
    return f"{value:,}" if isinstance(value, int) else f"{value:g}" if isinstance(value, float) else str(value)


def short_steps(steps: int) -> str:
    """`10M`, `59.4k`: steps in the width of a column's header."""
    for size, unit in ((1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")):
        if steps >= size:
            return f"{steps / size:.3g}{unit}"
    return str(steps)


def short_number(value: float) -> str:
    """Three digits, with a letter for large numbers and an exponent for small ones."""
    value += 0.0  # no negative zero
    size = abs(value)
    for unit, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if size >= unit:
            return f"{value / (1e3 if letter == 'k' else unit):.3g}{letter}".replace("-", "−")
    text = f"{value:,.0f}" if size >= 1000 else f"{value:.1e}" if 0 < size < 0.001 else f"{value:.3g}"
    return text.replace("e-0", "e-").replace("-", "−")


def number(value: float, digits: int) -> str:
    """`1,234.5`, with a true minus sign and no negative zero."""
    return f"{value:z,.{digits}f}".replace("-", "−")


def decimals(value: float, half_width: float | None = None) -> int:
    """Number of meaningful decimal places, from the interval's half width or else from the value's size."""
    if half_width is not None and math.isfinite(half_width) and half_width > 0:
        return min(3, max(0, 1 - math.floor(math.log10(half_width)))) if half_width < 100 else 0
    size = abs(value)
    return 3 if 0 < size < 0.1 else 2 if size < 10 else 1 if size < 1000 else 0


def latex(text: str) -> str:
    """The text with LaTeX's special characters escaped."""
    return "".join(LATEX.get(character, character) for character in text)


def render(template: str, **values: Any) -> str:
    """Fill a template of `templates/`: escaped in .html, with << >> and <% %> as delimiters in .tex."""
    text = _environment(template.rpartition(".")[2]).get_template(template).render(values)
    if not template.endswith(".html"):
        return text
    from markupsafe import Markup

    return Markup(text)


@cache
def _environment(suffix: str) -> Environment:
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError as error:
        raise missing_extra("writing reports", "report", "jinja2") from error
    loader = PackageLoader("optimist.report")
    environment = Environment(
        loader=loader, autoescape=suffix == "html", undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"latex": latex, "pipes": lambda text: text.replace("|", r"\|")}
    environment.globals |= {"counted": counted, "short_number": short_number, "short_steps": short_steps}
    if suffix == "tex":  # braces belong to LaTeX
        return environment.overlay(
            block_start_string="<%", block_end_string="%>", variable_start_string="<<", variable_end_string=">>",
            comment_start_string="<#", comment_end_string="#>",
        )  # fmt: skip
    return environment
