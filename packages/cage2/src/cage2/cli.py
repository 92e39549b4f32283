"""The command `cage2`; `cage2 --help` imports neither NumPy nor Numba beyond what `import cage2` does."""

from __future__ import annotations

import argparse
import json
import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from cage2 import __version__
from cage2.errors import Cage2Error, ConfigError, unknown_name

AGENT_HELP = (
    "AGENT is a shipped agent (best, react, random, sleep), or your own, FILE.py, FILE.py:NAME or MODULE:NAME: a "
    "function from the 52 bits to an action 0..144, or a class or object with get_action, act or predict."
)


class Parser(argparse.ArgumentParser):
    """argparse with exact flag names, errors of one line, and suggestions for unknown flags."""

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_abbrev=False, **options)

    def error(self, message: str) -> NoReturn:
        """Raise ConfigError, which `main` prints as one line."""
        raise ConfigError(f"{message} (see {self.prog} --help)")

    def refuse(self, words: Sequence[str]) -> None:
        """Raise for the first word that this parser does not know."""
        known = [flag for action in self._actions for flag in action.option_strings if flag.startswith("--")]
        for word in words:
            if word.startswith("-"):
                raise unknown_name("flag", word.partition("=")[0], known)
            raise ConfigError(f"unexpected '{word}' (see {self.prog} --help)")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit code is 0, 1 for a disagreement of `verify`, 2 for an error, 130 after Ctrl-C."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # ± on an ASCII terminal
    try:
        return _run(sys.argv[1:] if argv is None else list(argv))
    except Cage2Error as error:
        print(f"cage2: error: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("cage2: stopped", file=sys.stderr)
        return 130


def _run(argv: list[str]) -> int:
    parser = Parser(prog="cage2", description="CAGE Challenge 2: the exact game and its strongest defender.")
    parser.add_argument("--version", action="version", version=f"cage2 {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    chosen = {
        "score": _score_parser(commands.add_parser("score", help="play an agent in the challenge's nine cells")),
        "watch": _watch_parser(
            commands.add_parser("watch", help="play one game in the terminal, a line for each step")
        ),
        "duel": _duel_parser(commands.add_parser("duel", help="play two agents on the same random numbers")),
        "replay": _replay_parser(commands.add_parser("replay", help="write a game as one HTML page")),
        "verify": _verify_parser(commands.add_parser("verify", help="replay recorded episodes of the original game")),
        "bench": _bench_parser(commands.add_parser("bench", help="measure steps per second on this machine")),
        "export": _export_parser(commands.add_parser("export", help="write an agent for the original game")),
    }
    options, rest = parser.parse_known_args(argv)
    if options.command is None:
        parser.refuse(rest)
        parser.print_help()
        return 2
    chosen[options.command].refuse(rest)
    code: int = options.run(options)
    return code


def _add_json(parser: Parser) -> None:
    parser.add_argument(
        "--json", nargs="?", const="-", metavar="FILE.json", help="one JSON object, as the last line or into a file"
    )


def _check_json_file(options: Namespace) -> None:
    if options.json not in (None, "-"):
        file = Path(options.json)
        if file.suffix != ".json" or not file.parent.is_dir():
            raise ConfigError(f"--json needs a *.json file in an existing folder, got {file}")


def write_json(result: dict[str, Any], file: str | None) -> None:
    """Print a result as one line for `-`, or write it into a file."""
    from cage2.text import strict

    if file == "-":
        print(json.dumps(strict(result)), flush=True)
    elif file is not None:
        try:
            Path(file).write_text(json.dumps(strict(result), indent=1) + "\n", encoding="utf-8")
        except OSError as error:
            raise Cage2Error(f"cannot write {file}: {error.strerror}") from error
        print(f"written to {file}", file=sys.stderr)


# -- score


def _score_parser(parser: Parser) -> Parser:
    parser.description = (
        "Play the nine cells of the challenge (30/50/100 steps against B_line, Meander and Sleep) and sum their mean "
        f"returns. {AGENT_HELP}"
    )
    parser.add_argument("agent", metavar="AGENT")
    add_score_options(parser)
    parser.set_defaults(run=score)
    return parser


def add_score_options(parser: argparse.ArgumentParser) -> None:
    """The flags of a score, for `cage2 score` and `optimist score`."""
    parser.add_argument(
        "--rules",
        choices=["final", "competition", "both"],
        help="default: competition, the leaderboard's, or those of a run",
    )
    parser.add_argument("--table", choices=["official", "cardiff"], help="default: that of the agent")
    parser.add_argument("--episodes", type=int, default=1000, metavar="N", help="per cell (default: 1000)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the episodes (default: 0)")
    parser.add_argument("--sampled", action="store_true", help="score sampled actions too, not only the most probable")
    _add_json(parser)  # type: ignore[arg-type]


def check_score_options(options: Namespace) -> None:
    """Raise for numbers out of range and for a bad --json file."""
    _check_json_file(options)
    if options.episodes < 1 or options.seed < 0:
        raise ConfigError(
            f"--episodes must be at least 1 and --seed at least 0, got {options.episodes} and {options.seed}"
        )


def score(options: Namespace) -> int:
    """Score an agent, and print or write the result."""
    check_score_options(options)
    from cage2.agents.user import load

    return print_scores(lambda rules: load(options.agent, rules), "competition", options.agent, options)


def print_scores(load: Any, default_rules: str, names: Any, options: Namespace) -> int:
    """Score the agent that `load` gives for a rule set, then print the table and write the JSON."""
    from cage2 import scoring
    from cage2.agents.user import UserAgent

    def progress(what: str) -> None:
        if sys.stderr.isatty():
            print(f"\r\033[K{what} …", end="", file=sys.stderr, flush=True)

    scores = []
    for rules in ["final", "competition"] if options.rules == "both" else [options.rules or default_rules]:
        agent = load(rules)
        if options.sampled and isinstance(agent, UserAgent):
            raise ConfigError(f"--sampled needs a shipped agent or a run; {agent.name} chooses its own actions")
        for greedy in (True, False) if options.sampled else (True,):
            scores.append(
                scoring.score(
                    agent,
                    rules=rules,
                    table=options.table,
                    episodes=options.episodes,
                    greedy=greedy,
                    seed=options.seed,
                    progress=progress,
                )
            )
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    if options.json != "-":
        print(scoring.scores_text(scores))
    write_json(scoring.scores_as_dict(scores, names, options.seed), options.json)
    return 0


# -- watch, duel


def _add_game_options(parser: Parser) -> None:
    parser.add_argument("--red", choices=["B_line", "Meander", "Sleep"], default="B_line", help="default: B_line")
    parser.add_argument("--green", choices=["Sleep", "GreenAgent"], default="Sleep", help="default: Sleep")
    parser.add_argument("--rules", choices=["final", "competition"], default="final", help="default: final")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="default: 0")
    parser.add_argument("--horizon", type=int, default=100, metavar="N", help="steps (default: 100)")


