"""`optimist report DIR… -o OUT`: run folders and results files → one page, figures and tables."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from optimist.cli.arguments import Parser
from optimist.errors import ConfigError
from optimist.report import TITLE
from optimist.tracking.files import disk_errors, write_text

EPILOG = """\
Reads run folders and runs.jsonl files of sweeps and benchmarks at any depth below DIR. Unfinished and damaged runs are
listed on the page and left out of the tables. OUT/report.html needs no network; OUT/figures has SVG, PDF and PNG,
OUT/tables Markdown, CSV and LaTeX."""


def main(argv: Sequence[str]) -> int:
    """Write the report and print its path."""
    parser = Parser(prog="optimist report", description="Runs → one page, figures and tables.", epilog=EPILOG)
    parser.add_argument("folders", type=Path, nargs="*", metavar="DIR", help="folders with runs or results below them")
    parser.add_argument(
        "--experiment", type=Path, metavar="FILE",
        help="a file of experiments/ in place of DIR: its table and figures from its published rows",
    )  # fmt: skip
    parser.add_argument(
        "-o", "--out", type=Path, default=Path("report"), metavar="OUT", help="output folder (default: report)"
    )
    parser.add_argument("--title", default=TITLE, metavar="TEXT", help=f"title of the page (default: {TITLE})")
    parser.add_argument(
        "--statistic", choices=("last-100", "final", "final-greedy", "best-epoch"), default="last-100",
        help="the score of a run in tables (default: last-100)",
    )  # fmt: skip
    parser.add_argument(
        "--unlike", choices=("separate", "mix", "refuse"), default="separate",
        help="where runs of a method differ in budget or sticky actions: separate columns (default), mix them in a "
        "column marked *, or refuse to write a report",
    )  # fmt: skip
    parser.add_argument(
        "--published", action="store_true", help="open the tables of published Atari scores, even without Atari runs"
    )
    options = parser.parse_all(list(argv))

    if bool(options.folders) == bool(options.experiment):
        parser.error("the following arguments are required: DIR or --experiment FILE, one of the two")

    from optimist.report.build import build_report

    folders = [published_rows(options.experiment)] if options.experiment else options.folders
    page = build_report(
        folders, options.out, title=options.title, statistic=options.statistic, unlike=options.unlike,
        published=options.published, command=shlex.join(["optimist", "report", *argv]),
    )  # fmt: skip
    print(f"written to {page}")
    if options.experiment:
        print(f"written to {rebuild_table(options.experiment, options.out / 'tables')}")
    return 0


def published_rows(experiment: Path) -> Path:
    """The results file of an experiment."""
    from optimist.sweep.folder import ROWS
    from optimist.sweep.plan import read_plan

    out = read_plan(experiment).out
    if out is None or not (out / ROWS).exists():
        raise ConfigError(
            f"{experiment} has no published rows; run optimist sweep {experiment} --out DIR, then give DIR"
        )
    return out / ROWS


def rebuild_table(experiment: Path, folder: Path) -> Path:
    """Write the experiment's table, made from its published rows, to `folder`/table.md."""
    from optimist.sweep.folder import TABLE, SweepFolder
    from optimist.sweep.plan import read_plan
    from optimist.sweep.results import markdown

    rows = published_rows(experiment)
    with disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        write_text(folder / TABLE, markdown(SweepFolder(rows.parent).read_rows(), read_plan(experiment).file))
    return folder / TABLE
