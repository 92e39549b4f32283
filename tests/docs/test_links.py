"""Links between the project's pages lead somewhere: to files that are there, and to headings that they have."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted(ROOT.glob("docs/**/*.md")), *ROOT.glob("results/**/*.md")]
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


def text_of(page):
    """Without blocks of code, in which brackets mean something else."""
    return re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)


def anchors_of(page):
    """What a heading is called in a link."""
    titles = (re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", title) for title in HEADING.findall(text_of(page)))
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def broken(page):
    found = []
    for link in LINK.findall(text_of(page)):
        if ":" in link.partition("/")[0]:  # elsewhere
            continue
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        if not target.exists() or (anchor and anchor not in anchors_of(target)):
            found.append(link)
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    assert broken(page) == []


def test_a_link_to_what_is_not_there_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "# One `two`: [three](#x)\n[a](#one-two-three) [b](page.md#one) [c](none.md) [d](https://e.org/none)\n"
    )
    assert broken(page) == ["#x", "page.md#one", "none.md"]
