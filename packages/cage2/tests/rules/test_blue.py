"""Blue's actions by hand, with the quirks of the original."""

from __future__ import annotations

import pytest
from scripted_game import NO_STATUS, PRIVILEGED, QUIET, UNKNOWN, USER, ScriptedGame

from cage2.rules.scenario import (
    ANALYSE,
    DECOY,
    DECOYS,
    ENTERPRISE0,
    ENTERPRISE1,
    ESCALATE,
    FTP_TRAVERSAL,
    HTTPS_RFI,
    MONITOR,
    NO,
    OP_SERVER0,
    REMOVE,
    RESTORE,
    SLEEP,
    SSH_BRUTE_FORCE,
    USER0,
    USER1,
    USER2,
    USER3,
    YES,
    ports,
)
from cage2.rules.scenario import UNKNOWN as UNKNOWN_SUCCESS
from cage2.rules.state import decoys_of

APACHE, FEMITTER, HARAKA, SMSS, SSHD, SVCHOST, TOMCAT, VSFTPD = (DECOY + d for d in range(len(DECOYS)))


def test_sleep_and_monitor_change_only_the_reported_success() -> None:
    before = ScriptedGame()
    slept, monitored = ScriptedGame().do(SLEEP), ScriptedGame().do(MONITOR)
    assert (slept.blue_success, monitored.blue_success) == (UNKNOWN_SUCCESS, YES)
    for name in ("held", "owned", "malware", "seen", "decoy_ports"):
        assert (getattr(slept, name) == getattr(before, name)).all()
        assert (getattr(monitored, name) == getattr(before, name)).all()


def test_analyse_finds_the_file_of_a_user_level_shell() -> None:
    game = ScriptedGame().exploit(ENTERPRISE1, HTTPS_RFI)
    assert game.sessions(ENTERPRISE1) == (0, 1, 0)
    assert game.stop_red().do(ANALYSE, ENTERPRISE1).status(ENTERPRISE1) == PRIVILEGED


def test_analyse_finds_nothing_after_ssh_and_clears_nothing() -> None:
    game = ScriptedGame().exploit(ENTERPRISE1, SSH_BRUTE_FORCE)
    assert game.status(ENTERPRISE1) == USER
    game.stop_red()
    assert game.do(ANALYSE, ENTERPRISE1).status(ENTERPRISE1) == USER
    assert game.blue_success == YES


def test_analyse_still_finds_the_file_after_remove() -> None:
    game = ScriptedGame().exploit(ENTERPRISE1, HTTPS_RFI)
    game.stop_red()
    game.do(REMOVE, ENTERPRISE1)
    assert game.sessions(ENTERPRISE1) == (0, 0, 0)
    assert game.status(ENTERPRISE1) == UNKNOWN
    assert game.do(ANALYSE, ENTERPRISE1).status(ENTERPRISE1) == PRIVILEGED


def test_analyse_does_not_find_a_file_created_in_the_same_step() -> None:
    game = ScriptedGame().exploit(USER1, FTP_TRAVERSAL, blue=2 + USER1)
    assert game.has("malware", USER1)
    assert game.status(USER1) == USER  # the alarm, not the file


def test_analyse_status_replaces_an_exploit_alarm_of_the_same_step() -> None:
    game = ScriptedGame()
    game.malware = 1 << USER1
    assert game.exploit(USER1, FTP_TRAVERSAL, blue=2 + USER1).status(USER1) == PRIVILEGED


def test_remove_kills_flagged_user_sessions_only() -> None:
    game = ScriptedGame().hold(USER1, plain=2, flagged=3, privileged=1).do(REMOVE, USER1)
    assert game.sessions(USER1) == (2, 0, 1)
    assert game.has("held", USER1)
    assert ScriptedGame().hold(USER1, flagged=1).do(REMOVE, USER1).held == 1 << USER0


@pytest.mark.parametrize(("before", "after"), [(NO_STATUS, NO_STATUS), (USER, UNKNOWN), (PRIVILEGED, UNKNOWN)])
def test_remove_makes_a_status_unknown_even_without_a_kill(before: tuple, after: tuple) -> None:
    game = ScriptedGame().set_status(USER2, before).do(REMOVE, USER2)
    assert game.status(USER2) == after
    assert game.blue_success == YES


def test_restore_clears_everything_except_reds_memory() -> None:
    game = ScriptedGame().hold(USER1, plain=1, flagged=1, privileged=1).set_status(USER1, PRIVILEGED)
    game.malware = 1 << USER1
    game.known_ports[USER1] = ports(21, 22, 80)
    game.do(APACHE, USER1).do(RESTORE, USER1)
    assert game.sessions(USER1) == (0, 0, 0)
    assert not game.has("held", USER1)
    assert not game.has("owned", USER1)
    assert game.malware == 0
    assert game.decoy_ports[USER1] == 0
    assert game.decoy_list[USER1] == 0
    assert game.status(USER1) == NO_STATUS
    assert game.known_ports[USER1] == ports(21, 22, 80)
    assert game.reward == -1.0


def test_restore_of_user0_keeps_reds_first_session() -> None:
    game = ScriptedGame().hold(USER0, plain=2, flagged=1, privileged=3).do(RESTORE, USER0)
    assert game.sessions(USER0) == (0, 0, 1)
    assert game.held == game.owned == 1 << USER0


def test_restore_of_op_server_restarts_ot_service_unkillable() -> None:
    game = ScriptedGame()
    game.ot_running, game.ot_active = False, False
    game.do(RESTORE, OP_SERVER0)
    assert (game.ot_running, game.ot_active, game.ot_killable) == (True, True, False)


def test_decoy_is_refused_if_its_port_is_in_use_or_the_system_does_not_match() -> None:
    assert ScriptedGame().do(SSHD, USER1).blue_success == NO  # 22 is genuine
    assert ScriptedGame().do(FEMITTER, ENTERPRISE0).blue_success == NO  # Windows only
    twice = ScriptedGame().do(TOMCAT, USER2).do(TOMCAT, USER2)
    assert twice.blue_success == NO
    assert decoys_of(twice._game, 0) == {"User2": ["Tomcat"]}


def test_vsftpd_opens_80_checks_21_and_can_be_repeated() -> None:
    game = ScriptedGame()
    for _ in range(20):
        assert game.do(VSFTPD, USER3).blue_success == YES  # in spite of the genuine service on 80
    assert game.decoy_ports[USER3] == ports(80)
    assert decoys_of(game._game, 0) == {"User3": ["Vsftpd"] * 16}  # the last 16


def test_apache_is_refused_after_vsftpd_but_vsftpd_is_placed_after_apache() -> None:
    game = ScriptedGame().do(VSFTPD, ENTERPRISE0).do(APACHE, ENTERPRISE0)
    assert game.blue_success == NO
    game = ScriptedGame().do(APACHE, ENTERPRISE0).do(HARAKA, ENTERPRISE0).do(VSFTPD, ENTERPRISE0)
    assert decoys_of(game._game, 0) == {"Enterprise0": ["Apache", "HarakaSMPT", "Vsftpd"]}


def test_placing_a_decoy_shows_nothing() -> None:
    for table in ("official", "cardiff"):
        assert ScriptedGame(table=table).do(TOMCAT, USER2).activity(USER2) == QUIET


def test_remove_does_not_touch_a_session_that_was_escalated() -> None:
    game = ScriptedGame().hold(USER1, flagged=1).set_red_action(ESCALATE, USER1).step(target=USER1)
    assert game.sessions(USER1) == (0, 0, 1)
    game.stop_red()
    assert game.do(REMOVE, USER1).sessions(USER1) == (0, 0, 1)
