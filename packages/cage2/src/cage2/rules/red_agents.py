"""The attackers B_line, Meander and Sleep: each chooses its next action from the result of its last one."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from cage2.rules.chance import draw_bit, lowest_bit, recorded_bit
from cage2.rules.compile import rule
from cage2.rules.scenario import (
    ENTERPRISE,
    ENTERPRISE0,
    ENTERPRISE1,
    ENTERPRISE2,
    ESCALATE,
    EXPLOIT,
    IMPACT,
    NO,
    NOWHERE,
    NUM_HOSTS,
    OP_SERVER0,
    OPERATIONAL,
    RED_SLEEP,
    SCAN,
    SUBNET_HOSTS,
    SWEEP,
    USER,
    USER1,
    USER2,
    USER3,
    USER4,
    YES,
    hosts,
)
from cage2.rules.state import B_LINE, MEANDER

ENTRIES: Final = hosts(USER1, USER2, USER3, USER4)
JUMPS: Final = np.array([0, 1, 2, 2, 2, 2, 5, 5, 5, 5, 9, 9, 9, 12, 13])
"""B_line's next position after a failure, by its position."""
PATH_VERBS: Final = np.array(
    [
        *(SWEEP, SCAN, EXPLOIT, ESCALATE),  # X, the entry
        *(SCAN, EXPLOIT, ESCALATE, SWEEP),  # Y, the second host, then its subnet
        *(SCAN, EXPLOIT, ESCALATE),  # Enterprise2
        *(SCAN, EXPLOIT, ESCALATE, IMPACT),  # Op_Server0
    ]
)
LAST_POSITION: Final = len(PATH_VERBS) - 1
SCAN_ENTRY, EXPLOIT_SERVER = 1, 12


def _path(entry: int) -> list[int]:
    """B_line's target at each position for one entry host X: X, second host Y, Enterprise2, Op_Server0."""
    entry = min(entry, NUM_HOSTS - 1)  # NOWHERE is only looked up from a forged saved state
    second = ENTERPRISE1 if entry in (USER1, USER2) else ENTERPRISE0
    return [USER, *[entry] * 3, *[second] * 3, ENTERPRISE, *[ENTERPRISE2] * 3, *[OP_SERVER0] * 4]


PATH_TARGETS: Final = np.array([_path(entry) for entry in range(NUM_HOSTS + 1)])


@rule
def choose_host(game: Any, candidates: int, recorded: Any) -> int:
    """Return a host of a mask, drawn uniformly or as recorded."""
    host = draw_bit(game, candidates) if recorded is None else recorded_bit(candidates, recorded.red_target)
    return min(host, NUM_HOSTS - 1)  # no game gets here without a candidate; a forged saved state may


@rule
def b_line(game: Any, recorded: Any) -> tuple[int, int]:
    """Advance one of 15 positions after a success, go back to `JUMPS` after a failure (also at the first step)."""
    position = min(game.position + 1, LAST_POSITION) if game.red_success == YES else JUMPS[game.position]
    if position == EXPLOIT_SERVER and game.known_ports[OP_SERVER0] == 0:
        position = SCAN_ENTRY  # its scan found nothing: it scans X again in this step
    if position == SCAN_ENTRY and game.entry == NOWHERE:
        game.entry = choose_host(game, ENTRIES, recorded)
    game.position = position
    return PATH_VERBS[position], PATH_TARGETS[game.entry, position]


@rule
def clear_subnet(game: Any, subnet: int) -> bool:
    """Clear Meander's memory of a subnet if it escalated a host there; return whether it did."""
    members = SUBNET_HOSTS[subnet]
    if not game.escalated & members:
        return False
    game.escalated &= ~members
    game.exploited &= ~members
    return True


@rule
def learn_from_result(game: Any) -> None:
    """Update Meander's memory; after any failed exploit it repeats the most advanced subnet it escalated in."""
    bit = 1 << game.red_target
    failed = game.red_success == NO
    if game.red_verb == EXPLOIT:
        if not failed:
            game.mapped |= bit
        else:
            game.exploited &= ~bit
            if not clear_subnet(game, OPERATIONAL):
                clear_subnet(game, ENTERPRISE)
    elif failed and (game.red_verb == ESCALATE or game.red_verb == IMPACT):
        game.escalated &= ~bit
        if game.mapped & bit:
            game.exploited &= ~bit


@rule
def meander(game: Any, recorded: Any) -> tuple[int, int]:
    """Sweep, scan, escalate, exploit, in this order of priority; targets are drawn at random."""
    learn_from_result(game)
    if (game.escalated >> OP_SERVER0) & 1:
        return IMPACT, OP_SERVER0
    subnets = game.known_subnets & ~game.swept
    if subnets:
        subnet = lowest_bit(subnets)
        game.swept |= 1 << subnet  # even if it fails
        return SWEEP, subnet
    targets = game.known_addresses & ~game.scanned
    if targets:
        host = choose_host(game, targets, recorded)
        game.scanned |= 1 << host  # once per episode, even if the scan finds nothing
        return SCAN, host
    targets = game.known_names & ~game.escalated & ~(game.mapped & ~game.exploited)
    if targets:
        host = choose_host(game, targets, recorded)
        game.escalated |= 1 << host
        return ESCALATE, host
    host = choose_host(game, game.known_addresses & ~game.exploited, recorded)
    game.exploited |= 1 << host
    return EXPLOIT, host


@rule
def red_choice(game: Any, recorded: Any) -> tuple[int, int]:
    """Return the next verb and target of the game's red agent; the target of a sweep is a subnet."""
    if game.red == B_LINE:
        return b_line(game, recorded)
    if game.red == MEANDER:
        return meander(game, recorded)
    return RED_SLEEP, NOWHERE
