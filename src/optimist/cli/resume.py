"""`optimist resume RUN`: go on from the newest checkpoint, as if the run had never stopped."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from optimist.cli.arguments import Parser, print_result


def main(argv: Sequence[str]) -> int:
    """Resumes, and prints the summary."""
    parser = Parser(prog="optimist resume", description="Go on with a run that was stopped, exactly where it was.")
    parser.add_argument("run", type=Path, metavar="RUN", help="run folder")
    parser.add_argument("--json", action="store_true", help="print the summary as one JSON object on the last line")
    parser.add_argument("--quiet", action="store_true", help="print nothing while all goes well")
    options = parser.parse_all(list(argv))

    from optimist.training.loop import resume

    summary = resume(options.run, progress=not options.quiet)
    if options.json or not options.quiet:
        print_result(summary, as_json=options.json)
    return 0
