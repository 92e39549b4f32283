"""`optimist bench`: how fast the stations are on this machine."""

from __future__ import annotations

import argparse
import json
import sys

from rich.console import Console
from rich.table import Table


def main(argv: list[str]) -> int:
    """Runs a sub-command and returns the exit code."""
    parser = argparse.ArgumentParser(prog="optimist bench", description="Measure speed on this machine.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    cage2_bench = commands.add_parser("cage2", help="steps per second of the CAGE Challenge 2 simulator")
    cage2_bench.add_argument("--games", type=int, default=4096, help="games per core, stepped together (default 4096)")
    cage2_bench.add_argument("--seconds", type=float, default=2.0, help="time per figure (default 2)")
    cage2_bench.add_argument("--json", action="store_true", help="one JSON object on the last line")
    arguments = parser.parse_args(argv)
    return cage2(arguments.games, arguments.seconds, as_json=arguments.json)


def cage2(games: int, seconds: float, as_json: bool = False) -> int:
    """Measures the simulator with random actions and prints the figures; always 0."""
    from optimist.envs.cage2.bench import measure  # loads the compiler

    def progress(what: str) -> None:
        print(f"measuring {what} ...", file=sys.stderr, flush=True)

    result = measure(games, seconds, progress)
    if as_json:
        print(json.dumps(result))
        return 0
    title = f"CAGE 2, {games:,} games a core, random actions: million steps per second"
    table = Table(title=title)
    for name in ("interface", "red", "1 core", f"{result['cores']} cores"):
        table.add_column(name, justify="left" if name in ("interface", "red") else "right")
    for interface, by_red in result["raw"].items():
        for red, figures in by_red.items():
            table.add_row(interface, red, f"{figures['one_core'] / 1e6:.1f}", f"{figures['all_cores'] / 1e6:.1f}")
    console = Console()
    console.print(table)
    console.print(
        f"steps per second per core: {result['steps_per_second_per_core']:,.0f} (145 actions, the slower red)"
    )
    return 0
