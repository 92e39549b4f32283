"""Red's actions by hand: events, sessions, files, knowledge, and the odds of what is drawn."""

from __future__ import annotations

import numpy as np
import pytest

from optimist.envs.cage2.actions import DECOY, ESCALATE, EXPLOIT, IMPACT, NO, RESTORE, SCAN, SWEEP, YES
from optimist.envs.cage2.env import CageVectorEnv
from optimist.envs.cage2.network import (
    BLUE_KEEP,
    DECOYS,
    DEFENDER,
    ENTERPRISE,
    ENTERPRISE0,
    ENTERPRISE1,
    ENTERPRISE2,
    ETERNAL_BLUE,
    FTP_TRAVERSAL,
    GENUINE_PORTS,
    HARAKA_RCE,
    HTTP_RFI,
    HTTPS_RFI,
    NO_EXPLOIT,
    NOWHERE,
    OP_HOST0,
    OP_SERVER0,
    OPERATIONAL,
    SQL_INJECTION,
    SSH_BRUTE_FORCE,
    SUBNET_HOSTS,
    USER,
    USER0,
    USER1,
    USER2,
    USER3,
    USER4,
    hosts,
    ports,
)
from optimist.envs.cage2.state import SLEEPER
from tests.envs.cage2.board import EVERYTHING, EXPLOITED, QUIET, SCANNED, Board, gateway

APACHE, FEMITTER, HARAKA, SMSS, SSHD, SVCHOST, TOMCAT, VSFTPD = (DECOY + d for d in range(len(DECOYS)))


# -- looking around


def test_sweep_teaches_the_addresses_of_a_subnet_and_shows_nothing() -> None:
    board = Board()
    board.known_addresses = 0
    board.tell_red(SWEEP, ENTERPRISE)
    board.known_addresses = hosts(USER0)
    board.step()
    assert board.known_addresses == SUBNET_HOSTS[ENTERPRISE] | hosts(USER0)
    assert not board.seen["bits"].any()


def test_operational_is_reachable_only_through_enterprise0_to_2() -> None:
    for host in (DEFENDER, USER1, OP_SERVER0):
        board = Board().hold(host, privileged=1).tell_red(SWEEP, OPERATIONAL).step()
        assert board.red_success == NO, host
    for host in (ENTERPRISE0, ENTERPRISE1, ENTERPRISE2):
        assert Board().hold(host, plain=1).tell_red(SWEEP, OPERATIONAL).step().red_success == YES


def test_blue_can_cut_the_way_to_operational_in_the_same_step() -> None:
    board = gateway(Board()).tell_red(SWEEP, OPERATIONAL)
    assert board.do(RESTORE, ENTERPRISE0).red_success == NO


def test_scan_out_of_reach_reports_success_but_teaches_and_shows_nothing() -> None:
    board = Board().tell_red(SCAN, OP_SERVER0)
    board.known_ports[OP_SERVER0] = ports(25)
    board.step(target=OP_SERVER0)
    assert board.red_success == YES
    assert board.known_ports[OP_SERVER0] == ports(25)
    assert board.activity(OP_SERVER0) == QUIET


def test_scan_of_a_host_with_one_port_shows_as_scan() -> None:
    board = Board().tell_red(SCAN, ENTERPRISE0).step(target=ENTERPRISE0)
    assert board.activity(ENTERPRISE0) == SCANNED
    assert board.known_ports[ENTERPRISE0] == ports(22)


@pytest.mark.parametrize(("rules", "remembered"), [("final", ports(22)), ("competition", ports(22, 443))])
def test_scan_replaces_reds_memory_or_adds_to_it(rules: str, remembered: int) -> None:
    board = Board(rules=rules)
    board.known_ports[ENTERPRISE0] = ports(443)  # of a decoy that has been wiped since
    board.tell_red(SCAN, ENTERPRISE0).step(target=ENTERPRISE0)
    assert board.known_ports[ENTERPRISE0] == remembered


