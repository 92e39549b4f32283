"""One game as a table of hosts, for people."""

from __future__ import annotations

from io import StringIO

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from optimist.envs.cage2.actions import RED_VERBS, SWEEP
from optimist.envs.cage2.network import EXPLOITS, HOSTS, NO_EXPLOIT, NOWHERE, SUBNETS
from optimist.envs.cage2.state import REDS, decoys_of

ACCESS = ("", "user", "[bold red]privileged[/]")
ACTIVITY = {(0, 0): "", (1, 0): "[yellow]Scan[/]", (1, 1): "[red]Exploit[/]"}
LEAST = {"host": len("Enterprise0"), "red access": len("privileged")}
"""Widths of columns that stay whole on a narrow terminal."""
STATUS = {(0, 0): "", (1, 0): "Unknown", (0, 1): "User", (1, 1): "Privileged"}


def red_words(game: np.void) -> str:
    """Red's last action in words, such as `ExploitRemoteService User3 (HarakaRCE): success`."""
    words = RED_VERBS[game["red_verb"]]
    if game["red_target"] != NOWHERE:
        words += " " + (SUBNETS if game["red_verb"] == SWEEP else HOSTS)[game["red_target"]]
    if game["red_exploit"] != NO_EXPLOIT:
        words += f" ({EXPLOITS[game['red_exploit']]})"
    return words + {1: ": success", 0: ": failure"}.get(int(game["red_success"]), "")


def game_table(games: NDArray[np.void], index: int) -> Table:
    """What blue sees of each host beside what is true."""
    game = games[index]
    title = f"{REDS[game['red']]} · step {game['steps']}"
    if game["steps"]:
        title += f" · {red_words(game)}"
    table = Table(title=title, caption=None if game["ot_running"] else "[bold red]OTService is down[/]")
    for name in ("host", "activity", "status", "red access", "sessions", "removable", "file", "decoys"):
        table.add_column(name, min_width=LEAST.get(name))
    decoys = decoys_of(games, index)
    bits = game["seen"]["bits"].tolist()
    for h, host in enumerate(HOSTS):
        activity, status = (bits[4 * h], bits[4 * h + 1]), (bits[4 * h + 2], bits[4 * h + 3])
        access = (int(game["held"]) >> h & 1) + (int(game["owned"]) >> h & 1)
        sessions = int(game["plain"][h]) + int(game["flagged"][h]) + int(game["privileged"][h])
        table.add_row(
            host,
            ACTIVITY[activity],
            STATUS[status],
            ACCESS[access],
            str(sessions or ""),
            str(game["flagged"][h] or ""),
            "yes" if int(game["malware"]) >> h & 1 else "",
            " ".join(decoys.get(host, [])),
        )
    return table


def render_game(games: NDArray[np.void], index: int, show: bool = False) -> str:
    """The table as text, or on the terminal."""
    if show:
        Console().print(game_table(games, index))
        return ""
    text = StringIO()
    Console(file=text, width=120).print(game_table(games, index))
    return text.getvalue()
