"""Constants of Scenario2: hosts, subnets, services, decoys, exploits, and the actions of blue and red.

Sets of hosts and of ports are bit masks: bit h stands for `HOSTS[h]`, bit p for `PORTS[p]`.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

HOSTS: Final = (
    *("Defender", "Enterprise0", "Enterprise1", "Enterprise2"),
    *("Op_Host0", "Op_Host1", "Op_Host2", "Op_Server0"),
    *("User0", "User1", "User2", "User3", "User4"),
)
NUM_HOSTS: Final = len(HOSTS)
NOWHERE: Final = NUM_HOSTS
"""Host index that means "no host"."""
DEFENDER, ENTERPRISE0, ENTERPRISE1, ENTERPRISE2, OP_HOST0, OP_HOST1, OP_HOST2, OP_SERVER0 = range(8)
USER0, USER1, USER2, USER3, USER4 = range(8, 13)

SUBNETS: Final = ("Enterprise", "Operational", "User")
"""In Meander's order of discovery."""
ENTERPRISE, OPERATIONAL, USER = range(3)


def hosts(*indices: int) -> int:
    """Mask of these hosts."""
    return sum(1 << h for h in indices)


SUBNET_HOSTS: Final = np.array(
    [
        hosts(DEFENDER, ENTERPRISE0, ENTERPRISE1, ENTERPRISE2),
        hosts(OP_HOST0, OP_HOST1, OP_HOST2, OP_SERVER0),
        hosts(USER0, USER1, USER2, USER3, USER4),
    ]
)
SUBNET_OF: Final = np.array([next(s for s in range(3) if SUBNET_HOSTS[s] >> h & 1) for h in range(NUM_HOSTS)])
GATEWAYS: Final = hosts(ENTERPRISE0, ENTERPRISE1, ENTERPRISE2)
"""Red reaches Operational only with a session on one of these hosts; Defender does not count."""

WORTH_ONE: Final = hosts(ENTERPRISE0, ENTERPRISE1, ENTERPRISE2, OP_SERVER0)
WORTH_A_TENTH: Final = hosts(USER1, USER2, USER3, USER4, OP_HOST0, OP_HOST1, OP_HOST2, DEFENDER)

EXPLOITS: Final = (
    *("SSHBruteForce", "BlueKeep", "EternalBlue", "HTTPRFI"),
    *("HTTPSRFI", "SQLInjection", "HarakaRCE", "FTPDirectoryTraversal"),
)
"""By increasing weight: the highest bit of a mask of options is the one with the highest weight."""
NO_EXPLOIT: Final = len(EXPLOITS)
SSH_BRUTE_FORCE, BLUE_KEEP, ETERNAL_BLUE, HTTP_RFI, HTTPS_RFI, SQL_INJECTION, HARAKA_RCE, FTP_TRAVERSAL = range(8)
EXPLOIT_TYPES: Final = ("ssh", "rdp", "smb", "web", "web", "sql", "smtp", "ftp")

PORTS: Final = (22, 3389, 139, 80, 443, 3390, 25, 21, 53, 68, 135, 445)
"""Exploit e targets `PORTS[e]`; the last four ports have no exploit."""


def ports(*numbers: int) -> int:
    """Mask of these port numbers."""
    return sum(1 << PORTS.index(n) for n in set(numbers))


ALL_OPTIONS: Final = (1 << len(EXPLOITS)) - 1
WEB_PORTS: Final = ports(80, 443)
"""SQLInjection is an option only if one of these is open."""
HIGHEST_BIT: Final = np.array([max(n.bit_length() - 1, 0) for n in range(1 << len(EXPLOITS))])


class Service(NamedTuple):
    """A genuine service: its port, the exploit type it is open to, and whether that gives a privileged session."""

    port: int
    kind: str | None = None
    privileged: bool = False


_LINUX_SSH = (Service(22, "ssh"),)
_ENTERPRISE_WINDOWS = (
    Service(22, "ssh"),
    Service(135),
    Service(3389, "rdp", True),
    Service(445),  # the process on 445 and 139 is not recognised as SMB: EternalBlue never works here
    Service(139),
    Service(80, "web"),
    Service(443, "web"),
)
_USER_FTP = (Service(22, "ssh"), Service(21, "ftp", True))
SERVICES: Final[tuple[tuple[Service, ...], ...]] = (
    (Service(22, "ssh"), Service(53), Service(53), Service(68)),
    _LINUX_SSH,
    _ENTERPRISE_WINDOWS,
    _ENTERPRISE_WINDOWS,
    *[_LINUX_SSH] * 4,
    *[_USER_FTP] * 2,
    (Service(445, "smb", True), Service(139, "smb", True), Service(135), Service(3389, "rdp")),
    # SQL of User3 listens on 3389: red gets a BlueKeep option that always fails, and no SQL option
    (Service(80, "web"), Service(3389, "sql", True), Service(443, "web"), Service(25, "smtp", True)),
    (*_LINUX_SSH, Service(80, "web"), Service(3390, "sql", True), Service(443, "web"), Service(25, "smtp", True)),
)
WINDOWS: Final = hosts(ENTERPRISE1, ENTERPRISE2, USER0, USER1, USER2)
LINUX: Final = hosts(*range(NUM_HOSTS)) & ~WINDOWS
BRUTE_FORCEABLE: Final = hosts(*range(NUM_HOSTS)) & ~hosts(DEFENDER)

