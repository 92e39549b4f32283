"""`optimist score RUN…`: the challenge's nine cells of CAGE 2 for trained runs, with the table of `cage2 score`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from optimist.cli.arguments import Parser
from optimist.cli.cage2 import load

DESCRIPTION = """Play the nine cells of CAGE Challenge 2 (30/50/100 steps against B_line, Meander and Sleep) and sum
their mean returns. RUN is a run folder, which plays against all attackers; several run folders are each for the
attacker of its training, which is identified after the three opening decoys; or a shipped agent, such as best."""


def main(argv: Sequence[str]) -> int:
    """Score runs, and print or write the result."""
    cli = load("cli")
    parser = Parser(prog="optimist score", description=DESCRIPTION)
    parser.add_argument("runs", nargs="*", metavar="RUN", help="run folder(s), or the name of a shipped agent")
    cli.add_score_options(parser)
    options = parser.parse_all(list(argv))
    if options.json not in (None, "-") and Path(options.json).is_dir():  # a run folder after --json is one to score
        options.runs, options.json = [*options.runs, options.json], "-"
    if not options.runs:
        parser.error("no run to score; expected run folders or the name of a shipped agent")
    cli.check_score_options(options)
    from optimist.deploy.cage2_runs import find_rules, load_defender

    default = options.rules or (find_rules(options.runs) if Path(options.runs[0]).exists() else "competition")
    code: int = cli.print_scores(lambda rules: load_defender(options.runs, rules), default, options.runs, options)
    return code
