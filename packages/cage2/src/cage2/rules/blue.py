"""Blue's actions (Analyse, Remove, Restore, decoys) and blue's observation: 13 hosts × [a0 a1 c0 c1]."""

from __future__ import annotations

from typing import Any

import numpy as np

from cage2.rules.chance import count_bits
from cage2.rules.compile import rule
from cage2.rules.scenario import (
    ANALYSE,
    DECOY,
    DECOY_CHECKED,
    DECOY_PORT,
    DECOY_RUNS_ON,
    GENUINE_PORTS,
    HOST_OF,
    NO,
    NOWHERE,
    OP_SERVER0,
    REMOVE,
    RESTORE,
    SLEEP,
    UNKNOWN,
    USER0,
    VERB_OF,
    YES,
)

_NIBBLE = np.uint64(4)
QUIET, SCANNED, EXPLOITED = range(3)
"""Activity bits a0 a1, of one step: None 00, Scan 10, Exploit 11."""
STATUS_NO, STATUS_UNKNOWN, STATUS_USER, STATUS_PRIVILEGED = range(4)
"""Status bits c0 c1, kept over steps: No 00, Unknown 10, User 01, Privileged 11."""


@rule
def status(game: Any, host: int) -> int:
    """Status of a host in blue's table."""
    value: int = game.seen.bits[4 * host + 2] + 2 * game.seen.bits[4 * host + 3]
    return value


@rule
def set_status(game: Any, host: int, value: int) -> None:
    """Write the status of a host in blue's table."""
    game.seen.bits[4 * host + 2] = value & 1
    game.seen.bits[4 * host + 3] = value >> 1


@rule
def clear_activity(game: Any) -> None:
    """Clear the activity of the last step."""
    for slot in range(2):
        host = game.active[slot]
        game.seen.bits[4 * host] = 0
        game.seen.bits[4 * host + 1] = 0


@rule
def show_activity(game: Any, slot: int, host: int, value: int) -> None:
    """Write the activity of a host in this step; Exploit sets its status to User, even from Privileged."""
    game.active[slot] = host
    game.seen.bits[4 * host] = value >= SCANNED
    game.seen.bits[4 * host + 1] = value == EXPLOITED
    if value == EXPLOITED:
        set_status(game, host, STATUS_USER)


@rule
def activity(new_service: bool, ports: int, events: int, reverse: bool, cardiff_table: bool) -> int:
    """Activity of a host, from its log: an entry for a new service, if any, then connection events.

    `ports` is the mask of the events' local ports, without the ephemeral port of a reverse connection. For a log of n
    entries on k distinct ports the first match holds: empty → None; n ≥ 3 and k ≥ 3 → Scan; a reverse connection →
    Exploit; n ≥ 3 and k = 1 → Exploit; a service entry first → None (`official` table only); else Scan. A service entry
    alone is None in both tables.
    """
    if events == 0:
        return QUIET
    distinct = count_bits(ports) + reverse
    if distinct >= 3:  # n ≥ 3 follows
        return SCANNED
    if reverse:
        return EXPLOITED
    if distinct == 1 and events + new_service >= 3:
        return EXPLOITED
    if new_service and not cardiff_table:
        return QUIET
    return SCANNED


@rule
def open_ports(game: Any, host: int) -> int:
    """Mask of the open ports of a host: genuine services and decoys."""
    ports: int = GENUINE_PORTS[host] | game.decoy_ports[host]
    return ports


@rule
def remove(game: Any, host: int) -> None:
    """Remove: kill the flagged user sessions only; a status other than No becomes Unknown, even if none was killed."""
    game.flagged[host] = 0
    if game.plain[host] == 0 and game.privileged[host] == 0:
        game.held &= ~(1 << host)
    if status(game, host) != STATUS_NO:
        set_status(game, host, STATUS_UNKNOWN)


@rule
def restore(game: Any, host: int) -> None:
    """Restore: delete sessions (on User0 all but red's first), decoys and files; red keeps its memory of ports."""
    others = ~(1 << host)
    game.plain[host] = 0
    game.flagged[host] = 0
    if host == USER0:
        game.privileged[host] = 1
    else:
        game.privileged[host] = 0
        game.held &= others
        game.owned &= others
    game.malware &= others
    game.restored |= 1 << host
    game.decoy_ports[host] = 0
    game.decoy_list[host] = 0
    set_status(game, host, STATUS_NO)
    if host == OP_SERVER0:  # OTService runs again, in a process that Impact cannot kill
        game.ot_running = True
        game.ot_active = True
        game.ot_killable = False


@rule
def place_decoy(game: Any, decoy: int, host: int) -> bool:
    """Place a decoy if it runs on the host's system and the port it checks is free; return whether it was placed."""
    if (DECOY_RUNS_ON[decoy] >> host) & 1 == 0 or open_ports(game, host) & DECOY_CHECKED[decoy]:
        return False
    game.decoy_ports[host] |= DECOY_PORT[decoy]
    game.decoy_list[host] = (game.decoy_list[host] << _NIBBLE) | np.uint64(decoy + 1)
    return True


@rule
def blue_act(game: Any, action: int) -> tuple[int, int]:
    """Apply blue's action; return the host with a new service and the host where Analyse found a file, or NOWHERE."""
    verb = VERB_OF[action]
    host = HOST_OF[action]
    service_host = NOWHERE
    file_host = NOWHERE
    game.blue_success = YES
    if verb == RESTORE:
        restore(game, host)
    elif verb >= DECOY:
        if place_decoy(game, verb - DECOY, host):
            service_host = host
        else:
            game.blue_success = NO
    elif verb == REMOVE:
        remove(game, host)
    elif verb == ANALYSE:
        if (game.malware >> host) & 1:  # blue acts first: a file that red creates in this step is not found
            file_host = host
    elif verb == SLEEP:
        game.blue_success = UNKNOWN
    return service_host, file_host
