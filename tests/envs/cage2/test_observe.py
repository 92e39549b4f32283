"""What a log shows, rule by rule, in both tables, and how status lasts."""

from __future__ import annotations

import pytest

from optimist.envs.cage2.actions import DECOY, RESTORE, SCAN, flat_action
from optimist.envs.cage2.network import (
    DECOYS,
    ENTERPRISE0,
    ENTERPRISE1,
    ETERNAL_BLUE,
    FTP_TRAVERSAL,
    HTTPS_RFI,
    SSH_BRUTE_FORCE,
    USER1,
    USER2,
    ports,
)
from optimist.envs.cage2.observe import activity
from tests.envs.cage2.board import EXPLOITED, NO_STATUS, PRIVILEGED, QUIET, SCANNED, USER, Board

NAMES = ["None", "Scan", "Exploit"]
FEMITTER, SMSS, SSHD, TOMCAT = (
    DECOY + [d.name for d in DECOYS].index(name) for name in ("Femitter", "Smss", "SSHD", "Tomcat")
)


@pytest.mark.parametrize(
    ("serviced", "seen_ports", "events", "reverse", "official", "cardiff"),
    [
        (False, (), 0, False, "None", "None"),
        (True, (), 0, False, "None", "None"),  # a service entry alone
        (False, (22,), 1, False, "Scan", "Scan"),
        (False, (22, 21), 2, False, "Scan", "Scan"),
        (False, (80, 443, 25), 3, False, "Scan", "Scan"),
        (False, (21,), 2, True, "Exploit", "Exploit"),  # a detected shell
        (True, (21,), 2, True, "Exploit", "Exploit"),
        (False, (21, 22), 3, True, "Scan", "Scan"),  # three ports hide a simultaneous exploit
        (False, (22,), 10, False, "Exploit", "Exploit"),  # SSH brute force
        (False, (443,), 2, False, "Scan", "Scan"),  # a decoy was hit
        (True, (443,), 2, False, "Exploit", "Exploit"),  # ... in the step in which a decoy was placed
        (True, (22, 443), 2, False, "None", "Scan"),  # a small scan is hidden
        (True, (21,), 1, False, "None", "Scan"),  # an undetected shell is hidden
        (True, (22, 443, 80), 3, False, "Scan", "Scan"),
    ],
)
def test_activity(
    serviced: bool, seen_ports: tuple[int, ...], events: int, reverse: bool, official: str, cardiff: str
) -> None:
    log = (serviced, ports(*seen_ports), events, reverse)
    assert NAMES[activity(*log, False)] == official
    assert NAMES[activity(*log, True)] == cardiff


@pytest.mark.parametrize(("table", "shown"), [("official", QUIET), ("cardiff", SCANNED)])
def test_small_scan_beside_a_fresh_decoy_is_hidden_in_the_official_table(table: str, shown: tuple) -> None:
    board = Board(table=table).tell_red(SCAN, ENTERPRISE0)
    assert board.do(TOMCAT, ENTERPRISE0, target=ENTERPRISE0).activity(ENTERPRISE0) == shown


def test_hitting_a_decoy_in_the_step_it_is_placed_looks_like_an_exploit() -> None:
    board = Board()
    board.known_ports[USER2] = ports(139, 443)  # red remembers a Tomcat that is only now placed again
    board.exploit(USER2, HTTPS_RFI, blue=flat_action(TOMCAT, USER2))
    assert board.activity(USER2) == EXPLOITED


def test_greens_scan_hides_an_exploit_on_the_same_host() -> None:
    assert Board().exploit(ENTERPRISE1, HTTPS_RFI, green=ENTERPRISE1).activity(ENTERPRISE1) == SCANNED
    assert Board().exploit(ENTERPRISE1, SSH_BRUTE_FORCE, green=ENTERPRISE1).activity(ENTERPRISE1) == SCANNED
    ssh = Board().exploit(ENTERPRISE0, SSH_BRUTE_FORCE, green=ENTERPRISE0)
    assert ssh.activity(ENTERPRISE0) == EXPLOITED  # its only port is the same one
    assert ssh.status(ENTERPRISE0) == USER


def test_red_and_green_show_on_their_own_hosts() -> None:
    board = Board().exploit(USER1, FTP_TRAVERSAL, green=ENTERPRISE1)
    assert (board.activity(USER1), board.activity(ENTERPRISE1)) == (EXPLOITED, SCANNED)
    assert (board.status(USER1), board.status(ENTERPRISE1)) == (USER, NO_STATUS)


def test_activity_lasts_one_step_and_status_stays() -> None:
    board = Board().exploit(USER1, FTP_TRAVERSAL, green=ENTERPRISE1).calm().step()
    assert (board.activity(USER1), board.activity(ENTERPRISE1)) == (QUIET, QUIET)
    assert board.status(USER1) == USER


def test_exploit_alarm_lowers_privileged_to_user() -> None:
    assert Board().set_status(USER2, PRIVILEGED).exploit(USER2, ETERNAL_BLUE).status(USER2) == USER


def test_alarm_after_a_restore_of_the_same_step_counts() -> None:
    board = Board().exploit(USER1, FTP_TRAVERSAL, blue=flat_action(RESTORE, USER1))
    assert board.status(USER1) == USER
    assert board.reward == -1.1  # red is back, privileged, in the same step
