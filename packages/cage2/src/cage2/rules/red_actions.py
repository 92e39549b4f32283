"""Red's actions. Each returns its success, and the local ports and number of the events it logs on its target."""

from __future__ import annotations

from typing import Any

from cage2.rules.blue import open_ports
from cage2.rules.chance import count_bits, draw, lowest_bit, recorded_bit
from cage2.rules.compile import rule
from cage2.rules.scenario import (
    ALL_OPTIONS,
    BRUTE_FORCEABLE,
    ESCALATE,
    EXPLOIT,
    GATEWAYS,
    GENUINE_ANSWER,
    GIVES_PRIVILEGED,
    HARAKA_RCE,
    HIGHEST_BIT,
    IMPACT,
    NO,
    NO_ANSWER,
    NO_EXPLOIT,
    NOWHERE,
    OP_SERVER0,
    OPERATIONAL,
    RED_SLEEP,
    REVEALED_BY,
    SCAN,
    SQL_INJECTION,
    SSH_BRUTE_FORCE,
    SUBNET_HOSTS,
    SUBNET_OF,
    SWEEP,
    UNKNOWN,
    WEB_PORTS,
    YES,
)

MAX_SESSIONS = 127
"""Limit of session counts. Counts matter only before the first escalation on a host, and stay far below it."""


@rule
def reachable(game: Any, subnet: int) -> bool:
    """Return whether red reaches a subnet: Operational needs a session on Enterprise0–2, the others are always open."""
    return subnet != OPERATIONAL or game.held & GATEWAYS != 0


@rule
def sweep(game: Any, subnet: int) -> tuple[bool, int, int]:
    """DiscoverRemoteSystems: red learns the addresses of a subnet. Nothing is logged."""
    if not reachable(game, subnet):
        return False, 0, 0
    game.known_addresses |= SUBNET_HOSTS[subnet]
    return True, 0, 0


@rule
def scan(game: Any, host: int, competition: bool) -> tuple[bool, int, int]:
    """DiscoverNetworkServices: one event per port. Without access it has no effect and yet reports success.

    A port with several services (53 on Defender, repeated Vsftpd) counts once here: it occurs only on hosts with
    several ports, where `activity` does not depend on the number of events.
    """
    if not reachable(game, SUBNET_OF[host]):
        return True, 0, 0
    ports = open_ports(game, host)
    if competition:
        game.known_ports[host] |= ports
    else:
        game.known_ports[host] = ports
    return True, ports, count_bits(ports)


@rule
def draw_exploit(game: Any, remembered: int, recorded: Any) -> int:
    """Return the exploit red tries: the option of highest weight with probability ¾, else one of the others."""
    options = remembered & ALL_OPTIONS
    if not remembered & WEB_PORTS:
        options &= ~(1 << SQL_INJECTION)
    if recorded is not None:
        return min(recorded_bit(options, recorded.exploit), NO_EXPLOIT - 1)
    best: int = HIGHEST_BIT[options]
    others = count_bits(options) - 1
    if others <= 0:  # −1: ports of a forged saved state
        return best
    other = draw(game, 4 * others) - 3 * others
    if other < 0:
        return best
    for _ in range(other):
        options &= options - 1
    return lowest_bit(options)


@rule
def open_session(game: Any, host: int, privileged: bool, flagged: bool) -> None:
    """Add a red session on a host; red learns the host's name."""
    game.held |= 1 << host
    game.known_names |= 1 << host
    if privileged:
        game.owned |= 1 << host
        game.privileged[host] = min(game.privileged[host] + 1, MAX_SESSIONS)
    elif flagged:
        game.flagged[host] = min(game.flagged[host] + 1, MAX_SESSIONS)
    else:
        game.plain[host] = min(game.plain[host] + 1, MAX_SESSIONS)


@rule
def exploit(game: Any, host: int, competition: bool, recorded: Any) -> tuple[bool, int, int]:
    """ExploitRemoteService: an exploit drawn from the ports red remembers, against the services that run now.

    Genuine services answer before decoys. A reverse shell is logged with probability 0.95, which flags its session;
    SSH brute force creates neither a shell nor a file.
    """
    if game.known_ports[host] == 0:
        return False, 0, 0
    chosen = draw_exploit(game, game.known_ports[host], recorded)
    game.red_exploit = chosen
    if not reachable(game, SUBNET_OF[host]):
        return False, 0, 0
    port = 1 << chosen
    answer = GENUINE_ANSWER[host, chosen]
    if answer == NO_ANSWER and not game.decoy_ports[host] & port:
        return False, 0, 0
    if chosen == SSH_BRUTE_FORCE:
        if answer == NO_ANSWER or not (BRUTE_FORCEABLE >> host) & 1:
            return False, port, 10
        open_session(game, host, False, False)
        return True, port, 11
    if answer == NO_ANSWER:
        return False, port, 2
    if competition and chosen == HARAKA_RCE and (game.restored >> host) & 1:
        return False, port, 1
    detected = draw(game, 20) != 0 if recorded is None else recorded.detected == 1
    open_session(game, host, answer == GIVES_PRIVILEGED, detected)
    game.malware |= 1 << host
    if not detected:
        return True, port, 1
    game.shell_host = host
    return True, port, 2


@rule
def escalates_flagged(game: Any, host: int, recorded: Any) -> bool:
    """Return whether the user session that escalates, drawn uniformly, is a flagged one."""
    flagged: int = game.flagged[host]
    plain: int = game.plain[host]
    if flagged == 0 or plain == 0:
        return flagged > 0
    index: int = draw(game, flagged + plain) if recorded is None else recorded.flagged
    return index < flagged


@rule
def escalate(game: Any, host: int, recorded: Any) -> tuple[bool, int, int]:
    """PrivilegeEscalate: a user session becomes privileged unless the host has one. Nothing is logged."""
    bit = 1 << host
    if not game.held & bit:
        return False, 0, 0
    if not game.owned & bit:
        if escalates_flagged(game, host, recorded):
            game.flagged[host] -= 1
        else:
            game.plain[host] -= 1
        game.privileged[host] = 1
        game.owned |= bit
        game.malware |= bit
    game.known_subnets |= 1 << SUBNET_OF[host]
    game.known_addresses |= bit | REVEALED_BY[host]
    if host == OP_SERVER0:
        game.knows_ot = True
    return True, 0, 0


@rule
def impact(game: Any) -> tuple[bool, int, int]:
    """Impact: stop OTService if it is active and killable; success does not depend on whether it was stopped."""
    if not (game.held >> OP_SERVER0) & 1 or not game.knows_ot:
        return False, 0, 0
    if game.ot_active:
        game.ot_active = False
        if game.ot_killable:
            game.ot_running = False
    return True, 0, 0


@rule
def red_act(game: Any, verb: int, target: int, competition: bool, recorded: Any) -> tuple[int, int]:
    """Apply red's action; return the local ports and the number of the events it logs on its target."""
    game.red_verb = verb
    game.red_target = target
    game.red_exploit = NO_EXPLOIT
    game.shell_host = NOWHERE
    if verb == RED_SLEEP:
        game.red_success = UNKNOWN
        return 0, 0
    success, ports, events = False, 0, 0
    if verb == EXPLOIT:
        success, ports, events = exploit(game, target, competition, recorded)
    elif verb == SCAN:
        success, ports, events = scan(game, target, competition)
    elif verb == ESCALATE:
        success, ports, events = escalate(game, target, recorded)
    elif verb == IMPACT:
        success, ports, events = impact(game)
    elif verb == SWEEP:
        success, ports, events = sweep(game, target)
    game.red_success = YES if success else NO
    return ports, events
