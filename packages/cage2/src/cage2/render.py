"""One game as text of at most 80 columns: what blue saw of each host, and what is true."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from cage2.rules.scenario import HOSTS
from cage2.rules.state import REDS, decoys_of
from cage2.text import text_table
from cage2.words import ACCESS, ACTIVITIES, STATUSES, describe_red_action

DECOY_WIDTH: Final = 15
"""Columns for a host's decoys; where their names need more, each is two letters."""
HEADER: Final = ("host", "activity", "status", "red access", "sessions", "file", "decoys")


def host_rows(games: NDArray[np.void], index: int) -> list[tuple[str, ...]]:
    """A row for each host; `sessions` is their number, and how many of them Remove kills."""
    game, decoys = games[index], decoys_of(games, index)
    bits = game["seen"]["bits"].tolist()
    rows: list[tuple[str, ...]] = []
    for h, host in enumerate(HOSTS):
        access = (int(game["held"]) >> h & 1) + (int(game["owned"]) >> h & 1)
        removable = int(game["flagged"][h])
        sessions = int(game["plain"][h]) + int(game["privileged"][h]) + removable
        rows.append(
            (
                host,
                ACTIVITIES[bits[4 * h], bits[4 * h + 1]],
                STATUSES[bits[4 * h + 2], bits[4 * h + 3]],
                ACCESS[access],
                f"{sessions or ''}{f' ({removable})' * bool(removable)}",
                "yes" if int(game["malware"]) >> h & 1 else "",
                decoy_words(decoys.get(host, [])),
            )
        )
    return rows


def decoy_words(decoys: list[str]) -> str:
    """Names of decoys, or their first two letters, as many as there is room for."""
    names = " ".join(decoys)
    if len(names) <= DECOY_WIDTH:
        return names
    shown = [name[:2] for name in decoys[:4]]
    return " ".join(shown) + (f"+{len(decoys) - 4}" if len(decoys) > 4 else "")


def render_game(games: NDArray[np.void], index: int) -> str:
    """The game as a table of hosts, below a line with the step and red's last action."""
    game = games[index]
    title = f"{REDS[game['red']]} · step {game['steps']}"
    if game["steps"]:
        title += f" · red: {describe_red_action(game)}"
    table = text_table(HEADER, host_rows(games, index), left=len(HEADER))
    return "\n".join((title, table, *(() if game["ot_running"] else ("OTService is down",))))
