"""The vendored files are those of their releases, and the page's own JavaScript stays small."""

import hashlib
from importlib import resources
from pathlib import Path

import pytest

VENDOR = resources.files("optimist.ui").joinpath("static/vendor")
RELEASES = (Path(str(VENDOR)) / "README.md").read_text(encoding="utf-8")
AXE = Path(__file__).parent / "vendor" / "axe.min.js"
AXE_HASH = "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c"
MOST_LINES = 500


@pytest.mark.parametrize("name", ["uplot.min.js", "uplot.min.css", "htmx.min.js"])
def test_a_vendored_file_has_the_hash_of_its_release_and_a_licence(name):
    assert hashlib.sha256(VENDOR.joinpath(name).read_bytes()).hexdigest() in RELEASES
    assert VENDOR.joinpath(f"{name.partition('.')[0]}.LICENSE").read_bytes()


def test_axe_is_that_of_its_release():
    assert hashlib.sha256(AXE.read_bytes()).hexdigest() == AXE_HASH


def test_our_own_javascript_has_at_most_500_lines():
    own = [resources.files("optimist.ui").joinpath("static/ui.js"), resources.files("cage2").joinpath("page/replay.js")]
    assert sum(len(file.read_text(encoding="utf-8").splitlines()) for file in own) <= MOST_LINES