def test_scan_sees_decoys() -> None:
    board = Board().do(TOMCAT, ENTERPRISE0).tell_red(SCAN, ENTERPRISE0).step(target=ENTERPRISE0)
    assert board.known_ports[ENTERPRISE0] == ports(22, 443)


# -- exploiting


def test_exploit_without_remembered_ports_fails_silently() -> None:
    board = Board().tell_red(EXPLOIT, USER1).step(target=USER1)
    assert (board.red_success, board.red_exploit, board.activity(USER1)) == (NO, NO_EXPLOIT, QUIET)


def test_exploit_out_of_reach_fails_silently_after_its_draw() -> None:
    board = Board().exploit(OP_HOST0, SSH_BRUTE_FORCE)
    assert (board.red_success, board.red_exploit, board.activity(OP_HOST0)) == (NO, SSH_BRUTE_FORCE, QUIET)
    assert gateway(Board()).exploit(OP_HOST0, SSH_BRUTE_FORCE).red_success == YES


@pytest.mark.parametrize(
    ("host", "exploit", "privileged"),
    [
        (USER1, FTP_TRAVERSAL, True),
        (USER0, FTP_TRAVERSAL, True),
        (USER2, ETERNAL_BLUE, True),
        (USER2, BLUE_KEEP, False),
        (USER3, HARAKA_RCE, True),
        (USER3, HTTP_RFI, False),
        (USER3, HTTPS_RFI, False),
        (USER4, SQL_INJECTION, True),
        (USER4, HARAKA_RCE, True),
        (ENTERPRISE1, HTTPS_RFI, False),
        (ENTERPRISE2, BLUE_KEEP, True),
    ],
)
def test_reverse_shell_gives_the_privilege_of_its_service(host: int, exploit: int, privileged: bool) -> None:
    board = Board()
    before = board.sessions(host)
    board.exploit(host, exploit)
    after = board.sessions(host)
    assert (after[1] - before[1], after[2] - before[2]) == ((0, 1) if privileged else (1, 0))
    assert board.red_success == YES
    assert board.has("malware", host)
    assert board.activity(host) == EXPLOITED
    assert board.shell_host == host


def test_undetected_shell_shows_as_scan_and_is_never_flagged() -> None:
    board = Board().exploit(ENTERPRISE1, HTTPS_RFI, detected=False)
    assert board.sessions(ENTERPRISE1) == (1, 0, 0)
    assert board.has("malware", ENTERPRISE1)
    assert board.activity(ENTERPRISE1) == SCANNED
    assert board.shell_host == NOWHERE


def test_ssh_gives_an_unflagged_user_session_without_a_file() -> None:
    board = Board().exploit(USER4, SSH_BRUTE_FORCE)
    assert board.sessions(USER4) == (1, 0, 0)
    assert not board.has("malware", USER4)
    assert board.activity(USER4) == EXPLOITED  # 11 events on one port
    assert board.shell_host == NOWHERE


def test_ssh_on_defender_or_on_a_decoy_fails_loudly() -> None:
    board = Board().exploit(DEFENDER, SSH_BRUTE_FORCE)
    assert (board.red_success, board.activity(DEFENDER)) == (NO, EXPLOITED)
    board = Board().do(SSHD, USER3).exploit(USER3, SSH_BRUTE_FORCE)
    assert (board.red_success, board.activity(USER3)) == (NO, EXPLOITED)


def test_decoy_catches_an_exploit_and_shows_as_scan() -> None:
    board = Board().do(TOMCAT, USER2).exploit(USER2, HTTPS_RFI)
    assert (board.red_success, board.activity(USER2)) == (NO, SCANNED)
    assert board.sessions(USER2) == (0, 0, 0)


def test_genuine_service_answers_before_a_decoy_on_its_port() -> None:
    assert Board().do(VSFTPD, USER3).exploit(USER3, HTTP_RFI).red_success == YES


@pytest.mark.parametrize(("host", "exploit"), [(ENTERPRISE1, ETERNAL_BLUE), (USER3, BLUE_KEEP)])
def test_option_that_finds_no_service_fails_silently(host: int, exploit: int) -> None:
    board = Board().exploit(host, exploit)
    assert (board.red_success, board.red_exploit, board.activity(host)) == (NO, exploit, QUIET)


