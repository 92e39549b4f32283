"""Red's actions on the network. Each reports success to the red agent and returns the events it leaves in the log."""

from __future__ import annotations

from typing import Any

from optimist.envs.cage2.actions import ESCALATE, EXPLOIT, IMPACT, NO, RED_SLEEP, SCAN, SWEEP, UNKNOWN, YES
from optimist.envs.cage2.blue import listening
from optimist.envs.cage2.chance import draw, lowest, one_of_or_given, size
from optimist.envs.cage2.compiled import rule
from optimist.envs.cage2.network import (
    ALL_OPTIONS,
    BRUTE_FORCEABLE,
    GATEWAYS,
    GENUINE_ANSWER,
    GIVES_PRIVILEGED,
    HARAKA_RCE,
    HIGHEST_BIT,
    NO_ANSWER,
    NO_EXPLOIT,
    NOWHERE,
    OP_SERVER0,
    OPERATIONAL,
    REVEALED_BY,
    SQL_INJECTION,
    SSH_BRUTE_FORCE,
    SUBNET_HOSTS,
    SUBNET_OF,
    WEB_PORTS,
)

MOST = 127
"""Session counts stop here. They matter only before the first escalation on a host, where they stay far below."""


@rule
def reachable(game: Any, subnet: int) -> bool:
    """Operational opens only from a session on Enterprise0–2; the other subnets are always open to User0."""
    return subnet != OPERATIONAL or game.held & GATEWAYS != 0


@rule
def sweep(game: Any, subnet: int) -> tuple[bool, int, int]:
    """DiscoverRemoteSystems: red learns the subnet's addresses. Nothing is logged."""
    if not reachable(game, subnet):
        return False, 0, 0
    game.known_addresses |= SUBNET_HOSTS[subnet]
    return True, 0, 0


@rule
def scan(game: Any, host: int, competition: bool) -> tuple[bool, int, int]:
    """DiscoverNetworkServices: one event a port. Unreachable, it logs and teaches nothing yet reports success.

    Repeated ports (Defender's two 53s, stacked Vsftpd) count once here: they occur only on hosts with several ports,
    where the number of events decides nothing (`observe.activity`).
    """
    if not reachable(game, SUBNET_OF[host]):
        return True, 0, 0
    ports = listening(game, host)
    if competition:
        game.known_ports[host] |= ports
    else:
        game.known_ports[host] = ports
    return True, ports, size(ports)


@rule
def draw_exploit(game: Any, remembered: int, given: Any) -> int:
    """The exploit tried: the weightiest option with probability ¾, otherwise one of the others, uniformly."""
    options = remembered & ALL_OPTIONS
    if not remembered & WEB_PORTS:
        options &= ~(1 << SQL_INJECTION)
    if given is not None:
        return one_of_or_given(game, options, given.exploit)
    best: int = HIGHEST_BIT[options]
    others = size(options) - 1
    if others == 0:
        return best
    other = draw(game, 4 * others) - 3 * others
    if other < 0:
        return best
    for _ in range(other):
        options &= options - 1
    return lowest(options)


@rule
def open_session(game: Any, host: int, privileged: bool, flagged: bool) -> None:
    """One more red session on a host; red then knows the host's name."""
    game.held |= 1 << host
    game.known_names |= 1 << host
    if privileged:
        game.owned |= 1 << host
        game.privileged[host] = min(game.privileged[host] + 1, MOST)
    elif flagged:
        game.flagged[host] = min(game.flagged[host] + 1, MOST)
    else:
        game.plain[host] = min(game.plain[host] + 1, MOST)


@rule
def exploit(game: Any, host: int, competition: bool, given: Any) -> tuple[bool, int, int]:
    """ExploitRemoteService: an exploit drawn from remembered ports meets the services that run now.

    Genuine services answer before decoys. A reverse shell is logged with probability 0.95 and its session is then
    flagged; SSH brute force leaves neither a shell nor a file.
    """
    if game.known_ports[host] == 0:
        return False, 0, 0
    chosen = draw_exploit(game, game.known_ports[host], given)
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
    detected = draw(game, 20) != 0 if given is None else given.detected == 1
    open_session(game, host, answer == GIVES_PRIVILEGED, detected)
    game.malware |= 1 << host
    if not detected:
        return True, port, 1
    game.shell_host = host
    return True, port, 2


@rule
def takes_flagged(game: Any, host: int, given: Any) -> bool:
    """Whether the session drawn for escalation, uniformly among the user-level ones, is a flagged one."""
    flagged: int = game.flagged[host]
    plain: int = game.plain[host]
    if flagged == 0 or plain == 0:
        return flagged > 0
    left: int = draw(game, flagged + plain) if given is None else given.flagged
    return left < flagged


@rule
def escalate(game: Any, host: int, given: Any) -> tuple[bool, int, int]:
    """PrivilegeEscalate: one user session becomes privileged, unless one is already. Nothing is logged."""
    bit = 1 << host
    if not game.held & bit:
        return False, 0, 0
    if not game.owned & bit:
        if takes_flagged(game, host, given):
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
    """Impact: stops OTService if it is active and killable; it reports success even where it stops nothing."""
    if not (game.held >> OP_SERVER0) & 1 or not game.knows_ot:
        return False, 0, 0
    if game.ot_active:
        game.ot_active = False
        if game.ot_killable:
            game.ot_running = False
    return True, 0, 0


@rule
def red_act(game: Any, verb: int, target: int, competition: bool, given: Any) -> tuple[int, int]:
    """Red's action takes effect; the local ports and the number of the events it logs on its target."""
    game.red_verb = verb
    game.red_target = target
    game.red_exploit = NO_EXPLOIT
    game.shell_host = NOWHERE
    if verb == RED_SLEEP:
        game.red_success = UNKNOWN
        return 0, 0
    success, ports, events = False, 0, 0
    if verb == EXPLOIT:
        success, ports, events = exploit(game, target, competition, given)
    elif verb == SCAN:
        success, ports, events = scan(game, target, competition)
    elif verb == ESCALATE:
        success, ports, events = escalate(game, target, given)
    elif verb == IMPACT:
        success, ports, events = impact(game)
    elif verb == SWEEP:
        success, ports, events = sweep(game, target)
    game.red_success = YES if success else NO
    return ports, events
