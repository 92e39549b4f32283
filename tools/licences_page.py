"""Print docs/licences.md: the licences of what each extra installs, from the metadata of installed packages."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
COPYLEFT = re.compile(r"GPL|MPL|Mozilla|GNU|EUPL|CDDL", re.IGNORECASE)
LONG = 60  # characters; a longer licence field is the text of the licence
KNOWN = {
    "3-Clause BSD License": "BSD-3-Clause", "BSD 3-Clause License": "BSD-3-Clause",
    "BSD 2-Clause License": "BSD-2-Clause", "2-clause BSD": "BSD-2-Clause",
    "Apache 2.0": "Apache-2.0", "Apache License, Version 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0", "MIT License": "MIT", "BSD License": "BSD", "zlib": "Zlib",
    "LGPL v2.1": "LGPL-2.1", "GPL": "GPL-3.0",  # MinAtar: its LICENSE file is version 3
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0", "Python Software Foundation License": "PSF-2.0",
    "ISC License (ISCL)": "ISC", "ISC license": "ISC", "University of Illinois/NCSA Open Source License": "NCSA",
}  # fmt: skip
INTRODUCTION = """# Licences

optimist, `cage2` and `a2600` are MIT. They install other packages, under the licences below.

- **Copyleft**: `ale-py` (Atari's emulator) is GPL-2.0 and `pygame-ce` (pictures of Box2D, extra `classic`) LGPL-2.1.
  MinAtar and codespell are GPL and used by the tests alone.
- optimist imports `ale-py`, and does not contain or distribute it.
- MPL-2.0 asks for nothing unless files of such a package are changed.

`python tools/licences_page.py` writes this page from the metadata of the installed packages; a test compares."""


def licence_of(package: Distribution) -> str:
    """The licence in the metadata: an expression, else the short field, else the classifiers."""
    metadata = package.metadata
    classifiers = [c.rpartition(" :: ")[2] for c in metadata.get_all("Classifier") or [] if c.startswith("License")]
    short = [text for text in (metadata.get("License") or "",) if 0 < len(text) < LONG and text != "UNKNOWN"]
    found = [metadata.get("License-Expression"), *short, *classifiers]
    first = next((text for text in found if text), "not stated")
    return KNOWN.get(first, first)


def installed(name: str, extras: frozenset[str], seen: set[tuple[str, frozenset[str]]]) -> set[str]:
    """The package and everything it needs here, by canonical name; what is not installed is left out."""
    name = canonicalize_name(name)
    try:
        package = distribution(name)
    except PackageNotFoundError:
        return set()
    if (name, extras) in seen:
        return {name}
    seen.add((name, extras))
    found = {name}
    for line in package.requires or ():
        need = Requirement(line)
        if need.marker is None or any(need.marker.evaluate({"extra": extra}) for extra in extras or {""}):
            found |= installed(need.name, frozenset(need.extras), seen)
    return found


def packages_of() -> dict[str, set[str]]:
    """Extra → the packages it adds to optimist's own; "" for optimist without extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    parts = {"": project["dependencies"]} | project["optional-dependencies"]
    found: dict[str, set[str]] = {}
    for extra, lines in parts.items():
        needs = [Requirement(line) for line in lines]
        names = [installed(need.name, frozenset(need.extras), set()) for need in needs if need.name != "optimist"]
        found[extra] = set().union(*names) - (found[""] if extra else set())
    return {extra: names - {"optimist", "cage2", "a2600"} for extra, names in found.items() if extra != "all"}


def licences_page() -> str:
    """docs/licences.md: a row for each extra, then one for each package."""
    groups = {extra: names for extra, names in packages_of().items() if names}
    licence = {name: licence_of(distribution(name)) for names in groups.values() for name in names}
    lines = [INTRODUCTION, "", "## Extras", "", "| extra | packages | copyleft |", "|---|---|---|"]
    for extra, names in groups.items():
        marked = ", ".join(f"{name} ({licence[name]})" for name in sorted(names) if COPYLEFT.search(licence[name]))
        lines.append(f"| {f'`{extra}`' if extra else 'none'} | {len(names)} | {marked or '–'} |")
    users = {extra: names for extra, names in groups.items() if extra not in ("dev", "docs")}
    lines += ["", "## Packages", "", "Those of `dev` and `docs`, for development alone, are left out."]
    lines += ["", "| package | licence | extras |", "|---|---|---|"]
    for name in sorted(set().union(*users.values())):
        extras = ["all" if not extra else f"`{extra}`" for extra, names in users.items() if name in names]
        lines.append(f"| {name} | {licence[name]} | {', '.join(extras)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(licences_page(), end="")