def test_port_of_a_wiped_decoy_is_still_tried_in_vain() -> None:
    board = Board()
    board.known_ports[ENTERPRISE0] = ports(22, 25)
    board.exploit(ENTERPRISE0, HARAKA_RCE)
    assert (board.red_success, board.activity(ENTERPRISE0)) == (NO, QUIET)


def test_sql_is_offered_only_beside_a_web_port() -> None:
    board = Board()
    board.known_ports[USER4] = ports(22, 3390)
    assert board.exploit(USER4, SQL_INJECTION).red_exploit == SSH_BRUTE_FORCE


@pytest.mark.parametrize(("rules", "success"), [("final", YES), ("competition", NO)])
def test_haraka_breaks_after_restore_in_the_competition_rules(rules: str, success: int) -> None:
    board = Board(rules=rules).do(RESTORE, USER3).exploit(USER3, HARAKA_RCE)
    assert board.red_success == success
    assert board.activity(USER3) == (EXPLOITED if success else SCANNED)  # one event all the same
    assert board.has("malware", USER3) == bool(success)
    assert Board(rules=rules).do(RESTORE, USER4).exploit(USER3, HARAKA_RCE).red_success == YES


def test_exploiting_a_held_host_adds_a_session() -> None:
    board = Board().hold(USER1, privileged=1).exploit(USER1, FTP_TRAVERSAL).exploit(USER1, SSH_BRUTE_FORCE)
    assert board.sessions(USER1) == (1, 0, 2)


# -- escalating and impact


def test_escalation_needs_a_session() -> None:
    assert Board().tell_red(ESCALATE, USER1).step(target=USER1).red_success == NO


def test_escalation_of_a_privileged_host_changes_nothing_but_succeeds() -> None:
    board = Board().hold(USER1, plain=2, privileged=1).tell_red(ESCALATE, USER1).step(target=USER1)
    assert (board.red_success, board.sessions(USER1)) == (YES, (2, 0, 1))
    assert not board.has("malware", USER1)


@pytest.mark.parametrize(("left", "after"), [(1, (1, 1, 1)), (2, (0, 2, 1))])
def test_escalation_takes_the_session_that_the_record_says(left: int, after: tuple) -> None:
    board = Board().hold(USER1, plain=1, flagged=2).tell_red(ESCALATE, USER1).step(target=USER1, flagged=left)
    assert board.sessions(USER1) == after
    assert board.has("malware", USER1)
    assert board.activity(USER1) == QUIET


@pytest.mark.parametrize(
    ("host", "address"),
    [(USER1, ENTERPRISE1), (USER2, ENTERPRISE1), (USER3, ENTERPRISE0), (USER4, ENTERPRISE0), (ENTERPRISE2, OP_SERVER0)],
)
def test_escalation_reveals_the_next_host(host: int, address: int) -> None:
    board = Board().hold(host, plain=1).tell_red(ESCALATE, host)
    board.known_addresses = board.scanned = 0
    board.known_subnets = board.swept = 0
    board.step(target=host)
    assert board.known_addresses == hosts(host, address)
    assert board.known_subnets == 1 << (ENTERPRISE if host == ENTERPRISE2 else USER)


def test_impact_needs_a_session_and_knowledge() -> None:
    assert Board().tell_red(IMPACT).step().red_success == NO
    assert Board().hold(OP_SERVER0, privileged=1).tell_red(IMPACT).step().red_success == NO
    board = Board().hold(OP_SERVER0, plain=1).tell_red(ESCALATE, OP_SERVER0).step(target=OP_SERVER0)
    assert board.knows_ot
    assert board.tell_red(IMPACT).step().red_success == YES
    assert not board.ot_running


def test_stopped_service_costs_ten_at_every_step_until_op_server_is_restored() -> None:
    board = Board().hold(OP_SERVER0, privileged=1)
    board.knows_ot = True
    assert board.tell_red(IMPACT).step().reward == -11.0
    assert board.calm().step().reward == -11.0
    assert board.do(RESTORE, OP_SERVER0).reward == -1.0


