"""`optimist report DIR… -o OUT`: run folders and results files → one page, figures and tables."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from optimist.cli.arguments import Parser
from optimist.errors import ConfigError
from optimist.report import TITLE

if TYPE_CHECKING:
    from optimist.report.claim import Claim

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
        help="a file of experiments/ in place of DIR: README.md, table.md and figures from its published rows",
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
    parser.add_argument(
        "--methods", nargs="+", default=[], metavar="METHOD",
        help="presets or names of methods in CAGE 2's figure (default: the paper's three, if all have runs)",
    )  # fmt: skip
    options = parser.parse_all(list(argv))

    if bool(options.folders) == bool(options.experiment):
        parser.error("the following arguments are required: DIR or --experiment FILE, one of the two")

    if options.experiment:
        from optimist.report.claim import write_claim

        for path in write_claim(read_claim(options.experiment), options.out):
            print(f"written to {path}")
        return 0

    from optimist.report.build import build_report

    page = build_report(
        options.folders, options.out, title=options.title, statistic=options.statistic, unlike=options.unlike,
        published=options.published, methods=options.methods, command=shlex.join(["optimist", "report", *argv]),
    )  # fmt: skip
    print(f"written to {page}")
    return 0


def read_claim(experiment: Path) -> Claim:
    """The claim of a sweep file with published rows."""
    from optimist.report.claim import Claim
    from optimist.sweep.folder import ROWS, SweepFolder
    from optimist.sweep.plan import read_plan
    from optimist.sweep.results import markdown

    plan = read_plan(experiment)
    if plan.out is None or not (plan.out / ROWS).exists():
        raise ConfigError(
            f"{experiment} has no published rows; run optimist sweep {experiment} --out DIR, then give DIR"
        )
    comment = itertools.takewhile(lambda line: line.startswith("#"), experiment.read_text("utf-8").splitlines())
    return Claim(
        name=experiment.stem,
        comment="\n".join(line.removeprefix("#").strip() for line in comment),
        has_page=(experiment.parent.parent / "docs" / "results" / f"{experiment.stem}.md").exists(),
        rows=plan.out / ROWS,
        table=markdown(SweepFolder(plan.out).read_rows(), plan.file),
        measures=plan.file.measures,
    )
