"""The command `optimist`: run a command's module, and print each OptimistError as one line with exit code 2.

`optimist --help` imports no torch, tyro or Gymnasium.
"""

from __future__ import annotations

import importlib
import io
import os
import signal
import sys
from collections.abc import Sequence
from types import FrameType

from optimist import __version__
from optimist.errors import OptimistError, unknown_name
from optimist.reading import printable

COMMANDS = {
    "demo": "compare methods in minutes: CAGE Challenge 2, or DeepSea",
    "train": "train from a preset, into a run folder",
    "resume": "resume a stopped run exactly where it stopped",
    "doctor": "check a run folder, and repair what can be",
    "sweep": "train every run of a sweep file, on this machine or a Ray cluster",
    "evaluate": "evaluate a run's policy over episodes",
    "export": "export a run's policy to CybORG or ONNX",
    "watch": "write a video of a run's policy, or of an episode in its memory",
    "report": "write a page of tables, figures and intervals about runs",
    "ui": "serve a page of runs, memories, replays and reports",
    "presets": "list the presets",
    "games": "list the Atari games and their published scores",
    "score": "score runs in the nine cells of CAGE Challenge 2",
    "cage2": "the command cage2: CAGE Challenge 2",
    "bench": "measure the speed of each part",
}
USAGE = (
    "usage: optimist COMMAND …\n\n"
    "Optimistic Policy Regularization: keep what your agent found once.\n\n"
    "commands:\n"
    + "".join(f"  {name:<10}{line}\n" for name, line in COMMANDS.items())
    + "\n`optimist COMMAND --help` lists its flags; `optimist --version` prints the version."
)


class Terminated(KeyboardInterrupt):
    """SIGTERM as an exception, so that open files and processes are closed before the exit."""

    signum = signal.SIGTERM


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit code is 0, 2 for an error, 130 or 143 after SIGINT or SIGTERM."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # τ on an ASCII terminal must not stop a run
    before = signal.signal(signal.SIGTERM, _terminate)
    try:
        return _dispatch(arguments)
    except user_errors() as error:
        print(f"optimist: error: {printable(' '.join(str(error).split()))}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as error:
        return 128 + int(getattr(error, "signum", signal.SIGINT))
    except BrokenPipeError:  # `optimist presets | head -1`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    finally:
        signal.signal(signal.SIGTERM, before)


def user_errors() -> tuple[type[Exception], ...]:
    """Errors that are printed as one line: those of this package, and of `cage2` where it is loaded."""
    cage2 = sys.modules.get("cage2.errors")
    return (OptimistError,) if cage2 is None else (OptimistError, cage2.Cage2Error)


def _dispatch(arguments: list[str]) -> int:
    if not arguments:
        print(USAGE, file=sys.stderr)
        return 2
    name, *rest = arguments
    if name in ("-h", "--help"):
        print(USAGE)
        return 0
    if name == "--version":
        print(f"optimist {__version__}")
        return 0
    if name not in COMMANDS:
        raise unknown_name("flag" if name.startswith("-") else "command", name, [*COMMANDS, "--help", "--version"])
    code: int = importlib.import_module(f"optimist.cli.{name}").main(rest)
    return code


def _terminate(signum: int, frame: FrameType | None) -> None:
    raise Terminated