def test_impact_after_a_restore_of_op_server_succeeds_but_does_no_harm() -> None:
    board = Board().do(RESTORE, OP_SERVER0).hold(OP_SERVER0, privileged=1)
    board.knows_ot = True
    for _ in range(3):
        board.tell_red(IMPACT).step()
        assert (board.red_success, board.reward) == (YES, -1.0)
    assert board.ot_running
    assert not board.ot_active


# -- odds


def many_exploits(host: int, remembered: int, number: int = 40_000) -> CageVectorEnv:
    """As many games in which red, knowing these ports, exploits the host once."""
    env = CageVectorEnv(number, red="Meander", horizon=10)
    env.reset(seed=3)
    games = env.games
    games["known_addresses"] = games["scanned"] = EVERYTHING
    games["known_subnets"] = games["known_names"] = 0
    games["exploited"] = EVERYTHING & ~(1 << host)
    games["known_ports"][:, host] = remembered
    env.step(np.zeros(number, np.int64))
    assert (games["red_verb"] == EXPLOIT).all()
    return env


def share_is(found: np.ndarray, chance: float) -> bool:
    return abs(found.mean() - chance) <= 5 * np.sqrt(chance * (1 - chance) / len(found))


@pytest.mark.parametrize(
    ("host", "odds"),
    [
        (USER1, {FTP_TRAVERSAL: 3 / 4, SSH_BRUTE_FORCE: 1 / 4}),
        (USER3, {HARAKA_RCE: 3 / 4, HTTPS_RFI: 1 / 12, HTTP_RFI: 1 / 12, BLUE_KEEP: 1 / 12}),
        (
            USER4,
            {HARAKA_RCE: 3 / 4, SQL_INJECTION: 1 / 16, HTTPS_RFI: 1 / 16, HTTP_RFI: 1 / 16, SSH_BRUTE_FORCE: 1 / 16},
        ),
        (ENTERPRISE0, {SSH_BRUTE_FORCE: 1.0}),
    ],
)
def test_weightiest_option_is_drawn_three_times_in_four(host: int, odds: dict[int, float]) -> None:
    drawn = many_exploits(host, GENUINE_PORTS[host]).games["red_exploit"]
    assert set(np.unique(drawn)) == set(odds)
    for exploit, chance in odds.items():
        assert share_is(drawn == exploit, chance)


def test_nineteen_shells_in_twenty_are_detected() -> None:
    shells = many_exploits(USER1, ports(21)).games
    assert share_is(shells["shell_host"] == USER1, 0.95)
    assert (shells["privileged"][:, USER1] == 1).all()


def test_escalation_draws_uniformly_among_user_sessions() -> None:
    env = CageVectorEnv(40_000, red="Meander", horizon=10)
    env.reset(seed=5)
    games = env.games
    games["known_addresses"] = games["scanned"] = 1 << USER1
    games["known_subnets"] = 0
    games["known_names"] = 1 << USER1
    games["held"] |= 1 << USER1
    games["plain"][:, USER1], games["flagged"][:, USER1] = 1, 2
    env.step(np.zeros(40_000, np.int64))
    assert share_is(games["flagged"][:, USER1] == 1, 2 / 3)
    assert (games["flagged"][:, USER1] + games["plain"][:, USER1] == 2).all()


def test_green_sleeps_half_the_time_and_scans_eight_hosts_alike() -> None:
    env = CageVectorEnv(40_000, red="Sleep", green="GreenAgent", horizon=10)
    env.reset(seed=7)
    observations, *_ = env.step(np.zeros(40_000, np.int64))
    targets = env.games["green_target"]
    assert share_is(targets == NOWHERE, 0.5)
    for host in (USER0, USER1, USER2, USER3, USER4, ENTERPRISE0, ENTERPRISE1, ENTERPRISE2):
        assert share_is(targets == host, 1 / 16)
        assert (observations[targets == host, 4 * host] == 1).all()
    assert (observations.sum(axis=1) == (targets != NOWHERE)).all()
    assert (env.games["red"] == SLEEPER).all()
