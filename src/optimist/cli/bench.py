"""`optimist bench`: the speed of environments and training on this machine."""

from __future__ import annotations

import json
import sys
from typing import Any

from optimist.cli import bench_atari
from optimist.cli.arguments import Parser, show_table
from optimist.cli.cage2 import load
from optimist.errors import ConfigError

TRAINED = ("cage2/cardiff", "cage2/cardiff-opr")


def main(argv: list[str]) -> int:
    """Run a sub-command; the exit code."""
    parser = Parser(prog="optimist bench", description="Measure speed on this machine.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    cage2_bench = commands.add_parser(
        "cage2", help="steps per second of the CAGE Challenge 2 simulator, and in training"
    )
    cage2_bench.add_argument("--games", type=int, default=4096, help="games per core in one batch (default 4096)")
    cage2_bench.add_argument("--seconds", type=float, default=2.0, help="time per measurement (default 2)")
    cage2_bench.add_argument(
        "--updates", type=int, default=10, help="updates of each training measurement (default 10; 0 for none)"
    )
    cage2_bench.add_argument("--json", action="store_true", help="print one JSON object on the last line")
    atari_bench = commands.add_parser("atari", help="the Atari emulators alone, PPO and PPO with OPR, in one run")
    bench_atari.add_arguments(atari_bench)
    arguments = parser.parse_args(argv)
    if arguments.command == "atari":
        return bench_atari.atari(arguments)
    return cage2(arguments.games, arguments.seconds, arguments.updates, as_json=arguments.json)


def cage2(games: int, seconds: float, updates: int = 10, as_json: bool = False) -> int:
    """Measure the simulator with random actions, then training, and print; the exit code is always 0."""
    speed = load("speed")  # loads Numba

    def progress(what: str) -> None:
        print(f"measuring {what} ...", file=sys.stderr, flush=True)

    if updates < 0:
        raise ConfigError(f"--updates must be at least 0, got {updates}")
    result = speed.measure(games, seconds, progress)
    if updates:
        result["training"] = measure_training(updates, result["cores"], progress)
    if as_json:
        print(json.dumps(result))
    else:
        print(speed.speed_text(result))
        if updates:
            print_training_speed(result["training"], result["cores"])
    return 0


def measure_training(updates: int, cores: int, progress: Any) -> dict[str, Any]:
    """Steps per second of training with Cardiff's settings, with one torch thread and with one for each core."""
    from optimist.presets import get_preset
    from optimist.training.speed import training_speed

    figures: dict[str, Any] = {}
    for preset in TRAINED:
        figures[preset] = {}
        for name, threads in (("one_core", 1), ("all_cores", cores)):
            progress(f"training {preset}, {threads} torch thread{'s' * (threads > 1)}")
            figures[preset][name] = training_speed(get_preset(preset)(), threads, updates)
    return figures


def print_training_speed(training: dict[str, Any], cores: int) -> None:
    """Print the training figures as a table."""
    rows = []
    for preset, figures in training.items():
        one, every = figures["one_core"], figures["all_cores"]
        speeds = [f"{figure['steps_per_second']:,.0f}" for figure in (one, every)]
        rows.append([preset, *speeds, f"{one['collect_seconds']:.3f}", f"{one['update_seconds']:.3f}"])
    title = "Training, Cardiff's settings, games of 30 steps against B_line: steps per second"
    show_table(["preset", "1 core", f"{cores} cores", "collect, s", "update, s"], *rows, title=title)
