"""`optimist cage2 …`: the command `cage2`, and `optimist score` for run folders; until version 0.2."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from optimist.errors import missing_extra


def main(argv: Sequence[str]) -> int:
    """Forward to `cage2`, or to `optimist score` if a run folder is to be scored."""
    if argv[:1] == ["score"] and any(Path(word).is_dir() for word in argv):
        from optimist.cli.score import main as score

        return score(argv[1:])
    code: int = load("cli").main(argv)
    return code


def load(module: str) -> ModuleType:
    """A module of the package `cage2`."""
    try:
        return importlib.import_module(f"cage2.{module}")
    except ModuleNotFoundError as error:
        raise missing_extra("this command", "cage2", "cage2") from error
