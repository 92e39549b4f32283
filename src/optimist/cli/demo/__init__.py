"""`optimist demo [cage2|deepsea]`: train and compare methods in minutes."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

from optimist.errors import unknown_name

DEMOS = ("cage2", "deepsea")
USAGE = """usage: optimist demo [cage2|deepsea] [--seeds N] [--total-steps N] [--jobs N] [--out DIR] [--json]

  cage2    PPO, Cardiff and Cardiff+OPR defend a network in CAGE Challenge 2 (default)
  deepsea  PPO and PPO+OPR on DeepSea-12: how often is the goal learned after it was reached once?

`optimist demo cage2 --help` shows the defaults."""


def main(argv: Sequence[str]) -> int:
    """Run the demo named by the first argument, cage2 by default."""
    arguments = list(argv)
    if arguments and arguments[0] in ("-h", "--help"):
        print(USAGE)
        return 0
    name = arguments.pop(0) if arguments and not arguments[0].startswith("-") else DEMOS[0]
    if name not in DEMOS:
        raise unknown_name("demo", name, DEMOS)
    code: int = import_module(f"optimist.cli.demo.{name}").main(arguments)
    return code
