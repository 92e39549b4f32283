"""The Cardiff interface, compiled: 36 outputs, lists of decoys, memory of scans, opening actions."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from cage2.rules.compile import kernel, rule
from cage2.rules.dynamics import reset_game, step_game
from cage2.rules.scenario import (
    DEFENDER,
    ENTERPRISE0,
    ENTERPRISE1,
    ENTERPRISE2,
    HOST_OF,
    NUM_HOSTS,
    OP_SERVER0,
    RESTORE,
    SLEEP,
    USER0,
    USER1,
    USER2,
    USER3,
    USER4,
    VERB_OF,
)
from cage2.rules.state import VIEW, Settings

DIRECT_OUTPUTS: Final = (
    *(133, 134, 135, 139),  # Restore Enterprise0–2, Op_Server0
    *(3, 4, 5, 9),  # Analyse the same
    *(16, 17, 18, 22),  # Remove the same
    *(11, 12, 13, 14),  # Analyse User1–4
    *(141, 142, 143, 144),  # Restore User1–4
    *(132, 2, 15),  # Restore, Analyse, Remove Defender
    *(24, 25, 26, 27),  # Remove User1–4
)
"""Flat actions of the outputs 0..26."""
DECOY_HOSTS: Final = (ENTERPRISE0, ENTERPRISE1, ENTERPRISE2, USER1, USER2, USER3, USER4, DEFENDER, OP_SERVER0)
"""Outputs 27..35 place the next decoy of these hosts' lists."""
DECOY_ORDER: Final = (
    (55, 107, 120, 29),
    (43,),
    (44,),
    (37, 115, 76, 102),
    (51, 116, 38, 90),
    (130, 91),
    (131,),
    (54, 106, 28, 119),
    (61, 35, 113, 126),
)
"""Decoys of each of `DECOY_HOSTS` as flat actions, in order of placement."""
FIRST_DECOY: Final = len(DIRECT_OUTPUTS)
NUM_OUTPUTS: Final = FIRST_DECOY + len(DECOY_HOSTS)
SLEEP_OUTPUT: Final = NUM_OUTPUTS
"""Additional output that sleeps, for an agent that found red asleep; off by default."""
OPENING: Final = np.array([31, 31, 27])
"""Decoys on User2, User2 and Enterprise0."""
SCAN_HOSTS: Final = np.array(
    [DEFENDER, ENTERPRISE0, ENTERPRISE1, ENTERPRISE2, OP_SERVER0, USER0, USER1, USER2, USER3, USER4]
)
"""Hosts of the scan memory, in order of priority."""
NUM_SCANS: Final = len(SCAN_HOSTS)
EARLIER, LATEST = 1, 2
"""Values of the scan memory: 0 never scanned, 1 scanned earlier, 2 most recent scan."""

SCANS: Final = np.dtype([("values", np.int8, NUM_SCANS)])
MEMORY: Final = np.dtype([("placed", np.int8, len(DECOY_HOSTS)), ("scans", SCANS)], align=True)
"""Memory of one game: decoys placed per list since the last Restore, and scans."""
MEMORY_RANGES: Final = {"placed": (0, 4), "scans": (0, 2)}
"""Field of a memory → its smallest and largest value."""
CARDIFF_VIEW: Final = np.dtype([("seen", VIEW), ("scans", SCANS)])
"""The 62 inputs: 52 bits, then the scan memory."""
FRESH_MEMORY: Final = np.zeros(1, MEMORY)

FLAT_ACTIONS: Final = np.array([*DIRECT_OUTPUTS, *[SLEEP] * len(DECOY_HOSTS), SLEEP])
DECOY_ACTIONS: Final = np.array([[*order, *[order[0]] * (4 - len(order))] for order in DECOY_ORDER])
LIST_LENGTHS: Final = np.array([len(order) for order in DECOY_ORDER])
_SLOT_OF: Final = np.array([[*SCAN_HOSTS, h].index(h) for h in range(NUM_HOSTS)])
_LIST_OF: Final = np.array([DECOY_HOSTS.index(h) if h in DECOY_HOSTS else -1 for h in range(NUM_HOSTS)])


@rule
def to_flat(memory: Any, output: int) -> int:
    """Return the flat action of an output and update the memory.

    A decoy output gives the next entry of its list, or the first entry again after the end of the list. An entry counts
    as placed even if the host refuses it; a Restore resets the host's list.
    """
    action: int = FLAT_ACTIONS[output]
    if FIRST_DECOY <= output < NUM_OUTPUTS:
        decoys = output - FIRST_DECOY
        placed = memory.placed[decoys]
        if placed < LIST_LENGTHS[decoys]:
            memory.placed[decoys] = placed + 1
            action = DECOY_ACTIONS[decoys, placed]
        else:
            action = DECOY_ACTIONS[decoys, 0]
    elif VERB_OF[action] == RESTORE:
        memory.placed[_LIST_OF[HOST_OF[action]]] = 0
    return action


@rule
def remember_scan(memory: Any, game: Any) -> None:
    """Record the first host, in order of priority, whose activity is Scan as the most recent scan."""
    first = NUM_SCANS
    for source in range(2):  # only targets of red and green have activity
        host = game.active[source]
        if game.seen.bits[4 * host] == 1 and game.seen.bits[4 * host + 1] == 0:
            first = min(first, _SLOT_OF[host])
    if first < NUM_SCANS:
        for slot in range(NUM_SCANS):
            memory.scans.values[slot] = min(memory.scans.values[slot], EARLIER)
        memory.scans.values[first] = LATEST


@kernel
def reset_cardiff_games(games: Any, memories: Any, mask: Any, settings: Settings, seen: Any, scans: Any) -> None:
    """Start a new episode in the masked games and write the inputs of all games."""
    for i in range(games.shape[0]):
        if mask[i]:
            reset_game(games, i, settings)
            memories[i] = FRESH_MEMORY[0]
        seen[i] = games[i].seen
        scans[i] = memories[i].scans


@kernel
def step_cardiff_games(
    start: int,
    stop: int,
    games: Any,
    memories: Any,
    outputs: Any,
    opening: bool,
    settings: Settings,
    seen: Any,
    scans: Any,
    rewards: Any,
    truncated: Any,
    final_seen: Any,
    final_scans: Any,
    executed: Any,
) -> int:
    """Play one step of games start..stop−1 and reset those that ended; return how many ended."""
    ended = 0
    for i in range(start, stop):
        game, memory = games[i], memories[i]
        output = OPENING[game.steps] if opening and game.steps < len(OPENING) else outputs[i]
        executed[i] = output
        rewards[i] = step_game(game, to_flat(memory, output), settings, None)
        remember_scan(memory, game)
        over = game.steps >= settings.horizon
        truncated[i] = over
        if over:
            ended += 1
            final_seen[i] = game.seen
            final_scans[i] = memory.scans
            reset_game(games, i, settings)
            memories[i] = FRESH_MEMORY[0]
    for i in range(start, stop):  # in a second loop: copying bytes just written stalls the processor
        seen[i] = games[i].seen
        scans[i] = memories[i].scans
    return ended
