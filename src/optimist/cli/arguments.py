"""Shared by the commands: an argument parser that raises ConfigError, and the printing of results."""

from __future__ import annotations

import argparse
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from shutil import get_terminal_size
from textwrap import wrap
from typing import Any, NoReturn

from optimist.core.settings import whole_number
from optimist.errors import ConfigError, unknown_name
from optimist.tracking.files import strict

NUMBER = re.compile(r"(\[.*?\])?[-−–\d]|$")
"""The beginning of a number in a table, which may have markup; or an empty cell."""


class Parser(argparse.ArgumentParser):
    """argparse with exact flag names, errors of one line, and suggestions for unknown flags."""

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter, **options)
        self.register("type", int, _read_int)

    def error(self, message: str) -> NoReturn:
        """Raise ConfigError, which `main` prints as one line."""
        message = re.sub(r"^argument (--\S+): must be", r"\1 must be", message)
        raise ConfigError(f"{message} (see {self.prog} --help)")

    def parse_all(self, argv: list[str]) -> argparse.Namespace:
        """Parse all arguments; an unknown flag or word is an error."""
        options, rest = self.parse_known_args(argv)
        refuse_unknown(rest, self.flags(), self.prog)
        return options

    def flags(self) -> list[str]:
        """The long flags of this parser."""
        return [flag for action in self._actions for flag in action.option_strings if flag.startswith("--")]


def add_env_flag(parser: argparse.ArgumentParser) -> None:
    """Add `--env`, with which a user permits the import that a saved environment id asks for."""
    parser.add_argument(
        "--env",
        default="",
        metavar="MODULE:ID",
        help="the run's environment again, where its id names a module: the module is imported only then",
    )


def read_whole_number(text: str) -> int:
    """The int written as 100000, 100_000 or 1e5; raise ValueError for any other text."""
    for read in (int, lambda text: whole_number(float(text))):
        with suppress(ValueError):
            if isinstance(number := read(text), int):
                return number
    raise ValueError(f"must be a whole number such as 100000, 100_000 or 1e5, got {text!r}")


def _read_int(text: str) -> int:
    try:
        return read_whole_number(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def refuse_unknown(rest: list[str], known: list[str], prog: str) -> None:
    """Raise for the first of the arguments that no parser knows."""
    for word in rest:
        if word.startswith("-"):
            raise unknown_name("flag", word.partition("=")[0], known, otherwise=f"see {prog} --help")
        raise ConfigError(f"unexpected '{word}': a value must follow its flag, as in --seed 3")


def show_table(header: Sequence[str], *lines: Sequence[str], **options: Any) -> None:
    """Print a table with columns of numbers on the right; an empty line separates two sections.

    Each row is a list of its cells where the terminal is too narrow. `options` are those of rich's Table.
    """
    from rich.console import Console
    from rich.markup import render
    from rich.table import Table

    console = Console()
    table = Table(**options)
    for number, (name, *cells) in enumerate(zip(header, *filter(None, lines), strict=True)):
        numeric = number > 0 and all(NUMBER.match(cell) for cell in cells)
        table.add_column(name, justify="right" if numeric else "left", no_wrap=numeric)
    for line in lines:
        if line:
            table.add_row(*line)
        else:
            table.add_section()
    if console.measure(table, options=console.options.update(max_width=10_000)).maximum <= console.width:
        console.print(table)
        return
    width = max(map(len, header))
    for line in filter(None, lines):
        print(render(line[0]).plain)
        print(
            "".join(
                f"  {name:<{width}}  {render(cell).plain}\n" for name, cell in zip(header[1:], line[1:], strict=True)
            )
        )


def print_result(result: Mapping[str, Any], as_json: bool) -> None:
    """Print a result as readable lines, or as one JSON object on one line."""
    if as_json:
        print(json.dumps(strict(result), ensure_ascii=False), flush=True)
        return
    for line in _lines(result, columns=get_terminal_size(fallback=(80, 24)).columns):
        print(line)


def _lines(result: Mapping[str, Any], columns: int) -> Iterator[str]:
    """A name in words and its value; a nested table is indented below its name. Empty values are left out."""
    shown = {re.sub("[_/]", " ", name): value for name, value in result.items() if value is not None and value != {}}
    width = max((len(name) for name, value in shown.items() if not isinstance(value, Mapping)), default=0)
    for name, value in shown.items():
        if isinstance(value, Mapping):
            yield name
            yield from (f"  {line}" for line in _lines(value, columns - 2))
        else:
            text, indent = f"{name:<{width}}  {_readable(value)}", " " * (width + 2)
            yield from wrap(text, columns, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _readable(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return "–" if math.isnan(value) else f"{value:.4g}"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, list | tuple):
        return ", ".join(_readable(item) for item in value)
    return str(value)
