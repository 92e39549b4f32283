"""The word check of `make check` finds listed words in prose, in names and across line breaks."""

from __future__ import annotations

import importlib.util
import tomllib
from pathlib import Path

import pytest

TOOLS = Path(__file__).parents[2] / "tools"
SPEC = importlib.util.spec_from_file_location("check_words", TOOLS / "check_words.py")
check_words = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(check_words)
RULES = tomllib.loads((TOOLS / "words.toml").read_text("utf-8"))


def words_in(text, path="page.md"):
    return [(use.line, use.word) for use in check_words.uses(path, text, RULES["words"])]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a run goes\n    # on", [(1, "goes # on")]),
        ("first line\ndef test_a_run_goes_on_alike():", [(2, "goes on")]),
        ("class PlayersApart:", [(1, "players"), (1, "players apart")]),
        ("Nobody's rows", [(1, "nobody")]),
        ("earlier, entertains, display, outdoors, foretold", []),
        ("study.tell(trial, value)", []),
        ("KeyDoor, key_door, Key-Door-Treasure", []),
    ],
)
def test_listed_words_are_found_as_whole_words(text, expected):
    assert words_in(text) == expected


def test_file_names_are_searched():
    assert words_in("", path="src/optimist/beside.py") == [(0, "beside")]


def test_allowed_uses_are_few_and_have_a_reason():
    assert len(RULES["allowed"]) <= check_words.MAX_ALLOWED
    assert all(entry["reason"] for entry in RULES["allowed"])
