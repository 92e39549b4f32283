"""`optimist cage2 score`: the challenge's nine cells and their sum, beside the published leaderboard."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from optimist.cli.arguments import Parser
from optimist.errors import ConfigError
from optimist.tracking.atomic import strict

if TYPE_CHECKING:
    from optimist.envs.cage2.score import Score

DESCRIPTION = """The challenge's nine cells (30/50/100 steps against B_line, Meander, Sleep) and their sum, argmax and
sampled. One run plays all attackers; of several runs each plays the attacker it was trained against, chosen after the
three opening decoys; the name of an agent that comes with the package, such as best, plays that agent."""
PUBLISHED = 3
"""Places of the leaderboard that are shown beside."""


def main(argv: Sequence[str]) -> int:
    """Scores, and prints or writes the result."""
    options = parse(argv)
    from optimist.deploy.defenders import find_rules, load_defender
    from optimist.envs.cage2.score import score_defender

    rule_sets = ["final", "competition"] if options.rules == "both" else [options.rules or find_rules(options.runs)]
    console, scores = Console(stderr=True), []
    with console.status("…") as status:
        for rules in rule_sets:
            defender = load_defender(options.runs, rules)
            for greedy in (True, False):
                scores.append(
                    score_defender(
                        defender,
                        rules=rules,
                        table=options.table or defender.table,
                        episodes=options.episodes,
                        greedy=greedy,
                        seed=options.seed,
                        progress=status.update,
                    )
                )
    if options.json != "-":
        print_tables(scores)
    write_json(as_dict(scores, options), options.json)
    return 0


def parse(argv: Sequence[str]) -> Any:
    """The options; a run or an agent behind --json is one of those to score, not its file."""
    parser = Parser(prog="optimist cage2 score", description=DESCRIPTION)
    parser.add_argument("runs", nargs="*", metavar="RUN", help="run folder(s), or the name of a shipped agent")
    parser.add_argument("--rules", choices=["final", "competition", "both"], help="default: those it was trained under")
    parser.add_argument("--table", choices=["official", "cardiff"], help="default: the one it was trained with")
    parser.add_argument("--episodes", type=int, default=1000, metavar="N", help="episodes a cell (default: 1000)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the episodes (default: 0)")
    parser.add_argument(
        "--json", nargs="?", const="-", metavar="FILE.json", help="one JSON object, on the last line or into a file"
    )
    options = parser.parse_all(list(argv))
    if options.json not in (None, "-"):
        from optimist.envs.cage2.agents import LOADERS

        file = Path(options.json)
        if file.is_dir() or options.json in LOADERS:
            options.runs, options.json = [*options.runs, options.json], "-"
        elif file.suffix != ".json" or not file.parent.is_dir():
            raise ConfigError(f"--json writes a *.json file in a folder that exists, got {file}")
    if not options.runs:
        raise ConfigError("no run to score; expected run folders or the name of a shipped agent")
    if options.episodes < 1 or options.seed < 0:
        raise ConfigError(f"--episodes must be at least 1 and --seed 0, got {options.episodes}, {options.seed}")
    return options


def as_dict(scores: Sequence[Score], options: Any) -> dict[str, Any]:
    """All scores; `total` is the argmax one of the only rule set, or one for each."""
    by_rules: dict[str, dict[str, Any]] = {}
    for score in scores:
        by_rules.setdefault(score.rules, {"table": score.table})["argmax" if score.greedy else "sampled"] = (
            score.as_dict()
        )
    totals = {rules: found["argmax"]["total"] for rules, found in by_rules.items()}
    return {
        "agent": options.runs,
        "episodes": options.episodes,
        "seed": options.seed,
        "total": next(iter(totals.values())) if len(totals) == 1 else totals,
        "rules": by_rules,
    }


def write_json(result: dict[str, Any], where: str | None) -> None:
    """To the file, or as the last line."""
    if where == "-":
        print(json.dumps(strict(result)), flush=True)
    elif where is not None:
        try:
            Path(where).write_text(json.dumps(strict(result), indent=1) + "\n", encoding="utf-8")
        except OSError as error:
            raise ConfigError(f"cannot write {where}: {error.strerror}") from error
        print(f"written to {where}", file=sys.stderr)


def print_tables(scores: Sequence[Score]) -> None:
    """A table for each rule set, the leaderboard's best beside it."""
    from optimist.envs.cage2.score import HORIZONS, leaderboard, rank_of
    from optimist.envs.cage2.state import REDS
    from optimist.report.means import Interval

    board = leaderboard()["rows"]
    first = board[:PUBLISHED]
    for argmax, sampled in zip(scores[::2], scores[1::2], strict=True):
        title = f"CAGE 2, rules {argmax.rules}, table {argmax.table}, {argmax.cells[0].episodes:,} episodes a cell"
        table = Table("red, steps", title=title)
        for name in ("argmax", "sampled", *(f"{row['place']}." for row in first)):
            table.add_column(name, justify="right", no_wrap=True)
        for red in REDS:
            for number, horizon in enumerate(HORIZONS):
                ours = [score.cell(red, horizon) for score in (argmax, sampled)]
                numbers = [str(Interval(cell.mean, cell.half_width)) for cell in ours]
                table.add_row(f"{red} {horizon}", *numbers, *(f"{row[red][number]:.2f}" for row in first))
        table.add_section()
        totals = [f"[bold]{Interval(score.total, score.half_width)}[/]" for score in (argmax, sampled)]
        table.add_row("total", *totals, *(f"{row['total']:.2f}" for row in first))
        Console().print(table)
        names = ", ".join(f"{row['place']}. {row['team']} ({row['method']})" for row in first)
        print("± is the 95 % interval, which fewer than five episodes have not.")
        print(f"Published under the rules competition: {names}.")
        if argmax.rules == "competition":
            print(f"By its argmax total this agent would take place {rank_of(argmax.total)} of {len(board) + 1}.")
