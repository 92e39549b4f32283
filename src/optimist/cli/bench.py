"""`optimist bench`: how fast the stations are on this machine."""

from __future__ import annotations

import json
import sys
from typing import Any

from rich.console import Console
from rich.table import Table

from optimist.cli import bench_atari
from optimist.cli.arguments import Parser
from optimist.errors import ConfigError

TRAINED = ("cage2/cardiff", "cage2/cardiff-opr")


def main(argv: list[str]) -> int:
    """Runs a sub-command and returns the exit code."""
    parser = Parser(prog="optimist bench", description="Measure speed on this machine.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    cage2_bench = commands.add_parser(
        "cage2", help="steps per second of the CAGE Challenge 2 simulator, and in training"
    )
    cage2_bench.add_argument("--games", type=int, default=4096, help="games per core, stepped together (default 4096)")
    cage2_bench.add_argument("--seconds", type=float, default=2.0, help="time per figure (default 2)")
    cage2_bench.add_argument(
        "--updates", type=int, default=10, help="updates of each training figure (default 10; 0 leaves them out)"
    )
    cage2_bench.add_argument("--json", action="store_true", help="one JSON object on the last line")
    atari_bench = commands.add_parser("atari", help="the Atari emulator alone, PPO and PPO with OPR, side by side")
    bench_atari.add_arguments(atari_bench)
    arguments = parser.parse_args(argv)
    if arguments.command == "atari":
        return bench_atari.atari(arguments)
    return cage2(arguments.games, arguments.seconds, arguments.updates, as_json=arguments.json)


def cage2(games: int, seconds: float, updates: int = 10, as_json: bool = False) -> int:
    """Measures the simulator with random actions, then training, and prints the figures; always 0."""
    from optimist.envs.cage2.bench import measure  # loads the compiler

    def progress(what: str) -> None:
        print(f"measuring {what} ...", file=sys.stderr, flush=True)

    if updates < 0:
        raise ConfigError(f"--updates must be at least 0, got {updates}")
    result = measure(games, seconds, progress)
    if updates:
        result["training"] = measure_training(updates, result["cores"], progress)
    if as_json:
        print(json.dumps(result))
    else:
        print_figures(result, games)
    return 0


def measure_training(updates: int, cores: int, progress: Any) -> dict[str, Any]:
    """Steps per second of training with Cardiff's settings, torch on one core and on all."""
    from optimist.training.speed import training_speed

    figures: dict[str, Any] = {}
    for preset in TRAINED:
        figures[preset] = {}
        for name, threads in (("one_core", 1), ("all_cores", cores)):
            progress(f"training {preset}, {threads} torch thread{'s' * (threads > 1)}")
            figures[preset][name] = training_speed(preset, threads, updates)
    return figures


def print_figures(result: dict[str, Any], games: int) -> None:
    """Tables for people."""
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
    if "training" not in result:
        return
    table = Table(title="Training, Cardiff's settings, games of 30 steps against B_line: steps per second")
    for name in ("preset", "1 core", f"{result['cores']} cores", "collect, s", "update, s"):
        table.add_column(name, justify="left" if name == "preset" else "right")
    for preset, figures in result["training"].items():
        one, every = figures["one_core"], figures["all_cores"]
        table.add_row(
            preset,
            f"{one['steps_per_second']:,.0f}",
            f"{every['steps_per_second']:,.0f}",
            f"{one['collect_seconds']:.3f}",
            f"{one['update_seconds']:.3f}",
        )
    console.print(table)
