"""The page of licences says what the installed packages say."""

import importlib.util
from pathlib import Path

ROOT = Path(__file__).parents[2]
SPEC = importlib.util.spec_from_file_location("licences_page", ROOT / "tools" / "licences_page.py")
licences = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(licences)
PAGE = (ROOT / "docs" / "licences.md").read_text()


def test_the_licence_of_every_installed_package_is_on_the_page():
    rows = (line.removeprefix("| ").split(" | ") for line in PAGE.splitlines() if line.count(" | ") == 2)
    listed = {row[0]: row[1] for row in rows}
    groups = licences.packages_of()
    names = set().union(*(names for extra, names in groups.items() if extra not in ("dev", "docs")))
    found = {name: licences.licence_of(licences.distribution(name)) for name in names}
    assert {name: listed.get(name) for name in found} == found, "run python tools/licences_page.py > docs/licences.md"


def test_copyleft_is_named_where_a_user_installs_it():
    install = (ROOT / "docs" / "start" / "install.md").read_text()
    atari = (ROOT / "docs" / "environments" / "atari.md").read_text()
    assert "GPL-2.0" in install
    assert "LGPL-2.1" in install
    assert "GPL-2.0" in atari


def test_nothing_that_optimist_itself_needs_is_copyleft():
    licence = {name: licences.licence_of(licences.distribution(name)) for name in licences.packages_of()[""]}
    assert not [name for name, words in licence.items() if licences.COPYLEFT.search(words)]
