"""`optimist doctor RUN`: check a run folder, and repair what can be repaired."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from optimist.cli.arguments import Parser, add_env_flag

DESCRIPTION = """Check every file of a run folder: config, metrics, checkpoints with their checksums, final weights and
summary. Exit code 0 if nothing is wrong or all of it was repaired, else 1."""


def main(argv: Sequence[str]) -> int:
    """Print what is wrong, one line each."""
    parser = Parser(prog="optimist doctor", description=DESCRIPTION)
    parser.add_argument("run", type=Path, metavar="RUN", help="run folder")
    parser.add_argument(
        "--repair", action="store_true",
        help="remove incomplete files, cut an incomplete last line, and set damaged checkpoints aside",
    )  # fmt: skip
    add_env_flag(parser)
    options = parser.parse_all(list(argv))

    from optimist.reading import printable
    from optimist.tracking.doctor import examine, repair

    findings = repair(options.run, options.env) if options.repair else examine(options.run, options.env)
    for finding in findings:
        state = "repaired" if finding.repaired else "can be repaired with --repair" if finding.repairable else "damaged"
        print(printable(f"{finding.what} ({state})"))
    left = [finding for finding in findings if not finding.repaired]
    print(f"{options.run}: {'no problem found' if not left else f'{len(left)} left'}")
    return 1 if left else 0
