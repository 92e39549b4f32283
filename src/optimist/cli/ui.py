"""`optimist ui [RUNS_DIR]`: serve the page of runs, memories, replays and reports, and open a browser."""

from __future__ import annotations

import errno
import importlib.util
import socket
import sys
import threading
import webbrowser
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from optimist.cli.arguments import Parser
from optimist.errors import ConfigError, RunFolderError, missing_extra

PORT = 8000
TRIES = 100
"""Ports that are tried, the first included."""
TOKEN = 16
"""Fewest characters of a token."""


def main(argv: Sequence[str]) -> int:
    """Serve until Ctrl-C."""
    parser = Parser(prog="optimist ui", description="Serve a page of your runs and of what they remember.")
    parser.add_argument(
        "folder", type=Path, nargs="?", default=Path("runs"), metavar="RUNS_DIR",
        help="folder with runs or results below it (default: runs)",
    )  # fmt: skip
    parser.add_argument(
        "--port", type=int, default=PORT, metavar="N", help=f"default: {PORT}; if in use, the next free one"
    )
    parser.add_argument("--no-browser", action="store_true", help="do not open a browser")
    parser.add_argument(
        "--allow-control", action="store_true", help="let the page start, stop and resume runs (default: read-only)"
    )
    parser.add_argument(
        "--host", default="127.0.0.1", metavar="ADDRESS", help="another address than this machine's own; needs --token"
    )
    parser.add_argument(
        "--token", metavar="TEXT", help=f"asked for before anything is shown; {TOKEN} characters or more"
    )
    options = parser.parse_all(list(argv))
    for package in ("starlette", "uvicorn", "jinja2"):
        if importlib.util.find_spec(package) is None:
            raise missing_extra("the page", "ui", package)
    from optimist.ui.security import is_loopback

    _check(options, loopback=is_loopback(options.host))
    with _bind(options.host, options.port) as listener:
        return serve(options, listener)


def _check(options: Namespace, *, loopback: bool) -> None:
    if not options.folder.is_dir():
        raise RunFolderError(f"RUNS_DIR does not exist: {options.folder}/; give a folder with runs")
    if not 0 <= options.port <= 65535:
        raise ConfigError(f"--port must be 0 to 65535, got {options.port}")
    if not loopback and options.token is None:
        raise ConfigError(f"--host {options.host} needs --token: anyone who reaches this address could read the runs")
    if options.token is not None and len(options.token) < TOKEN:
        raise ConfigError(f"--token needs at least {TOKEN} characters, got {len(options.token)}")


def _bind(host: str, port: int) -> socket.socket:
    """A listening socket on this port, or on the next free one."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for number in range(port, min(port + TRIES, 65536)):
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, number))
            listener.listen(128)
            return listener
        except OSError as error:
            listener.close()
            if error.errno != errno.EADDRINUSE:
                raise ConfigError(f"cannot serve on {host}:{number}: {error.strerror}") from error
    raise ConfigError(f"ports {port} to {min(port + TRIES, 65536) - 1} are in use; choose another --port")


def serve(options: Namespace, listener: socket.socket) -> int:
    """Serve on a listening socket."""
    import uvicorn

    from optimist.ui.app import make_app
    from optimist.ui.folders import RunsFolder
    from optimist.ui.security import Guard

    port = listener.getsockname()[1]
    name = f"[{options.host}]" if ":" in options.host else options.host
    address = f"http://{name}:{port}/"
    in_use = f"Port {options.port} is in use; " if options.port not in (0, port) else ""
    print(f"{in_use}{'serving' if in_use else 'Serving'} on {address} (Ctrl-C stops)", flush=True)
    app = make_app(RunsFolder(options.folder), Guard(options.host, options.token), control=options.allow_control)
    if not options.no_browser:
        threading.Thread(target=_open, args=(address,), daemon=True).start()
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, lifespan="off", timeout_graceful_shutdown=1, server_header=False
    )
    uvicorn.Server(config).run(sockets=[listener])
    return 0


def _open(address: str) -> None:
    try:
        opened = webbrowser.open(address)
    except webbrowser.Error:
        opened = False
    if not opened:
        print(f"No browser found; open {address}", file=sys.stderr, flush=True)
