"""Claims: one name in experiments/, results/ and docs/results/; tables and figures are those of the raw data."""

import json
import re
import tomllib
from pathlib import Path

import pytest

from optimist.cli.main import main
from optimist.sweep.folder import ROWS
from optimist.sweep.plan import SweepFile

ROOT = Path(__file__).parents[2]
CLAIMS = sorted(
    path.stem for path in (ROOT / "experiments").glob("*.toml") if "out" in tomllib.loads(path.read_text("utf-8"))
)
PLANNED = ("default",)
"""Folders of results with a plan and no rows yet."""
BENCHMARKS = ("cage2-simulator", "integrations", "resume", "speed")
"""Folders of results that no sweep file describes."""
ALSO = {
    "cage2-best": {"score.json", "numpy_actions.json", "permuted_hosts.json"},
    "cage2-claim": {"values.jsonl"},
    "ray": {"comparison.json"},
}
"""Raw data of a benchmark about the same claim."""
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
NAME = re.compile(r'(id="|url\(#|href="#)[^")]*')
"""Names inside a picture are hashes of its numbers."""


def test_a_claim_has_one_name_everywhere():
    assert {path.name for path in (ROOT / "results").iterdir()} == {*CLAIMS, *BENCHMARKS, *PLANNED}
    pages = {path.stem for path in (ROOT / "docs" / "results").glob("*.md")}
    assert pages == {*CLAIMS, *BENCHMARKS, "index"} - {"integrations"}
    for name in CLAIMS:
        assert tomllib.loads((ROOT / "experiments" / f"{name}.toml").read_text("utf-8"))["out"] == f"../results/{name}"
        found = {path.name for path in (ROOT / "results" / name).iterdir()}
        assert found - ALSO.get(name, set()) == {"README.md", "table.md", ROWS, "figures"}


@pytest.mark.parametrize("name", CLAIMS)
def test_a_claim_is_made_again_from_its_rows(name, tmp_path):
    file, out = ROOT / "experiments" / f"{name}.toml", tmp_path / name
    assert main(["report", "--experiment", str(file), "-o", str(out)]) == 0
    made, kept = files_of(out), files_of(ROOT / "results" / name)
    assert made.keys() == kept.keys() - {ROWS} - ALSO.get(name, set())
    for path, text in made.items():
        same = same_picture(text, kept[path]) if path.endswith(".svg") else text == kept[path]
        assert same, f"results/{name}/{path} is not that of the rows; run optimist report --experiment {file.name}"


def files_of(folder):
    return {str(path.relative_to(folder)): path.read_text("utf-8") for path in folder.rglob("*") if path.is_file()}


def same_picture(svg, other):
    """Whether two pictures have the same elements and texts, and numbers that differ by less than half a point."""
    svg, other = NAME.sub(r"\1", svg), NAME.sub(r"\1", other)
    if NUMBER.sub("0", svg) != NUMBER.sub("0", other):
        return False
    pairs = zip(NUMBER.findall(svg), NUMBER.findall(other), strict=True)
    return all(abs(float(one) - float(two)) < 0.5 for one, two in pairs)


def test_a_moved_mark_or_another_word_is_another_picture():
    mark = '<use x="{}" y="10.00"/><text>6 of 6</text>'
    assert same_picture(mark.format("20.00"), mark.format("20.01"))
    assert not same_picture(mark.format("20.00"), mark.format("28.00"))
    assert not same_picture(mark.format("20.00"), mark.format("20.00").replace("of", "off"))


@pytest.mark.parametrize("name", CLAIMS)
def test_curves_of_rows_are_short_and_sorted(name):
    for line in (ROOT / "results" / name / ROWS).read_text("utf-8").splitlines():
        steps = [step for step, _ in json.loads(line).get("curve") or []]
        assert steps == sorted(steps)
        assert len(steps) <= SweepFile().curve_points or name == "cage2-user3"  # every update of the published runs
