"""docs/architecture.md names functions that exist, and the import rules of pyproject.toml."""

from __future__ import annotations

import importlib
import re
import tomllib
from functools import reduce
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text("utf-8")
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
WALK = re.findall(r"^\|[^|]*\| `(\S+)\.py` \| `([\w.]+)` \|", PAGE, re.MULTILINE)
FOLDERS = dict(re.findall(r"^\| `(\w+)` \| [^|]+ \| ([^|]*) \|$", PAGE, re.MULTILINE))


@pytest.mark.parametrize(("path", "name"), WALK)
def test_every_function_of_the_walk_exists(path, name):
    module = importlib.import_module(f"optimist.{path.replace('/', '.')}")
    assert callable(reduce(getattr, name.split("."), module))


def test_the_walk_visits_the_stations_from_the_command_to_the_checkpoint():
    assert len(WALK) > 12
    assert WALK[0][0] == "cli/train"
    assert WALK[-1][0] == "tracking/checkpoint"


def test_the_folders_are_the_layers_of_pyproject_in_order():
    (layers,) = (contract["layers"] for contract in CONTRACTS if contract["type"] == "layers")
    names = [name for layer in layers for name in re.findall(r"\w+", layer) if name != "__main__"]
    assert list(FOLDERS) == names, "change the table of docs/architecture.md as [tool.importlinter] has it"


def test_the_last_column_is_what_the_contracts_forbid():
    forbidden = {
        contract["source_modules"][0].removeprefix("optimist."): [
            name.removeprefix("optimist.") for name in contract["forbidden_modules"]
        ]
        for contract in CONTRACTS
        if contract["type"] == "forbidden" and contract["source_modules"] != ["cage2"]
    }
    shown = {name: re.findall(r"`(\w+)`", cell) for name, cell in FOLDERS.items() if cell}
    assert shown == forbidden
