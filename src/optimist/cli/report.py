"""`optimist report DIR… -o OUT`: run folders and results files → one page, figures and tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from optimist.cli.arguments import Parser
from optimist.report.page import TITLE

EPILOG = """\
Reads run folders and the benchmarks' runs.jsonl, wherever they are below DIR. Unfinished and damaged runs are named on
the page and left out of the tables. OUT/report.html opens without a network; OUT/figures holds SVG and PNG, OUT/tables
Markdown, CSV and LaTeX."""


def main(argv: Sequence[str]) -> int:
    """Writes the report, and prints where."""
    parser = Parser(prog="optimist report", description="Runs → one page, figures and tables.", epilog=EPILOG)
    parser.add_argument("folders", type=Path, nargs="+", metavar="DIR", help="folders with runs or results below them")
    parser.add_argument(
        "-o", "--out", type=Path, default=Path("report"), metavar="OUT", help="folder (default: report)"
    )
    parser.add_argument("--title", default=TITLE, metavar="TEXT", help=f"the page's title (default: {TITLE})")
    parser.add_argument(
        "--statistic", choices=("last-100", "final", "final-greedy", "best-epoch"), default="last-100",
        help="which score of a run the tables show (default: last-100)",
    )  # fmt: skip
    parser.add_argument(
        "--unlike", choices=("separate", "mix", "refuse"), default="separate",
        help="runs of a method that differ in budget or sticky actions: a column for each kind (default), one column "
        "marked *, or no report",
    )  # fmt: skip
    parser.add_argument(
        "--published", action="store_true", help="show the paper's Atari tables unfolded, and without Atari runs, too"
    )
    options = parser.parse_all(list(argv))

    from optimist.report.build import build_report

    page = build_report(
        options.folders, options.out, title=options.title, statistic=options.statistic, unlike=options.unlike,
        published=options.published,
    )  # fmt: skip
    print(f"written to {page}")
    return 0
