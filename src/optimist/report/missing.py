"""What a report could not use: a list of each kind, and the numbers in those lists."""

from __future__ import annotations

import html
from collections.abc import Sequence

from optimist.report.page import paragraph
from optimist.report.runs import Kind, Problem

KINDS: dict[Kind, tuple[str, str]] = {
    "unfinished": ("unfinished runs", "in no table; their curves where the method has no finished run"),
    "repeated": ("repeated runs", "same method, environment, budget and seed as another one"),
    "other": ("other", "damaged, changed on the way, or without what was asked for"),
}
"""What each kind of problem is called, and what it means."""
SHORT = 8
"""A list of up to this many stands open on the page."""


def of_kind(problems: Sequence[Problem], kind: Kind) -> list[Problem]:
    """Those of one kind, as they are listed and counted."""
    return [problem for problem in problems if problem.kind == kind]


def callout(problems: Sequence[Problem]) -> str:
    """How many of each kind, for the top of the page; nothing where nothing is missing."""
    counts = {title: len(of_kind(problems, kind)) for kind, (title, _) in KINDS.items()}
    words = ", ".join(f"{title}: {count}" for title, count in counts.items() if count)
    return f'<p class="callout"><a href="#missing">What is missing</a>: {words}.</p>' if words else ""


def missing_section(problems: Sequence[Problem]) -> str:
    """The lists, folded up where they are long."""
    lists = "".join(_list(kind, of_kind(problems, kind)) for kind in KINDS)
    return lists or paragraph("Nothing: everything found could be used.")


def _list(kind: Kind, problems: Sequence[Problem]) -> str:
    if not problems:
        return ""
    title, meaning = KINDS[kind]
    items = "".join(f"<li><code>{html.escape(where)}</code>: {html.escape(what)}</li>" for where, what, _ in problems)
    return (
        f"<details{'' if len(problems) > SHORT else ' open'}><summary><b>{title.capitalize()}: {len(problems)}</b>, "
        f'{meaning}</summary><ul class="missing">{items}</ul></details>\n'
    )