def _play(agent: str, options: Namespace) -> Any:
    if options.seed < 0:
        raise ConfigError(f"--seed must be at least 0, got {options.seed}")
    from cage2.game import play_game

    settings = {name: getattr(options, name) for name in ("red", "green", "rules", "seed", "horizon")}
    return play_game(agent, **settings)


def _watch_parser(parser: Parser) -> Parser:
    parser.description = f"Play one game and print what blue, green and red do, with rewards. {AGENT_HELP}"
    parser.add_argument("agent", metavar="AGENT")
    _add_game_options(parser)
    parser.set_defaults(run=watch)
    return parser


def watch(options: Namespace) -> int:
    """Play a game and print it."""
    from cage2.game import watch_lines

    for line in watch_lines(_play(options.agent, options)):
        print(line)
    return 0


def _duel_parser(parser: Parser) -> Parser:
    parser.description = (
        "Play two agents on the same random numbers; show where they first differ and what it cost. " + AGENT_HELP
    )
    parser.add_argument("agents", nargs=2, metavar="AGENT")
    _add_game_options(parser)
    parser.set_defaults(run=duel)
    return parser


def duel(options: Namespace) -> int:
    """Play both games and print the comparison."""
    from cage2.game import duel_lines

    one, other = (_play(agent, options) for agent in options.agents)
    for line in duel_lines(one, other):
        print(line)
    return 0


