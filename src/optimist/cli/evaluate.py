"""`optimist evaluate RUN`: evaluate a run's policy over episodes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from optimist.cli.arguments import Parser, add_env_flag, print_result
from optimist.errors import ConfigError


def main(argv: Sequence[str]) -> int:
    """Evaluate, and print the result."""
    parser = Parser(prog="optimist evaluate", description="Evaluate a run's policy over episodes.")
    parser.add_argument(
        "run", type=Path, metavar="RUN", help="run folder; a run in progress is evaluated at its newest checkpoint"
    )
    parser.add_argument("--episodes", type=int, default=100, metavar="N", help="number of episodes (default: 100)")
    parser.add_argument("--greedy", action="store_true", help="take the most likely action (default: sample actions)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the environments (default: 0)")
    add_env_flag(parser)
    parser.add_argument("--json", action="store_true", help="print the result as one JSON object on the last line")
    options = parser.parse_all(list(argv))
    if options.episodes < 1 or options.seed < 0:
        raise ConfigError(
            f"--episodes must be at least 1 and --seed at least 0, got {options.episodes} and {options.seed}"
        )

    from optimist.training.evaluate import evaluate

    result = evaluate(options.run, options.episodes, options.greedy, options.seed, env=options.env, progress=True)
    print_result(result, as_json=options.json)
    return 0