NO_ANSWER, GIVES_USER, GIVES_PRIVILEGED = range(3)


def _answer(host: int, exploit: int) -> int:
    """Result of an exploit on the genuine services of a host: nothing, a user session or a privileged session."""
    for service in SERVICES[host]:
        if service.port == PORTS[exploit] and service.kind == EXPLOIT_TYPES[exploit]:
            return GIVES_PRIVILEGED if service.privileged else GIVES_USER
    return NO_ANSWER


GENUINE_PORTS: Final = np.array([ports(*(service.port for service in SERVICES[h])) for h in range(NUM_HOSTS)])
GENUINE_ANSWER: Final = np.array([[_answer(h, e) for e in range(len(EXPLOITS))] for h in range(NUM_HOSTS)])

_NEXT_HOST = {USER1: ENTERPRISE1, USER2: ENTERPRISE1, USER3: ENTERPRISE0, USER4: ENTERPRISE0, ENTERPRISE2: OP_SERVER0}
REVEALED_BY: Final = np.array([hosts(_NEXT_HOST[h]) if h in _NEXT_HOST else 0 for h in range(NUM_HOSTS)])
"""Hosts whose addresses red learns by escalating on host h."""


class Decoy(NamedTuple):
    """A decoy service: the port it opens, the port that must be free, and the hosts it runs on."""

    name: str
    port: int
    checked: int
    runs_on: int


DECOYS: Final = (
    Decoy("Apache", 80, 80, WINDOWS | LINUX),
    Decoy("Femitter", 21, 21, WINDOWS),
    Decoy("HarakaSMPT", 25, 25, LINUX),
    Decoy("Smss", 139, 139, WINDOWS),
    Decoy("SSHD", 22, 22, WINDOWS | LINUX),
    Decoy("Svchost", 3389, 3389, WINDOWS),
    Decoy("Tomcat", 443, 443, WINDOWS | LINUX),
    Decoy("Vsftpd", 80, 21, LINUX),  # checks 21, opens 80: always succeeds on Linux, even twice
)
DECOY_PORT: Final = np.array([ports(decoy.port) for decoy in DECOYS])
DECOY_CHECKED: Final = np.array([ports(decoy.checked) for decoy in DECOYS])
DECOY_RUNS_ON: Final = np.array([decoy.runs_on for decoy in DECOYS])

GREEN_TARGETS: Final = np.array([USER0, USER1, USER2, USER3, USER4, ENTERPRISE0, ENTERPRISE1, ENTERPRISE2])

SLEEP, MONITOR, ANALYSE, REMOVE, DECOY = range(5)
RESTORE: Final = DECOY + len(DECOYS)
BLUE_VERBS: Final = ("Sleep", "Monitor", "Analyse", "Remove", *(f"Decoy{d.name}" for d in DECOYS), "Restore")
"""`DECOY + d` places `DECOYS[d]`."""

NUM_ACTIONS: Final = 2 + NUM_HOSTS * (len(BLUE_VERBS) - 2)
VERB_OF: Final = np.array([SLEEP, MONITOR] + [2 + i // NUM_HOSTS for i in range(NUM_ACTIONS - 2)])
HOST_OF: Final = np.array([NOWHERE, NOWHERE] + [i % NUM_HOSTS for i in range(NUM_ACTIONS - 2)])

RED_SLEEP, SWEEP, SCAN, EXPLOIT, ESCALATE, IMPACT = range(6)
RED_VERBS: Final = (
    *("Sleep", "DiscoverRemoteSystems", "DiscoverNetworkServices"),
    *("ExploitRemoteService", "PrivilegeEscalate", "Impact"),
)

YES, NO, UNKNOWN = 1, 0, -1
"""Success of an action; Sleep reports UNKNOWN."""


def flat_action(verb: int, host: int = NOWHERE) -> int:
    """Index of a blue verb on a host in the 145 actions; Sleep and Monitor take no host."""
    return verb if verb <= MONITOR else 2 + (verb - 2) * NUM_HOSTS + host


def action_name(action: int) -> str:
    """Readable name, such as `DecoyTomcat User2` for 116."""
    verb, host = BLUE_VERBS[VERB_OF[action]], HOST_OF[action]
    return verb if host == NOWHERE else f"{verb} {HOSTS[host]}"


ACTION_NAMES: Final = tuple(action_name(action) for action in range(NUM_ACTIONS))
