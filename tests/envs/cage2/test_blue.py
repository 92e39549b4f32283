"""Blue's actions by hand, quirks included."""

from __future__ import annotations

import pytest

from optimist.envs.cage2.actions import ANALYSE, DECOY, ESCALATE, MONITOR, NO, REMOVE, RESTORE, SLEEP, YES
from optimist.envs.cage2.actions import UNKNOWN as NOT_TOLD
from optimist.envs.cage2.network import (
    DECOYS,
    ENTERPRISE0,
    ENTERPRISE1,
    FTP_TRAVERSAL,
    HTTPS_RFI,
    OP_SERVER0,
    SSH_BRUTE_FORCE,
    USER0,
    USER1,
    USER2,
    USER3,
    ports,
)
from optimist.envs.cage2.state import decoys_of
from tests.envs.cage2.board import NO_STATUS, PRIVILEGED, QUIET, UNKNOWN, USER, Board

APACHE, FEMITTER, HARAKA, SMSS, SSHD, SVCHOST, TOMCAT, VSFTPD = (DECOY + d for d in range(len(DECOYS)))


def test_sleep_and_monitor_change_nothing_but_what_they_report() -> None:
    before = Board()
    slept, monitored = Board().do(SLEEP), Board().do(MONITOR)
    assert (slept.blue_success, monitored.blue_success) == (NOT_TOLD, YES)
    for name in ("held", "owned", "malware", "seen", "decoy_ports"):
        assert (getattr(slept, name) == getattr(before, name)).all()
        assert (getattr(monitored, name) == getattr(before, name)).all()


def test_analyse_finds_the_file_of_a_user_level_shell() -> None:
    board = Board().exploit(ENTERPRISE1, HTTPS_RFI)
    assert board.sessions(ENTERPRISE1) == (0, 1, 0)
    assert board.calm().do(ANALYSE, ENTERPRISE1).status(ENTERPRISE1) == PRIVILEGED


def test_analyse_finds_nothing_after_ssh_and_clears_nothing() -> None:
    board = Board().exploit(ENTERPRISE1, SSH_BRUTE_FORCE)
    assert board.status(ENTERPRISE1) == USER
    board.calm()
    assert board.do(ANALYSE, ENTERPRISE1).status(ENTERPRISE1) == USER
    assert board.blue_success == YES


def test_analyse_still_finds_the_file_after_remove() -> None:
    board = Board().exploit(ENTERPRISE1, HTTPS_RFI)
    board.calm()
    board.do(REMOVE, ENTERPRISE1)
    assert board.sessions(ENTERPRISE1) == (0, 0, 0)
    assert board.status(ENTERPRISE1) == UNKNOWN
    assert board.do(ANALYSE, ENTERPRISE1).status(ENTERPRISE1) == PRIVILEGED


def test_analyse_does_not_see_a_file_dropped_in_the_same_step() -> None:
    board = Board().exploit(USER1, FTP_TRAVERSAL, blue=2 + USER1)
    assert board.has("malware", USER1)
    assert board.status(USER1) == USER  # the alarm, not the file


def test_analyse_answer_outlasts_an_exploit_alarm_of_the_same_step() -> None:
    board = Board()
    board.malware = 1 << USER1
    assert board.exploit(USER1, FTP_TRAVERSAL, blue=2 + USER1).status(USER1) == PRIVILEGED


def test_remove_kills_flagged_user_sessions_only() -> None:
    board = Board().hold(USER1, plain=2, flagged=3, privileged=1).do(REMOVE, USER1)
    assert board.sessions(USER1) == (2, 0, 1)
    assert board.has("held", USER1)
    assert Board().hold(USER1, flagged=1).do(REMOVE, USER1).held == 1 << USER0


@pytest.mark.parametrize(("before", "after"), [(NO_STATUS, NO_STATUS), (USER, UNKNOWN), (PRIVILEGED, UNKNOWN)])
def test_remove_makes_a_status_unknown_whatever_it_killed(before: tuple, after: tuple) -> None:
    board = Board().set_status(USER2, before).do(REMOVE, USER2)
    assert board.status(USER2) == after
    assert board.blue_success == YES


def test_restore_clears_everything_but_what_red_remembers() -> None:
    board = Board().hold(USER1, plain=1, flagged=1, privileged=1).set_status(USER1, PRIVILEGED)
    board.malware = 1 << USER1
    board.known_ports[USER1] = ports(21, 22, 80)
    board.do(APACHE, USER1).do(RESTORE, USER1)
    assert board.sessions(USER1) == (0, 0, 0)
    assert not board.has("held", USER1)
    assert not board.has("owned", USER1)
    assert board.malware == 0
    assert board.decoy_ports[USER1] == 0
    assert board.decoy_list[USER1] == 0
    assert board.status(USER1) == NO_STATUS
    assert board.known_ports[USER1] == ports(21, 22, 80)
    assert board.reward == -1.0


def test_restore_of_user0_keeps_reds_first_session() -> None:
    board = Board().hold(USER0, plain=2, flagged=1, privileged=3).do(RESTORE, USER0)
    assert board.sessions(USER0) == (0, 0, 1)
    assert board.held == board.owned == 1 << USER0


def test_restore_of_op_server_brings_ot_service_back_unkillable() -> None:
    board = Board()
    board.ot_running, board.ot_active = False, False
    board.do(RESTORE, OP_SERVER0)
    assert (board.ot_running, board.ot_active, board.ot_killable) == (True, True, False)


def test_decoy_is_refused_when_its_port_is_taken_or_the_system_does_not_suit() -> None:
    assert Board().do(SSHD, USER1).blue_success == NO  # 22 is genuine
    assert Board().do(FEMITTER, ENTERPRISE0).blue_success == NO  # Windows only
    twice = Board().do(TOMCAT, USER2).do(TOMCAT, USER2)
    assert twice.blue_success == NO
    assert decoys_of(twice._game, 0) == {"User2": ["Tomcat"]}


def test_vsftpd_opens_80_checks_21_and_stacks_without_limit() -> None:
    board = Board()
    for _ in range(20):
        assert board.do(VSFTPD, USER3).blue_success == YES  # beside a genuine service on 80
    assert board.decoy_ports[USER3] == ports(80)
    assert decoys_of(board._game, 0) == {"User3": ["Vsftpd"] * 16}  # the last 16


def test_apache_is_refused_once_vsftpd_is_there_but_not_the_other_way_round() -> None:
    board = Board().do(VSFTPD, ENTERPRISE0).do(APACHE, ENTERPRISE0)
    assert board.blue_success == NO
    board = Board().do(APACHE, ENTERPRISE0).do(HARAKA, ENTERPRISE0).do(VSFTPD, ENTERPRISE0)
    assert decoys_of(board._game, 0) == {"Enterprise0": ["Apache", "HarakaSMPT", "Vsftpd"]}


def test_placing_a_decoy_shows_nothing() -> None:
    for table in ("official", "cardiff"):
        assert Board(table=table).do(TOMCAT, USER2).activity(USER2) == QUIET


def test_remove_does_not_touch_a_session_that_was_escalated() -> None:
    board = Board().hold(USER1, flagged=1).tell_red(ESCALATE, USER1).step(target=USER1)
    assert board.sessions(USER1) == (0, 0, 1)
    board.calm()
    assert board.do(REMOVE, USER1).sessions(USER1) == (0, 0, 1)
