"""`optimist resume RUN`: resume from the newest checkpoint; the result is that of an uninterrupted run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from optimist.cli.arguments import Parser, add_env_flag
from optimist.cli.summary import print_summary


def main(argv: Sequence[str]) -> int:
    """Resume, and print the summary."""
    parser = Parser(prog="optimist resume", description="Resume a stopped run exactly where it stopped.")
    parser.add_argument("run", type=Path, metavar="RUN", help="run folder")
    add_env_flag(parser)
    parser.add_argument(
        "--wandb", action="store_true", help="send metrics to Weights & Biases; the config alone does not"
    )
    parser.add_argument("--json", action="store_true", help="print the summary as one JSON object on the last line")
    parser.add_argument("--quiet", action="store_true", help="print nothing except errors")
    options = parser.parse_all(list(argv))

    from optimist.training.resume import resume

    summary = resume(options.run, env=options.env, wandb=options.wandb, progress=not options.quiet)
    if options.json or not options.quiet:
        print_summary(summary, as_json=options.json)
    return 0
