"""What the commands share: an argument parser whose errors are ours, run folders, and how a result is printed."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NoReturn

from optimist.errors import ConfigError, unknown_name
from optimist.tracking.atomic import strict


class Parser(argparse.ArgumentParser):
    """argparse with exact flag names and errors of one line, unknown flags with a suggestion."""

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter, **options)

    def error(self, message: str) -> NoReturn:
        """Raises what main shows as one line."""
        raise ConfigError(f"{message} (see {self.prog} --help)")

    def parse_all(self, argv: list[str]) -> argparse.Namespace:
        """Parses everything; the first flag or word that is left over is an error."""
        options, rest = self.parse_known_args(argv)
        refuse_unknown(rest, self.flags(), self.prog)
        return options

    def flags(self) -> list[str]:
        """The long flags this parser knows."""
        return [flag for action in self._actions for flag in action.option_strings if flag.startswith("--")]


def refuse_unknown(rest: list[str], known: list[str], prog: str) -> None:
    """Raises for the first of the words nobody understood."""
    for word in rest:
        if word.startswith("-"):
            raise unknown_name("flag", word.partition("=")[0], known, otherwise=f"see {prog} --help")
        raise ConfigError(f"unexpected '{word}'; a value follows its flag, as in --seed 3")


@contextmanager
def told_how_to_go_on() -> Iterator[None]:
    """Around work that the same command takes up again after a signal: says so."""
    try:
        yield
    except KeyboardInterrupt:
        print("optimist: stopped; the same command goes on", file=sys.stderr)
        raise


def print_result(result: Mapping[str, Any], as_json: bool) -> None:
    """The result as lines to read, or as one JSON object on one line."""
    if as_json:
        print(json.dumps(strict(result), ensure_ascii=False), flush=True)
        return
    for line in _lines(result):
        print(line)


def _lines(result: Mapping[str, Any]) -> Iterator[str]:
    """One line a value; a table within is set in below its name."""
    tables = {name: value for name, value in result.items() if isinstance(value, Mapping) and value}
    width = max((len(name) for name in result if name not in tables), default=0)
    for name, value in result.items():
        if name in tables:
            yield name
            yield from (f"  {line}" for line in _lines(value))
        else:
            yield f"{name:<{width}}  {_readable(value)}"


def _readable(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return "–" if math.isnan(value) else f"{value:.4g}"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, list | tuple):
        return ", ".join(_readable(item) for item in value)
    return "–" if value is None or value == {} else str(value)
