"""Errors for unknown names: the most similar known name is suggested, if any is similar enough."""

import re
import tomllib
from pathlib import Path

import pytest

from optimist.errors import install_command, missing_extra, nearest, unknown_name

ROOT = Path(__file__).parents[1]
TEXTS = [
    path
    for pattern in ("*.md", "src/**/*.py", "docs/**/*.md", "examples/**/*", ".ci/*", "Makefile")
    for path in ROOT.glob(pattern)
    if path.is_file() and path.suffix in ("", ".md", ".py", ".toml", ".ipynb", ".txt")
]

FLAGS = ["--config", "--algorithm.gamma", "--env.kwargs.size", "--size", "--seed", "--table", "--episodes"]


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("--sead", "--seed"),
        ("--gamma", "--algorithm.gamma"),  # the last part is enough
        ("--algorithm.gama", "--algorithm.gamma"),
        ("--sise", "--size"),  # the shorter of two equally similar ones
        ("--long", None),
        ("--games", None),
        ("--x", None),
    ],
)
def test_only_similar_names_are_suggested_and_dashes_add_no_similarity(name, near):
    assert nearest(name, FLAGS) == near
    assert nearest(name, []) is None


def test_without_a_similar_name_the_error_lists_the_known_ones_or_the_callers_hint():
    assert str(unknown_name("fruit", "appel", ["pear", "apple"])) == "no fruit 'appel'; did you mean 'apple'?"
    assert str(unknown_name("fruit", "kiwi", ["pear", "apple"])) == "no fruit 'kiwi'; known: apple, pear"
    assert str(unknown_name("fruit", "kiwi", ["pear", "apple"], "see the tree")) == "no fruit 'kiwi'; see the tree"


def test_pip_lines_work_from_a_clone():
    assert {path.name for path in TEXTS} >= {"README.md", "errors.py", "install.md"}
    wrong = [
        str(path.relative_to(ROOT))
        for path in TEXTS
        if re.search(r"pip install[^\n]*\boptimist\b\[", path.read_text("utf-8"))
    ]
    assert wrong == []


def test_every_extra_that_an_error_names_exists():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    calls = r"(?:missing_extra\([^)]*?, |install_command\()[\"'](\w+)[\"']"
    named = {name for path in TEXTS if path.suffix == ".py" for name in re.findall(calls, path.read_text("utf-8"))}
    assert {"sb3", "cage2", "ray", "report"} <= named <= extras.keys()
    error = missing_extra("the Stable-Baselines3 integration", "sb3", "stable-baselines3")
    assert str(error) == f"the Stable-Baselines3 integration needs stable-baselines3: {install_command('sb3')}"
    assert install_command("sb3") == "pip install '.[sb3]' in the clone of optimist"
