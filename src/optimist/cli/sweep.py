"""`optimist sweep FILE.toml`: do every run of a sweep file; `sweep status DIR`, `sweep table FILE.toml`."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from optimist.cli.arguments import Parser, print_result, show_table
from optimist.errors import ConfigError

EPILOG = """A sweep file:

  presets = ["deepsea/ppo", "deepsea/opr"]
  seeds = 8
  flags.size = [8, 12]                # flags of the presets
  settings.total_steps = 50_000       # settings of all runs
  [variants.default]                  # named changes of settings
  [variants.slow]
  algorithm.learning_rate = 1e-4

`--time-limit 9m` starts only runs that end within 9 minutes, judging by finished ones, and stops those that do not.
`--shard 2/4` does every fourth run, beginning with the second, in the folder DIR-2-of-4: for machines that share no
folder. Join their rows with cat DIR-*-of-4/runs.jsonl > DIR/runs.jsonl.
The same command again resumes unfinished runs and leaves finished ones alone. Exit code 1: some runs failed.
`optimist sweep status DIR` shows the progress of a sweep. `optimist sweep table FILE.toml` writes table.md again."""


def main(argv: Sequence[str]) -> int:
    """Run the sweep, or one of the subcommands."""
    arguments = list(argv)
    if arguments[:1] == ["status"]:
        return status(arguments[1:])
    if arguments[:1] == ["table"]:
        return table(arguments[1:])
    options = _parser().parse_all(arguments)
    if options.file is None:
        raise ConfigError("no sweep file; expected optimist sweep FILE.toml, or optimist sweep status DIR")

    from optimist.sweep.plan import read_plan, shard_of

    plan = read_plan(options.file)
    out = _folder(options, plan)
    if options.shard:
        plan = shard_of(plan, options.shard)
        out = out.with_name(f"{out.name}-{options.shard.replace('/', '-of-')}")
    limit = None if options.time_limit is None else read_seconds(options.time_limit)
    if options.dry_run:
        for run in plan.runs:
            print(f"{run.name:<50} {run.method} on {run.env}, {run.budget:,} steps")
        print(f"{len(plan.runs)} runs, {sum(run.budget for run in plan.runs):,} steps, into {out}")
        return 0

    from optimist.sweep.driver import run_sweep

    try:
        rows = run_sweep(
            plan, out, ray=options.ray, jobs=options.jobs, quiet=options.quiet, message=print, time_limit=limit
        )
    except KeyboardInterrupt:
        print("optimist: stopped; run the same command again to continue", file=sys.stderr)
        raise
    return _show(rows, plan, out, options)


def _parser() -> Parser:
    parser = Parser(
        prog="optimist sweep",
        usage="optimist sweep FILE.toml [--out DIR] [--jobs N] [--ray auto|ADDRESS], or optimist sweep status DIR",
        description="Do every run of a sweep file: presets × flags × variants × seeds.",
        epilog=EPILOG,
    )
    parser.add_argument("file", type=Path, nargs="?", metavar="FILE.toml", help="the sweep file")
    _add_out(parser)
    parser.add_argument("--jobs", type=int, metavar="N", help="most runs at a time (default: as cores and GPUs allow)")
    parser.add_argument(
        "--ray", metavar="auto|ADDRESS", help="use a Ray cluster; DIR is on a path that all nodes share"
    )
    parser.add_argument("--time-limit", metavar="TIME", help="start only runs that end within TIME, as 9m, 2h or 500s")
    parser.add_argument("--shard", metavar="K/N", help="do the K-th of N parts of the runs, in a folder of its own")
    parser.add_argument("--dry-run", action="store_true", help="list the runs and do nothing")
    parser.add_argument("--json", action="store_true", help="one JSON object on the last line")
    parser.add_argument("--quiet", action="store_true", help="show failed runs only")
    return parser


def read_seconds(text: str) -> float:
    """`9m`, `2h`, `500s` in seconds."""
    units = {"s": 1.0, "m": 60.0, "h": 3600.0}
    try:
        seconds = float(text[:-1]) * units[text[-1:]]
    except (KeyError, ValueError):
        seconds = math.nan
    if not 0.0 < seconds < math.inf:
        raise ConfigError(f"--time-limit must be a time such as 9m, 2h or 500s, got {text!r}")
    return seconds


def _add_out(parser: Parser) -> None:
    parser.add_argument(
        "-o",
        "--out",
        type=Path,
        metavar="DIR",
        help="folder (default: `out` of the file, else sweeps/NAME of the file)",
    )


def _folder(options: Any, plan: Any) -> Path:
    folder: Path = options.out or plan.out or Path("sweeps") / options.file.stem
    return folder


def _show(rows: list[dict[str, Any]], plan: Any, out: Path, options: Any) -> int:
    from optimist.sweep.results import table_cells

    accepted = ("finished", "unfinished") if options.time_limit else ("finished",)
    failed = [row for row in rows if row["state"] not in accepted]
    if not options.quiet:
        header, *lines = table_cells(rows, plan.file)
        columns = len(header) - ("statistic" in header)  # its text is long: below the table
        show_table(*(line[:columns] for line in (header, *lines)))
        for statistic in dict.fromkeys(row["statistic"] for row in rows if "value" in header and "statistic" in row):
            print(f"value: {statistic}")
        print(f"The table and the runs are in {out}")
    for row in failed:
        print(f"failed: {row['run']}: {row['error'] or 'not finished'}", file=sys.stderr)
    if options.json:
        print_result({"out": str(out), "runs": len(rows), "failed": [row["run"] for row in failed]}, as_json=True)
    return 1 if failed else 0


def status(argv: Sequence[str]) -> int:
    """Print the progress of the sweep in a folder."""
    parser = Parser(prog="optimist sweep status", description="Show the progress of the sweep in a folder.")
    parser.add_argument("folder", type=Path, metavar="DIR", help="folder of the sweep")
    parser.add_argument("--json", action="store_true", help="one JSON object: run → state, step, error")
    options = parser.parse_all(list(argv))

    from rich.console import Console

    from optimist.sweep.folder import SweepFolder
    from optimist.sweep.progress import count_states, draw_table, read_states

    folder = SweepFolder(options.folder)
    records = folder.read_plan()["runs"]
    states = read_states(folder, records)
    if options.json:
        print_result({name: vars(state) for name, state in states.items()}, as_json=True)
        return 0
    Console().print(draw_table(records, states))
    for name, state in states.items():
        if state.state == "failed":
            print(f"failed: {name}: {state.error}")
    print(f"{count_states(states)}; {'a process works on it' if folder.is_locked else 'no process works on it'}")
    return 0


def table(argv: Sequence[str]) -> int:
    """Write the table of a sweep again, from its rows, with the columns its file asks for now."""
    parser = Parser(prog="optimist sweep table", description="Write table.md again from runs.jsonl; run nothing.")
    parser.add_argument("file", type=Path, metavar="FILE.toml", help="the sweep file")
    _add_out(parser)
    options = parser.parse_all(list(argv))

    from optimist.errors import RunFolderError
    from optimist.sweep.folder import ROWS, TABLE, SweepFolder
    from optimist.sweep.plan import read_plan
    from optimist.sweep.results import markdown
    from optimist.tracking.files import write_text

    plan = read_plan(options.file)
    folder = SweepFolder(_folder(options, plan))
    rows = folder.read_rows()
    if not rows:
        raise RunFolderError(f"{folder.path} has no {ROWS}; run optimist sweep {options.file} first")
    text = markdown(rows, plan.file)
    write_text(folder.path / TABLE, text)
    print(text, end="")
    return 0
