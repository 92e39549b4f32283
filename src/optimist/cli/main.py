"""The command `optimist`: finds the command's file, and turns every error of ours into one line and exit code 2.

Nothing heavy is imported here: `optimist --help` answers without torch, tyro or Gymnasium.
"""

from __future__ import annotations

import importlib
import importlib.util
import io
import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType

from optimist import __version__
from optimist.errors import OptimistError, unknown_name

COMMANDS = {
    "demo": "methods side by side in minutes: CAGE Challenge 2, or DeepSea",
    "train": "train from a preset, into a run folder",
    "resume": "go on with a run that was stopped, exactly where it was",
    "sweep": "every run a short file describes, on this machine or a Ray cluster",
    "tune": "search for good settings of a preset",
    "evaluate": "play episodes with a run's policy",
    "export": "write a run's policy for elsewhere: CybORG, ONNX",
    "watch": "write a film of a run's agent, or of an episode in its memory",
    "report": "runs → one page with tables, figures and intervals",
    "presets": "list the presets",
    "games": "list the Atari games and their published scores",
    "cage2": "the CAGE Challenge 2 simulator",
    "bench": "measure the speed of each station",
}


class Terminated(KeyboardInterrupt):
    """SIGTERM, as an exception: what is open gets closed before the process ends."""

    signum = signal.SIGTERM


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns the exit code: 0, 2 for an error, 130 or 143 after SIGINT or SIGTERM."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # τ on a terminal that knows only ASCII is no reason to stop
    before = signal.signal(signal.SIGTERM, _terminate)
    try:
        return _dispatch(arguments)
    except OptimistError as error:
        print(f"optimist: error: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as error:
        return 128 + int(getattr(error, "signum", signal.SIGINT))
    except BrokenPipeError:  # `optimist presets | head -1`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    finally:
        signal.signal(signal.SIGTERM, before)


def _dispatch(arguments: list[str]) -> int:
    commands = available_commands()
    if not arguments:
        print(usage(commands), file=sys.stderr)
        return 2
    name, *rest = arguments
    if name in ("-h", "--help"):
        print(usage(commands))
        return 0
    if name == "--version":
        print(f"optimist {__version__}")
        return 0
    if name not in commands:
        raise unknown_name("flag" if name.startswith("-") else "command", name, [*commands, "--help", "--version"])
    code: int = importlib.import_module(f"optimist.cli.{name}").main(rest)
    return code


def available_commands() -> dict[str, str]:
    """The commands this installation has, with one line each."""
    return {name: line for name, line in COMMANDS.items() if importlib.util.find_spec(f"optimist.cli.{name}")}


def usage(commands: dict[str, str]) -> str:
    """What `optimist --help` prints."""
    lines = "\n".join(f"  {name:<10}{line}" for name, line in commands.items())
    return (
        "usage: optimist COMMAND …\n\n"
        "Optimistic Policy Regularization: keep what your agent found once.\n\n"
        f"commands:\n{lines}\n\n"
        "`optimist COMMAND --help` says more; `optimist --version` the version."
    )


def _terminate(signum: int, frame: FrameType | None) -> None:
    raise Terminated
