"""What blue, green and red do, in words."""

from __future__ import annotations

from typing import Final

import numpy as np

from cage2.rules.scenario import (
    ACTION_NAMES,
    HOSTS,
    NO_EXPLOIT,
    NOWHERE,
    RED_SLEEP,
    RED_VERBS,
    SUBNETS,
    SWEEP,
)

RED_WORDS: Final = {
    "DiscoverRemoteSystems": "Discover",
    "DiscoverNetworkServices": "Scan",
    "ExploitRemoteService": "Exploit",
    "PrivilegeEscalate": "Escalate",
    "Impact": "Impact",
    "Sleep": "Sleep",
}
RED_TAGS: Final = ("", "", "scan", "exploit", "escalate", "impact")
"""Red's action in one word on a map, in the order of `RED_VERBS`; a sweep is drawn around its subnet."""
EXPLOIT_WORDS: Final = ("SSH", "RDP", "SMB", "HTTP", "HTTPS", "SQL", "SMTP", "FTP")
"""Each of `EXPLOITS` by the service it attacks."""
ACTIVITIES: Final = {(0, 0): "", (1, 0): "scan", (1, 1): "exploit"}
STATUSES: Final = {(0, 0): "", (1, 0): "unknown", (0, 1): "user", (1, 1): "privileged"}
ACCESS: Final = ("", "user", "privileged")


def describe_action(action: int) -> str:
    """A flat action in words: `Restore User3`, `Decoy Tomcat User2`."""
    name = ACTION_NAMES[action]
    return f"Decoy {name.removeprefix('Decoy')}" if name.startswith("Decoy") else name


def describe_red(verb: int, target: int, exploit: int = NO_EXPLOIT) -> str:
    """Red's action in words: `Exploit User3 (SMTP)`."""
    words = RED_WORDS[RED_VERBS[verb]]
    if verb == RED_SLEEP or target == NOWHERE:
        return words
    words += f" {(SUBNETS if verb == SWEEP else HOSTS)[target]}"
    return words if exploit == NO_EXPLOIT else f"{words} ({EXPLOIT_WORDS[exploit]})"


def describe_red_action(game: np.void) -> str:
    """The last action of red in a game, with its result."""
    words = describe_red(int(game["red_verb"]), int(game["red_target"]), int(game["red_exploit"]))
    return words + {1: ": succeeds", 0: ": fails"}.get(int(game["red_success"]), "")
