"""The network of Scenario2 as named constants: hosts, subnets, services, decoys, exploits and host values.

Sets of hosts and sets of ports are integers, one bit each: bit h stands for `HOSTS[h]`, bit p for `PORTS[p]`.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

HOSTS: Final = (
    "Defender",
    "Enterprise0",
    "Enterprise1",
    "Enterprise2",
    "Op_Host0",
    "Op_Host1",
    "Op_Host2",
    "Op_Server0",
    "User0",
    "User1",
    "User2",
    "User3",
    "User4",
)
NUM_HOSTS: Final = len(HOSTS)
NOWHERE: Final = NUM_HOSTS
"""Stands for "no host" where a host index is expected."""
DEFENDER, ENTERPRISE0, ENTERPRISE1, ENTERPRISE2, OP_HOST0, OP_HOST1, OP_HOST2, OP_SERVER0 = range(8)
USER0, USER1, USER2, USER3, USER4 = range(8, 13)

SUBNETS: Final = ("Enterprise", "Operational", "User")
"""In the order in which Meander sweeps them."""
ENTERPRISE, OPERATIONAL, USER = range(3)


def hosts(*indices: int) -> int:
    """The set of these hosts, bit h for host h."""
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
"""Operational is reachable only while red holds a session on one of these; Defender does not count."""

WORTH_ONE: Final = hosts(ENTERPRISE0, ENTERPRISE1, ENTERPRISE2, OP_SERVER0)
WORTH_A_TENTH: Final = hosts(USER1, USER2, USER3, USER4, OP_HOST0, OP_HOST1, OP_HOST2, DEFENDER)

EXPLOITS: Final = (
    "SSHBruteForce",
    "BlueKeep",
    "EternalBlue",
    "HTTPRFI",
    "HTTPSRFI",
    "SQLInjection",
    "HarakaRCE",
    "FTPDirectoryTraversal",
)
"""In order of rising weight, so that the option of highest weight is the highest bit."""
NO_EXPLOIT: Final = len(EXPLOITS)
SSH_BRUTE_FORCE, BLUE_KEEP, ETERNAL_BLUE, HTTP_RFI, HTTPS_RFI, SQL_INJECTION, HARAKA_RCE, FTP_TRAVERSAL = range(8)
EXPLOIT_TYPES: Final = ("ssh", "rdp", "smb", "web", "web", "sql", "smtp", "ftp")

PORTS: Final = (22, 3389, 139, 80, 443, 3390, 25, 21, 53, 68, 135, 445)
"""Exploit e strikes at port `PORTS[e]`; no exploit knows the last four."""


def ports(*numbers: int) -> int:
    """The set of these ports, bit p for `PORTS[p]`."""
    return sum(1 << PORTS.index(n) for n in set(numbers))


ALL_OPTIONS: Final = (1 << len(EXPLOITS)) - 1
WEB_PORTS: Final = ports(80, 443)
"""SQLInjection is offered only beside one of these."""
HIGHEST_BIT: Final = np.array([max(n.bit_length() - 1, 0) for n in range(1 << len(EXPLOITS))])


class Service(NamedTuple):
    """A genuine listening service: what an exploit looks for, and whether the session it gives is privileged."""

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
    _LINUX_SSH,
    _LINUX_SSH,
    _LINUX_SSH,
    _LINUX_SSH,
    _USER_FTP,
    _USER_FTP,
    (Service(445, "smb", True), Service(139, "smb", True), Service(135), Service(3389, "rdp")),
    # User3's SQL listens on 3389: red sees a BlueKeep option that always fails, and no SQL option
    (Service(80, "web"), Service(3389, "sql", True), Service(443, "web"), Service(25, "smtp", True)),
    (
        Service(22, "ssh"),
        Service(80, "web"),
        Service(3390, "sql", True),
        Service(443, "web"),
        Service(25, "smtp", True),
    ),
)
WINDOWS: Final = hosts(ENTERPRISE1, ENTERPRISE2, USER0, USER1, USER2)
LINUX: Final = hosts(*range(NUM_HOSTS)) & ~WINDOWS
BRUTE_FORCEABLE: Final = hosts(*range(NUM_HOSTS)) & ~hosts(DEFENDER)

NO_ANSWER, GIVES_USER, GIVES_PRIVILEGED = range(3)


def _answer(host: int, exploit: int) -> int:
    """What the genuine services of a host give to an exploit: nothing, a user session or a privileged one."""
    for service in SERVICES[host]:
        if service.port == PORTS[exploit] and service.kind == EXPLOIT_TYPES[exploit]:
            return GIVES_PRIVILEGED if service.privileged else GIVES_USER
    return NO_ANSWER


GENUINE_PORTS: Final = np.array([ports(*(service.port for service in SERVICES[h])) for h in range(NUM_HOSTS)])
GENUINE_ANSWER: Final = np.array([[_answer(h, e) for e in range(len(EXPLOITS))] for h in range(NUM_HOSTS)])

REVEALED_BY: Final = np.array(
    [
        {
            USER1: hosts(ENTERPRISE1),
            USER2: hosts(ENTERPRISE1),
            USER3: hosts(ENTERPRISE0),
            USER4: hosts(ENTERPRISE0),
            ENTERPRISE2: hosts(OP_SERVER0),
        }.get(h, 0)
        for h in range(NUM_HOSTS)
    ]
)
"""Whose address red reads on a host once it has escalated there."""


class Decoy(NamedTuple):
    """A decoy service: the port it opens, the port that must be free, and where it can run."""

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
    Decoy("Vsftpd", 80, 21, LINUX),  # checks 21, opens 80: on Linux it always succeeds, again and again
)
DECOY_PORT: Final = np.array([ports(decoy.port) for decoy in DECOYS])
DECOY_CHECKED: Final = np.array([ports(decoy.checked) for decoy in DECOYS])
DECOY_RUNS_ON: Final = np.array([decoy.runs_on for decoy in DECOYS])

GREEN_TARGETS: Final = np.array([USER0, USER1, USER2, USER3, USER4, ENTERPRISE0, ENTERPRISE1, ENTERPRISE2])
