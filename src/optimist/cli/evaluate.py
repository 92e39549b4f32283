"""`optimist evaluate RUN`: play episodes with a run's policy and print what it reached."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from optimist.cli.arguments import Parser, print_result
from optimist.errors import ConfigError


def main(argv: Sequence[str]) -> int:
    """Evaluates, and prints the result."""
    parser = Parser(prog="optimist evaluate", description="Play episodes with a run's policy.")
    parser.add_argument(
        "run", type=Path, metavar="RUN", help="run folder; of a run in progress the newest checkpoint plays"
    )
    parser.add_argument("--episodes", type=int, default=100, metavar="N", help="episodes to play (default: 100)")
    parser.add_argument("--greedy", action="store_true", help="take the most likely action; without, sample it")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the environments (default: 0)")
    parser.add_argument("--json", action="store_true", help="print the result as one JSON object on the last line")
    options = parser.parse_all(list(argv))
    if options.episodes < 1 or options.seed < 0:
        raise ConfigError(f"--episodes must be at least 1 and --seed 0, got {options.episodes}, {options.seed}")

    from optimist.training.evaluate import evaluate

    result = evaluate(options.run, options.episodes, options.greedy, options.seed, progress=True)
    print_result(result, as_json=options.json)
    return 0
