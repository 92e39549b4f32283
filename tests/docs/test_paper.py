"""docs/paper.md names functions, tests and settings that exist."""

from __future__ import annotations

import importlib
import re
from dataclasses import fields
from functools import reduce
from pathlib import Path

import pytest

from optimist.config import EnvConfig
from optimist.core import OPRConfig

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "paper.md").read_text("utf-8")
TABLE = [line for line in PAGE.split("## Open points")[0].splitlines() if re.match(r"\| (eq\.|§) ", line)]
CHOICES = re.findall(r"^\| [^|]+ \| (`[^|]+) \|", PAGE.split("## Open points")[1], re.MULTILINE)
TEST_FILE = re.compile(r"`(tests/[^`]+)`")


def test_every_equation_of_the_paper_has_a_row():
    assert {line.split("|")[1].strip() for line in TABLE} == {"§ 4.1", *(f"eq. {n}" for n in range(1, 8))}


@pytest.mark.parametrize("line", TABLE, ids=lambda line: line.split("|")[2].strip())
def test_the_functions_of_an_equation_exist_and_are_used_in_its_tests(line):
    functions, tests = line.split("|")[-3:-1]
    named = re.findall(r"`(\w+/\w+)\.py` `([\w.]+)`", functions)
    assert 2 * len(named) == len(re.findall("`[^`]+`", functions)), "expected pairs of a path and a name"
    texts = [(ROOT / path).read_text("utf-8") for path in TEST_FILE.findall(tests)]
    assert named
    assert texts
    for path, name in named:
        module = importlib.import_module(f"optimist.{path.replace('/', '.')}")
        owner = reduce(getattr, name.split("."), module)  # raises if there is none
        assert owner.__module__ == module.__name__, f"{name} is defined in {owner.__module__}"
        assert any(re.search(rf"\b{name.rpartition('.')[2]}\(", text) for text in texts), (
            f"{name} is in none of {tests}"
        )


def test_all_tests_named_on_the_page_exist():
    named = TEST_FILE.findall(PAGE)
    assert len(named) > len(TABLE)
    assert [path for path in named if not (ROOT / path).is_file()] == []


def test_settings_of_the_open_points_exist():
    known = {field.name for config in (OPRConfig, EnvConfig) for field in fields(config)}
    settings = re.findall(r"`(?:EnvConfig\.)?([a-z_]+_[a-z_]+)`", " ".join(CHOICES))
    assert len(settings) > 12
    assert set(settings) <= known
