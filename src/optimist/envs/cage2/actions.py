"""Blue's 145 flat actions and red's verbs: index ↔ (verb, host)."""

from __future__ import annotations

from typing import Final

import numpy as np

from optimist.envs.cage2.network import DECOYS, HOSTS, NOWHERE, NUM_HOSTS

SLEEP, MONITOR, ANALYSE, REMOVE, DECOY = range(5)
RESTORE: Final = DECOY + len(DECOYS)
BLUE_VERBS: Final = ("Sleep", "Monitor", "Analyse", "Remove", *(f"Decoy{d.name}" for d in DECOYS), "Restore")
"""`DECOY + d` places `DECOYS[d]`."""

NUM_ACTIONS: Final = 2 + NUM_HOSTS * (len(BLUE_VERBS) - 2)
VERB_OF: Final = np.array([SLEEP, MONITOR] + [2 + i // NUM_HOSTS for i in range(NUM_ACTIONS - 2)])
HOST_OF: Final = np.array([NOWHERE, NOWHERE] + [i % NUM_HOSTS for i in range(NUM_ACTIONS - 2)])

RED_SLEEP, SWEEP, SCAN, EXPLOIT, ESCALATE, IMPACT = range(6)
RED_VERBS: Final = (
    "Sleep",
    "DiscoverRemoteSystems",
    "DiscoverNetworkServices",
    "ExploitRemoteService",
    "PrivilegeEscalate",
    "Impact",
)

YES, NO, UNKNOWN = 1, 0, -1
"""What an action reports about itself; sleeping reports UNKNOWN."""


def flat_action(verb: int, host: int = NOWHERE) -> int:
    """The flat index of a blue verb on a host; Sleep and Monitor have none."""
    return verb if verb <= MONITOR else 2 + (verb - 2) * NUM_HOSTS + host


def action_name(action: int) -> str:
    """For people: `DecoyTomcat User2` for 116."""
    verb, host = BLUE_VERBS[VERB_OF[action]], HOST_OF[action]
    return verb if host == NOWHERE else f"{verb} {HOSTS[host]}"


ACTION_NAMES: Final = tuple(action_name(action) for action in range(NUM_ACTIONS))
