"""Activity and status from the log of a step, in both tables."""

from __future__ import annotations

import pytest
from scripted_game import EXPLOITED, NO_STATUS, PRIVILEGED, QUIET, SCANNED, USER, ScriptedGame

from cage2.rules.blue import activity
from cage2.rules.scenario import (
    DECOY,
    DECOYS,
    ENTERPRISE0,
    ENTERPRISE1,
    ETERNAL_BLUE,
    FTP_TRAVERSAL,
    HTTPS_RFI,
    RESTORE,
    SCAN,
    SSH_BRUTE_FORCE,
    USER1,
    USER2,
    flat_action,
    ports,
)

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
def test_small_scan_with_a_new_decoy_is_hidden_in_the_official_table(table: str, shown: tuple) -> None:
    game = ScriptedGame(table=table).set_red_action(SCAN, ENTERPRISE0)
    assert game.do(TOMCAT, ENTERPRISE0, target=ENTERPRISE0).activity(ENTERPRISE0) == shown


def test_exploit_of_a_decoy_placed_in_the_same_step_shows_as_exploit() -> None:
    game = ScriptedGame()
    game.known_ports[USER2] = ports(139, 443)  # red remembers a Tomcat that is only now placed again
    game.exploit(USER2, HTTPS_RFI, blue=flat_action(TOMCAT, USER2))
    assert game.activity(USER2) == EXPLOITED


def test_greens_scan_hides_an_exploit_on_the_same_host() -> None:
    assert ScriptedGame().exploit(ENTERPRISE1, HTTPS_RFI, green=ENTERPRISE1).activity(ENTERPRISE1) == SCANNED
    assert ScriptedGame().exploit(ENTERPRISE1, SSH_BRUTE_FORCE, green=ENTERPRISE1).activity(ENTERPRISE1) == SCANNED
    ssh = ScriptedGame().exploit(ENTERPRISE0, SSH_BRUTE_FORCE, green=ENTERPRISE0)
    assert ssh.activity(ENTERPRISE0) == EXPLOITED  # its only port is the same one
    assert ssh.status(ENTERPRISE0) == USER


def test_activity_of_red_and_green_shows_on_their_target_hosts() -> None:
    game = ScriptedGame().exploit(USER1, FTP_TRAVERSAL, green=ENTERPRISE1)
    assert (game.activity(USER1), game.activity(ENTERPRISE1)) == (EXPLOITED, SCANNED)
    assert (game.status(USER1), game.status(ENTERPRISE1)) == (USER, NO_STATUS)


def test_activity_lasts_one_step_and_status_is_kept() -> None:
    game = ScriptedGame().exploit(USER1, FTP_TRAVERSAL, green=ENTERPRISE1).stop_red().step()
    assert (game.activity(USER1), game.activity(ENTERPRISE1)) == (QUIET, QUIET)
    assert game.status(USER1) == USER


def test_exploit_alarm_lowers_privileged_to_user() -> None:
    assert ScriptedGame().set_status(USER2, PRIVILEGED).exploit(USER2, ETERNAL_BLUE).status(USER2) == USER


def test_alarm_after_a_restore_of_the_same_step_counts() -> None:
    game = ScriptedGame().exploit(USER1, FTP_TRAVERSAL, blue=flat_action(RESTORE, USER1))
    assert game.status(USER1) == USER
    assert game.reward == -1.1  # red is back, privileged, in the same step
