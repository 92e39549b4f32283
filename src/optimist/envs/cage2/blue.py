"""Blue's actions: Analyse, Remove, Restore and the eight decoys. Sleep and Monitor change nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

from optimist.envs.cage2.actions import ANALYSE, DECOY, HOST_OF, NO, REMOVE, RESTORE, SLEEP, UNKNOWN, VERB_OF, YES
from optimist.envs.cage2.compiled import rule
from optimist.envs.cage2.network import (
    DECOY_CHECKED,
    DECOY_PORT,
    DECOY_RUNS_ON,
    GENUINE_PORTS,
    NOWHERE,
    OP_SERVER0,
    USER0,
)
from optimist.envs.cage2.observe import STATUS_NO, STATUS_UNKNOWN, set_status, status

_NIBBLE = np.uint64(4)


@rule
def listening(game: Any, host: int) -> int:
    """The set of ports open on a host now, genuine services and decoys."""
    ports: int = GENUINE_PORTS[host] | game.decoy_ports[host]
    return ports


@rule
def remove(game: Any, host: int) -> None:
    """Kills the flagged user sessions, and only those; a status other than No becomes Unknown whatever was killed."""
    game.flagged[host] = 0
    if game.plain[host] == 0 and game.privileged[host] == 0:
        game.held &= ~(1 << host)
    if status(game, host) != STATUS_NO:
        set_status(game, host, STATUS_UNKNOWN)


@rule
def restore(game: Any, host: int) -> None:
    """Deletes sessions (on User0 all but red's first), decoys and files; red's remembered ports stay."""
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
    if host == OP_SERVER0:  # the service is back, but as a process that Impact can no longer kill
        game.ot_running = True
        game.ot_active = True
        game.ot_killable = False


@rule
def place_decoy(game: Any, decoy: int, host: int) -> bool:
    """Whether the decoy was accepted: the host's system suits it and the port it checks is free."""
    if (DECOY_RUNS_ON[decoy] >> host) & 1 == 0 or listening(game, host) & DECOY_CHECKED[decoy]:
        return False
    game.decoy_ports[host] |= DECOY_PORT[decoy]
    game.decoy_list[host] = (game.decoy_list[host] << _NIBBLE) | np.uint64(decoy + 1)
    return True


@rule
def blue_act(game: Any, action: int) -> tuple[int, int]:
    """Blue's action takes effect; the host that logs a new service, and the host where Analyse found a file."""
    verb = VERB_OF[action]
    host = HOST_OF[action]
    serviced = NOWHERE
    found = NOWHERE
    game.blue_success = YES
    if verb == RESTORE:
        restore(game, host)
    elif verb >= DECOY:
        if place_decoy(game, verb - DECOY, host):
            serviced = host
        else:
            game.blue_success = NO
    elif verb == REMOVE:
        remove(game, host)
    elif verb == ANALYSE:
        if (game.malware >> host) & 1:  # a file that red drops later in this step is not seen
            found = host
    elif verb == SLEEP:
        game.blue_success = UNKNOWN
    return serviced, found