def _replay_parser(parser: Parser) -> Parser:
    parser.description = (
        "Write one self-contained HTML page of a game: the map step by step, and what blue saw next to what was true. "
        + AGENT_HELP
    )
    parser.add_argument("agent", metavar="AGENT")
    parser.add_argument("--with", dest="other", metavar="AGENT", help="another agent on the same random numbers")
    parser.add_argument("--out", type=Path, default=Path("replay.html"), metavar="FILE", help="default: replay.html")
    _add_game_options(parser)
    parser.set_defaults(run=replay)
    return parser


def replay(options: Namespace) -> int:
    """Play the games, write the page and print its path."""
    if options.out.suffix != ".html":
        raise ConfigError(f"--out needs a *.html file, got {options.out}")
    from cage2.page import page_of

    agents = [options.agent, *([] if options.other is None else [options.other])]
    text = page_of([_play(agent, options) for agent in agents])
    try:
        options.out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise Cage2Error(f"cannot write {options.out}: {error.strerror}") from error
    print(options.out)
    return 0


# -- verify, bench, export


def _verify_parser(parser: Parser) -> Parser:
    parser.description = "Replay recorded episodes and compare every field; exit code 1 on any disagreement."
    parser.add_argument(
        "files", nargs="*", metavar="FILE", help="recorded episodes (*.jsonl.gz, *.jsonl.xz); default: all 1,386"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    parser.set_defaults(run=verify)
    return parser


def verify(options: Namespace) -> int:
    """Replay the files and print the disagreements per field; return 0 if there are none, else 1."""
    from cage2.traces import RECORDED
    from cage2.verify import verify_files  # loads Numba

    result = verify_files(options.files or [RECORDED])
    print(json.dumps(result.as_dict()) if options.json else result)
    return 1 if result.total else 0


def _bench_parser(parser: Parser) -> Parser:
    parser.description = "Measure steps per second of the vector environments, with random actions."
    parser.add_argument("--games", type=int, default=4096, help="games per core in one batch (default 4096)")
    parser.add_argument("--seconds", type=float, default=2.0, help="time per measurement (default 2)")
    parser.add_argument("--json", action="store_true", help="print one JSON object on the last line")
    parser.set_defaults(run=bench)
    return parser


def bench(options: Namespace) -> int:
    """Measure and print."""
    from cage2.speed import measure, speed_text  # loads Numba

    result = measure(options.games, options.seconds, lambda what: print(f"measuring {what} …", file=sys.stderr))
    print(json.dumps(result) if options.json else speed_text(result))
    return 0


def _export_parser(parser: Parser) -> Parser:
    parser.description = "Write agent.py and weights.npz: a blue agent for the original game that needs NumPy only."
    parser.add_argument("agent", metavar="AGENT", help="name of a shipped agent")
    parser.add_argument("folder", metavar="DIR", type=Path, help="a new folder")
    parser.add_argument("--rules", choices=["final", "competition"], default="final", help="default: final")
    parser.set_defaults(run=export)
    return parser


def export(options: Namespace) -> int:
    """Write the files and print their paths."""
    from cage2.deploy.export import export_agent

    for file in export_agent(options.agent, options.folder, options.rules):
        print(file)
    return 0
