"""The page: one HTML file with everything inside, for wide and narrow screens, light and dark."""

from __future__ import annotations

import html
from collections.abc import Sequence
from importlib import resources
from typing import NamedTuple

TITLE = "Runs and what they reached"
"""Of a page that is given no other."""
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
"""Tells the browser to fetch nothing, from nowhere."""


class Section(NamedTuple):
    """A part of the page, with its place in the navigation."""

    id: str
    title: str
    body: str


def render(title: str, lead: str, sections: Sequence[Section], footer: str) -> str:
    """The whole file."""
    style = resources.files("optimist.report").joinpath("data/report.css").read_text(encoding="utf-8")
    links = "".join(f'<a href="#{section.id}">{html.escape(section.title)}</a>' for section in sections)
    body = "\n".join(
        f'<section id="{section.id}"><h2>{html.escape(section.title)}</h2>\n{section.body}</section>'
        for section in sections
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="color-scheme" content="light dark">\n'
        '<link rel="icon" href="data:,">\n'
        f"<title>{html.escape(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n"
        f'<header class="top"><p class="kicker">optimist · report</p><h1>{html.escape(title)}</h1>\n{lead}</header>\n'
        f'<nav aria-label="sections"><div>{links}</div></nav>\n<main>\n{body}\n</main>\n'
        f"<footer>{footer}</footer>\n</body>\n</html>\n"
    )


def tiles(facts: Sequence[tuple[str, str]]) -> str:
    """A few numbers, large, with what they count below."""
    items = "".join(f"<div><dd>{html.escape(value)}</dd><dt>{html.escape(name)}</dt></div>" for name, value in facts)
    return f'<dl class="tiles">{items}</dl>'


def paragraph(text: str) -> str:
    """A paragraph of plain text."""
    return f"<p>{html.escape(text)}</p>\n"
