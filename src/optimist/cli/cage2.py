"""`optimist cage2`: the CAGE Challenge 2 simulator.

`verify` replays recorded episodes of the original, `score` plays the challenge's nine cells (cage2_score.py).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from optimist.cli.arguments import Parser

if TYPE_CHECKING:
    from optimist.envs.cage2.verify import Verification


def main(argv: list[str]) -> int:
    """Runs a sub-command and returns the exit code."""
    parser = Parser(prog="optimist cage2", description="The CAGE Challenge 2 simulator.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    verifying = commands.add_parser(
        "verify",
        help="replay recorded episodes of the original game and compare every field; exit code 1 on any difference",
    )
    verifying.add_argument("files", nargs="+", metavar="FILE", help="recorded episodes (*.jsonl.gz)")
    verifying.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    commands.add_parser("score", add_help=False, help="the challenge's nine cells and their sum, for runs or an agent")
    if argv[:1] == ["score"]:
        from optimist.cli.cage2_score import main as score

        return score(argv[1:])
    arguments = parser.parse_args(argv)
    return verify(arguments.files, as_json=arguments.json)


def verify(files: list[str], as_json: bool = False) -> int:
    """Replays the files, prints episodes, steps and disagreements per field; 0 if there are none, else 1."""
    from optimist.envs.cage2.verify import verify_files  # loads the compiler

    result = verify_files(files)
    if as_json:
        print(json.dumps(_as_dict(result)))
    else:
        _print(result)
    return 1 if result.total else 0


def _as_dict(result: Verification) -> dict[str, object]:
    return {
        "files": result.files,
        "episodes": result.episodes,
        "steps": result.steps,
        "disagreements": result.total,
        "per_field": result.disagreements,
        "first": result.first,
    }


def _print(result: Verification) -> None:
    console = Console()
    table = Table(title=f"{result.files} files · {result.episodes:,} episodes · {result.steps:,} steps")
    table.add_column("field")
    table.add_column("disagreements", justify="right")
    for name, count in result.disagreements.items():
        table.add_row(name, f"[bold red]{count:,}[/]" if count else "0")
    table.add_section()
    table.add_row("total", f"{result.total:,}")
    console.print(table)
    if result.first is not None:
        console.print(f"first: {result.first}", soft_wrap=True)
