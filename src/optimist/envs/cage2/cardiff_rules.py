"""The Cardiff interface of one game, compiled: 36 outputs, greedy decoys with marks, a memory of scans, the opening."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from optimist.envs.cage2.actions import HOST_OF, RESTORE, SLEEP, VERB_OF
from optimist.envs.cage2.compiled import kernel, rule
from optimist.envs.cage2.dynamics import reset_game, step_game
from optimist.envs.cage2.network import (
    DEFENDER,
    ENTERPRISE0,
    ENTERPRISE1,
    ENTERPRISE2,
    NUM_HOSTS,
    OP_SERVER0,
    USER0,
    USER1,
    USER2,
    USER3,
    USER4,
)
from optimist.envs.cage2.state import VIEW, Settings

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
"""Outputs 27..35 place the next decoy on these."""
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
"""For each of `DECOY_HOSTS` its decoys as flat actions, in greedy order."""
FIRST_DECOY: Final = len(DIRECT_OUTPUTS)
NUM_OUTPUTS: Final = FIRST_DECOY + len(DECOY_HOSTS)
SLEEP_OUTPUT: Final = NUM_OUTPUTS
"""One output more for the agent that found red asleep; offered on request only."""
OPENING: Final = np.array([31, 31, 27])
"""User2 decoy, User2 decoy, Enterprise0 decoy."""
SCAN_HOSTS: Final = np.array(
    [DEFENDER, ENTERPRISE0, ENTERPRISE1, ENTERPRISE2, OP_SERVER0, USER0, USER1, USER2, USER3, USER4]
)
"""The hosts of the scan memory, in the order in which they are examined."""
NUM_SCANS: Final = len(SCAN_HOSTS)
EARLIER, LATEST = 1, 2
"""Scan memory: 0 never scanned, 1 scanned earlier, 2 the most recent scan."""

SCANS: Final = np.dtype([("values", np.int8, NUM_SCANS)])
MEMORY: Final = np.dtype([("placed", np.int8, len(DECOY_HOSTS)), ("scans", SCANS)], align=True)
"""What the interface remembers of one game: decoys issued per list since the last Restore, and scans."""
CARDIFF_VIEW: Final = np.dtype([("seen", VIEW), ("scans", SCANS)])
"""The 62 inputs: the 52 bits, then the scan memory."""
FRESH_MEMORY: Final = np.zeros(1, MEMORY)

_DIRECT: Final = np.array([*DIRECT_OUTPUTS, *[SLEEP] * len(DECOY_HOSTS), SLEEP])
_ORDER: Final = np.array([[*order, *[order[0]] * (4 - len(order))] for order in DECOY_ORDER])
_LENGTH: Final = np.array([len(order) for order in DECOY_ORDER])
_SLOT_OF: Final = np.array([[*SCAN_HOSTS, h].index(h) for h in range(NUM_HOSTS)])
_LIST_OF: Final = np.array([DECOY_HOSTS.index(h) if h in DECOY_HOSTS else -1 for h in range(NUM_HOSTS)])


@rule
def to_flat(memory: Any, output: int) -> int:
    """The flat action of an output; a decoy output issues the first of its list not yet issued, or else the first.

    It is marked as issued whether or not the host accepts it; a Restore clears the host's marks.
    """
    action: int = _DIRECT[output]
    if FIRST_DECOY <= output < NUM_OUTPUTS:
        decoys = output - FIRST_DECOY
        placed = memory.placed[decoys]
        if placed < _LENGTH[decoys]:
            memory.placed[decoys] = placed + 1
            action = _ORDER[decoys, placed]
        else:
            action = _ORDER[decoys, 0]
    elif VERB_OF[action] == RESTORE:
        memory.placed[_LIST_OF[HOST_OF[action]]] = 0
    return action


@rule
def remember_scan(memory: Any, game: Any) -> None:
    """Of the hosts that show exactly Scan the first in order is recorded as the most recent one, and no other."""
    first = NUM_SCANS
    for source in range(2):  # only hosts that red or green touched can show anything
        host = game.active[source]
        if game.seen.bits[4 * host] == 1 and game.seen.bits[4 * host + 1] == 0:
            first = min(first, _SLOT_OF[host])
    if first < NUM_SCANS:
        for slot in range(NUM_SCANS):
            memory.scans.values[slot] = min(memory.scans.values[slot], EARLIER)
        memory.scans.values[first] = LATEST


@kernel
def reset_cardiff_games(games: Any, memories: Any, mask: Any, settings: Settings, seen: Any, scans: Any) -> None:
    """Starts a new episode in the masked games and writes the inputs of all games."""
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
    """Plays one step of games start..stop−1 through the Cardiff interface; how many of them ended and began anew."""
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
    for i in range(start, stop):  # a pass of its own: copied at once, bytes just written stall the processor
        seen[i] = games[i].seen
        scans[i] = memories[i].scans
    return ended
