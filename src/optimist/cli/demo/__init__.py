"""`optimist demo [cage2|deepsea]`: methods side by side in minutes, a live display, a table and a folder at the end."""

from __future__ import annotations

from collections.abc import Sequence

from optimist.errors import unknown_name

DEMOS = ("cage2", "deepsea")
USAGE = """usage: optimist demo [cage2|deepsea] [--seeds N] [--total-steps N] [--jobs N] [--out DIR] [--json]

  cage2    PPO, Cardiff and Cardiff+OPR defend a network in CAGE Challenge 2 (the default)
  deepsea  PPO and PPO+OPR on DeepSea-12: who keeps the treasure once it was seen?

`optimist demo cage2 --help` has the defaults."""


def main(argv: Sequence[str]) -> int:
    """Runs the demo that is named first, else the one of CAGE 2."""
    arguments = list(argv)
    if arguments and arguments[0] in ("-h", "--help"):
        print(USAGE)
        return 0
    name = arguments.pop(0) if arguments and not arguments[0].startswith("-") else DEMOS[0]
    if name not in DEMOS:
        raise unknown_name("demo", name, DEMOS)
    if name == "deepsea":
        from optimist.cli.demo import deepsea

        return deepsea.main(arguments)
    from optimist.cli.demo import cage2

    return cage2.main(arguments)
