"""Copy the pages of the site, and every file they link to, into one folder; `mkdocs.yml` builds the site from there.

python tools/stage_site.py DIR

Paths stay as in the repository, so that a link works on the site as it does in the repository.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
FIRST = ["README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "docs/**/*"]
LINK = re.compile(r"\]\(([^)\s#]+)[^)]*\)|(?:src|srcset|href)=\"([^\"#]+)\"")


def links_of(page: Path) -> list[Path]:
    """The files of the repository that a page links to; links to folders and other sites are not among them."""
    text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    targets = [markdown or html for markdown, html in LINK.findall(text)]
    files = [(page.parent / target).resolve() for target in targets if ":" not in target]
    return [file for file in files if file.is_file() and file.is_relative_to(ROOT)]


def site_files() -> set[Path]:
    """Every file of the site: the pages, and what can be reached from them."""
    waiting = [file for pattern in FIRST for file in ROOT.glob(pattern) if file.is_file()]
    found = set(waiting)
    while waiting:
        page = waiting.pop()
        if page.suffix == ".md":
            new = set(links_of(page)) - found
            found |= new
            waiting += new
    return found


def stage(folder: Path) -> int:
    """Replace the folder by a copy of the site's files, and return their number."""
    shutil.rmtree(folder, ignore_errors=True)
    files = site_files()
    for file in files:
        target = folder / file.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, target)
    return len(files)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("expected one folder: python tools/stage_site.py DIR")
    print(f"{stage(Path(sys.argv[1]))} files in {sys.argv[1]}")
