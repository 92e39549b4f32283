"""`optimist sweep FILE.toml`: every run a short file describes; `optimist sweep status DIR`: how far it is."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from optimist.cli.arguments import Parser, print_result, told_how_to_go_on
from optimist.errors import ConfigError

EPILOG = """A file is short:

  presets = ["deepsea/ppo", "deepsea/opr"]
  seeds = 8
  flags.size = [8, 12]                # flags of the presets
  settings.total_steps = 50_000       # settings of all runs
  [variants.plain]                    # named changes
  [variants.careful]
  algorithm.learning_rate = 1e-4

Running it again goes on with what is unfinished. Exit code 1: some runs failed for good.
`optimist sweep status DIR` tells how far a sweep is."""


def main(argv: Sequence[str]) -> int:
    """Runs the sweep, or shows its status."""
    arguments = list(argv)
    if arguments[:1] == ["status"]:
        return status(arguments[1:])
    options = _parser().parse_all(arguments)
    if options.file is None:
        raise ConfigError("which file? optimist sweep FILE.toml, or: optimist sweep status DIR")

    from optimist.sweep.plan import read_plan

    plan = read_plan(options.file)
    out = options.out or Path("sweeps") / options.file.stem
    if options.dry_run:
        for run in plan.runs:
            print(f"{run.name:<50} {run.method} on {run.env}, {run.budget:,} steps")
        print(f"{len(plan.runs)} runs, {sum(run.budget for run in plan.runs):,} steps, into {out}")
        return 0

    from optimist.sweep.run import run_sweep

    with told_how_to_go_on():
        lines = run_sweep(plan, out, ray=options.ray, jobs=options.jobs, quiet=options.quiet)
    return _show(lines, out, options)


def _parser() -> Parser:
    parser = Parser(
        prog="optimist sweep",
        usage="optimist sweep FILE.toml [-o DIR] [--jobs N] [--ray auto|ADDRESS], or optimist sweep status DIR",
        description="Do every run a short TOML file describes: presets × flags × variants × seeds.",
        epilog=EPILOG,
    )
    parser.add_argument("file", type=Path, nargs="?", metavar="FILE.toml", help="what to run")
    parser.add_argument("-o", "--out", type=Path, metavar="DIR", help="folder (default: sweeps/<name of the file>)")
    parser.add_argument("--jobs", type=int, metavar="N", help="most runs at a time (default: as cores and GPUs allow)")
    parser.add_argument("--ray", metavar="auto|ADDRESS", help="do the runs on a Ray cluster; DIR is on a shared path")
    parser.add_argument("--dry-run", action="store_true", help="list the runs and do nothing")
    parser.add_argument("--json", action="store_true", help="one JSON object on the last line")
    parser.add_argument("--quiet", action="store_true", help="no progress display; failed runs are named")
    return parser


def _show(lines: list[dict[str, Any]], out: Path, options: Any) -> int:
    from optimist.sweep.table import HEADER, rows

    failed = [line for line in lines if line["state"] != "finished"]
    if not options.quiet:
        from rich.console import Console
        from rich.table import Table

        found = rows(lines)
        table = Table(*HEADER[:-1])  # the statistic needs a line of its own
        for row in found:
            table.add_row(*row.words()[:-1])
        Console().print(table)
        for statistic in dict.fromkeys(row.statistic for row in found if row.statistic):
            print(f"mean of: {statistic}")
        print(f"The table and the runs are in {out}")
    for line in failed:
        print(f"failed: {line['run']}: {line['error'] or 'not finished'}", file=sys.stderr)
    if options.json:
        print_result({"out": str(out), "runs": len(lines), "failed": [line["run"] for line in failed]}, as_json=True)
    return 1 if failed else 0


def status(argv: Sequence[str]) -> int:
    """Prints how far the sweep in a folder is."""
    parser = Parser(prog="optimist sweep status", description="How far the sweep in a folder is.")
    parser.add_argument("folder", type=Path, metavar="DIR", help="folder of the sweep")
    parser.add_argument("--json", action="store_true", help="one JSON object: run → state, step, error")
    options = parser.parse_all(list(argv))

    from rich.console import Console

    from optimist.sweep.folder import WorkFolder
    from optimist.sweep.run import read_records
    from optimist.sweep.status import draw, one_line, read_states

    folder = WorkFolder(options.folder)
    records = read_records(folder)["runs"]
    states = read_states(folder, records)
    if options.json:
        print_result({name: vars(state) for name, state in states.items()}, as_json=True)
        return 0
    Console().print(draw(records, states))
    for name, state in states.items():
        if state.state == "failed":
            print(f"failed: {name}: {state.error}")
    print(f"{one_line(states)}; {'being worked on' if folder.driven else 'nobody works on it now'}")
    return 0
