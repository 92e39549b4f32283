"""What blue sees: 13 hosts × [a0 a1 c0 c1], the activity of this step and the lasting status of the table."""

from __future__ import annotations

from typing import Any

from optimist.envs.cage2.chance import size
from optimist.envs.cage2.compiled import rule

QUIET, SCANNED, EXPLOITED = range(3)
"""Activity: None 00, Scan 10, Exploit 11."""
STATUS_NO, STATUS_UNKNOWN, STATUS_USER, STATUS_PRIVILEGED = range(4)
"""Status: No 00, Unknown 10, User 01, Privileged 11: bit 0 is c0, bit 1 is c1."""


@rule
def status(game: Any, host: int) -> int:
    """The table's status of a host."""
    value: int = game.seen.bits[4 * host + 2] + 2 * game.seen.bits[4 * host + 3]
    return value


@rule
def set_status(game: Any, host: int, value: int) -> None:
    """Writes the table's status of a host."""
    game.seen.bits[4 * host + 2] = value & 1
    game.seen.bits[4 * host + 3] = value >> 1


@rule
def clear_activity(game: Any) -> None:
    """Activity describes one step only: what the last one showed goes."""
    for slot in range(2):
        host = game.active[slot]
        game.seen.bits[4 * host] = 0
        game.seen.bits[4 * host + 1] = 0


@rule
def show_activity(game: Any, slot: int, host: int, value: int) -> None:
    """What a host shows in this step; an Exploit makes its status User, even from Privileged."""
    game.active[slot] = host
    game.seen.bits[4 * host] = value >= SCANNED
    game.seen.bits[4 * host + 1] = value == EXPLOITED
    if value == EXPLOITED:
        set_status(game, host, STATUS_USER)


@rule
def activity(serviced: bool, ports: int, events: int, reverse: bool, cardiff_table: bool) -> int:
    """The activity that the log of one host shows: a service entry perhaps, then connection events.

    `ports` is the set of local ports of the events, without the ephemeral one of a reverse connection. A log of n
    entries on k distinct ports reads, first match first: empty → None; n ≥ 3 and k ≥ 3 → Scan; a reverse connection
    → Exploit; n ≥ 3 and k = 1 → Exploit; a service entry first → None (`official` table only); else Scan. A service
    entry alone is None in both tables.
    """
    if events == 0:
        return QUIET
    distinct = size(ports) + reverse
    if distinct >= 3:  # n ≥ 3 follows
        return SCANNED
    if reverse:
        return EXPLOITED
    if distinct == 1 and events + serviced >= 3:
        return EXPLOITED
    if serviced and not cardiff_table:
        return QUIET
    return SCANNED
