"""The attackers B_line, Meander and Sleep: each turn they look at their last result and choose what to do next."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from optimist.envs.cage2.actions import ESCALATE, EXPLOIT, IMPACT, NO, RED_SLEEP, SCAN, SWEEP, YES
from optimist.envs.cage2.chance import lowest, one_of, one_of_or_given
from optimist.envs.cage2.compiled import rule
from optimist.envs.cage2.network import (
    ENTERPRISE,
    ENTERPRISE0,
    ENTERPRISE1,
    ENTERPRISE2,
    NOWHERE,
    NUM_HOSTS,
    OP_SERVER0,
    OPERATIONAL,
    SUBNET_HOSTS,
    USER,
    USER1,
    USER2,
    USER3,
    USER4,
    hosts,
)
from optimist.envs.cage2.state import B_LINE, MEANDER

ENTRIES: Final = hosts(USER1, USER2, USER3, USER4)
JUMPS: Final = np.array([0, 1, 2, 2, 2, 2, 5, 5, 5, 5, 9, 9, 9, 12, 13])
"""Where B_line goes on after a failure."""
LADDER_VERBS: Final = np.array(
    [
        *(SWEEP, SCAN, EXPLOIT, ESCALATE),  # X, the entry
        *(SCAN, EXPLOIT, ESCALATE, SWEEP),  # Y, the second host, then its subnet
        *(SCAN, EXPLOIT, ESCALATE),  # Enterprise2
        *(SCAN, EXPLOIT, ESCALATE, IMPACT),  # Op_Server0
    ]
)
TOP: Final = len(LADDER_VERBS) - 1
SCAN_ENTRY, EXPLOIT_SERVER = 1, 12


def _ladder(entry: int) -> list[int]:
    """B_line's targets by position for one entry host X: X, then Y, Enterprise2 and Op_Server0."""
    second = ENTERPRISE1 if entry in (USER1, USER2) else ENTERPRISE0
    return [USER, *[entry] * 3, *[second] * 3, ENTERPRISE, *[ENTERPRISE2] * 3, *[OP_SERVER0] * 4]


LADDER_TARGETS: Final = np.array([_ladder(entry) for entry in range(NUM_HOSTS + 1)])


@rule
def choose(game: Any, candidates: int, given: Any) -> int:
    """A host of a set, drawn uniformly or as recorded."""
    if given is not None:
        return one_of_or_given(game, candidates, given.red_target)
    return one_of(game, candidates)


@rule
def b_line(game: Any, given: Any) -> tuple[int, int]:
    """Climbs a ladder of 15 rungs, one up after a success, back to J[k] after a failure (also at the first turn)."""
    position = min(game.position + 1, TOP) if game.red_success == YES else JUMPS[game.position]
    if position == EXPLOIT_SERVER and game.known_ports[OP_SERVER0] == 0:
        position = SCAN_ENTRY  # its scan came back empty: it scans X again in this same turn
    if position == SCAN_ENTRY and game.entry == NOWHERE:
        game.entry = choose(game, ENTRIES, given)
    game.position = position
    return LADDER_VERBS[position], LADDER_TARGETS[game.entry, position]


@rule
def forget_layer(game: Any, subnet: int) -> bool:
    """If a host of the subnet was escalated, Meander forgets all it did in that subnet."""
    layer = SUBNET_HOSTS[subnet]
    if not game.escalated & layer:
        return False
    game.escalated &= ~layer
    game.exploited &= ~layer
    return True


@rule
def digest(game: Any) -> None:
    """Meander learns from its last result; one failed exploit anywhere makes it redo its most advanced layer."""
    bit = 1 << game.red_target
    failed = game.red_success == NO
    if game.red_verb == EXPLOIT:
        if not failed:
            game.mapped |= bit
        else:
            game.exploited &= ~bit
            if not forget_layer(game, OPERATIONAL):
                forget_layer(game, ENTERPRISE)
    elif failed and (game.red_verb == ESCALATE or game.red_verb == IMPACT):
        game.escalated &= ~bit
        if game.mapped & bit:
            game.exploited &= ~bit


@rule
def meander(game: Any, given: Any) -> tuple[int, int]:
    """Sweeps, then scans, then escalates, then exploits: whatever is left to do on the first of these, at random."""
    digest(game)
    if (game.escalated >> OP_SERVER0) & 1:
        return IMPACT, OP_SERVER0
    subnets = game.known_subnets & ~game.swept
    if subnets:
        subnet = lowest(subnets)
        game.swept |= 1 << subnet  # counts as swept even if it fails
        return SWEEP, subnet
    targets = game.known_addresses & ~game.scanned
    if targets:
        host = choose(game, targets, given)
        game.scanned |= 1 << host  # once per episode, even if the scan comes back empty
        return SCAN, host
    targets = game.known_names & ~game.escalated & ~(game.mapped & ~game.exploited)
    if targets:
        host = choose(game, targets, given)
        game.escalated |= 1 << host
        return ESCALATE, host
    host = choose(game, game.known_addresses & ~game.exploited, given)
    game.exploited |= 1 << host
    return EXPLOIT, host


@rule
def red_choice(game: Any, given: Any) -> tuple[int, int]:
    """The next verb and target (a host; a subnet for a sweep) of whichever agent plays this game."""
    if game.red == B_LINE:
        return b_line(game, given)
    if game.red == MEANDER:
        return meander(game, given)
    return RED_SLEEP, NOWHERE
