"""Red's actions by hand: events, sessions, files, knowledge, and probabilities of random outcomes."""

from __future__ import annotations

import numpy as np
import pytest
from scripted_game import EVERYTHING, EXPLOITED, QUIET, SCANNED, ScriptedGame, gateway

from cage2.rules.scenario import (
    BLUE_KEEP,
    DECOY,
    DECOYS,
    DEFENDER,
    ENTERPRISE,
    ENTERPRISE0,
    ENTERPRISE1,
    ENTERPRISE2,
    ESCALATE,
    ETERNAL_BLUE,
    EXPLOIT,
    FTP_TRAVERSAL,
    GENUINE_PORTS,
    HARAKA_RCE,
    HTTP_RFI,
    HTTPS_RFI,
    IMPACT,
    NO,
    NO_EXPLOIT,
    NOWHERE,
    OP_HOST0,
    OP_SERVER0,
    OPERATIONAL,
    RESTORE,
    SCAN,
    SQL_INJECTION,
    SSH_BRUTE_FORCE,
    SUBNET_HOSTS,
    SWEEP,
    USER,
    USER0,
    USER1,
    USER2,
    USER3,
    USER4,
    YES,
    hosts,
    ports,
)
from cage2.rules.state import SLEEPER
from cage2.vector_env import CageVectorEnv

APACHE, FEMITTER, HARAKA, SMSS, SSHD, SVCHOST, TOMCAT, VSFTPD = (DECOY + d for d in range(len(DECOYS)))


# -- looking around


def test_sweep_reveals_the_addresses_of_a_subnet_to_red_and_nothing_to_blue() -> None:
    game = ScriptedGame()
    game.known_addresses = 0
    game.set_red_action(SWEEP, ENTERPRISE)
    game.known_addresses = hosts(USER0)
    game.step()
    assert game.known_addresses == SUBNET_HOSTS[ENTERPRISE] | hosts(USER0)
    assert not game.seen["bits"].any()


def test_operational_is_reachable_only_through_enterprise0_to_2() -> None:
    for host in (DEFENDER, USER1, OP_SERVER0):
        game = ScriptedGame().hold(host, privileged=1).set_red_action(SWEEP, OPERATIONAL).step()
        assert game.red_success == NO, host
    for host in (ENTERPRISE0, ENTERPRISE1, ENTERPRISE2):
        assert ScriptedGame().hold(host, plain=1).set_red_action(SWEEP, OPERATIONAL).step().red_success == YES


def test_blue_can_close_operational_in_the_same_step() -> None:
    game = gateway(ScriptedGame()).set_red_action(SWEEP, OPERATIONAL)
    assert game.do(RESTORE, ENTERPRISE0).red_success == NO


def test_scan_without_access_reports_success_and_has_no_effect() -> None:
    game = ScriptedGame().set_red_action(SCAN, OP_SERVER0)
    game.known_ports[OP_SERVER0] = ports(25)
    game.step(target=OP_SERVER0)
    assert game.red_success == YES
    assert game.known_ports[OP_SERVER0] == ports(25)
    assert game.activity(OP_SERVER0) == QUIET


def test_scan_of_a_host_with_one_port_shows_as_scan() -> None:
    game = ScriptedGame().set_red_action(SCAN, ENTERPRISE0).step(target=ENTERPRISE0)
    assert game.activity(ENTERPRISE0) == SCANNED
    assert game.known_ports[ENTERPRISE0] == ports(22)


@pytest.mark.parametrize(("rules", "remembered"), [("final", ports(22)), ("competition", ports(22, 443))])
def test_scan_replaces_or_extends_reds_memory(rules: str, remembered: int) -> None:
    game = ScriptedGame(rules=rules)
    game.known_ports[ENTERPRISE0] = ports(443)  # of a decoy that has been wiped since
    game.set_red_action(SCAN, ENTERPRISE0).step(target=ENTERPRISE0)
    assert game.known_ports[ENTERPRISE0] == remembered


def test_scan_finds_decoys() -> None:
    game = ScriptedGame().do(TOMCAT, ENTERPRISE0).set_red_action(SCAN, ENTERPRISE0).step(target=ENTERPRISE0)
    assert game.known_ports[ENTERPRISE0] == ports(22, 443)


# -- exploiting


def test_exploit_without_remembered_ports_fails_without_activity() -> None:
    game = ScriptedGame().set_red_action(EXPLOIT, USER1).step(target=USER1)
    assert (game.red_success, game.red_exploit, game.activity(USER1)) == (NO, NO_EXPLOIT, QUIET)


def test_exploit_without_access_fails_without_activity_after_its_draw() -> None:
    game = ScriptedGame().exploit(OP_HOST0, SSH_BRUTE_FORCE)
    assert (game.red_success, game.red_exploit, game.activity(OP_HOST0)) == (NO, SSH_BRUTE_FORCE, QUIET)
    assert gateway(ScriptedGame()).exploit(OP_HOST0, SSH_BRUTE_FORCE).red_success == YES


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
    game = ScriptedGame()
    before = game.sessions(host)
    game.exploit(host, exploit)
    after = game.sessions(host)
    assert (after[1] - before[1], after[2] - before[2]) == ((0, 1) if privileged else (1, 0))
    assert game.red_success == YES
    assert game.has("malware", host)
    assert game.activity(host) == EXPLOITED
    assert game.shell_host == host


def test_undetected_shell_shows_as_scan_and_is_never_flagged() -> None:
    game = ScriptedGame().exploit(ENTERPRISE1, HTTPS_RFI, detected=False)
    assert game.sessions(ENTERPRISE1) == (1, 0, 0)
    assert game.has("malware", ENTERPRISE1)
    assert game.activity(ENTERPRISE1) == SCANNED
    assert game.shell_host == NOWHERE


def test_ssh_gives_an_unflagged_user_session_without_a_file() -> None:
    game = ScriptedGame().exploit(USER4, SSH_BRUTE_FORCE)
    assert game.sessions(USER4) == (1, 0, 0)
    assert not game.has("malware", USER4)
    assert game.activity(USER4) == EXPLOITED  # 11 events on one port
    assert game.shell_host == NOWHERE


def test_ssh_on_defender_or_on_a_decoy_fails_and_shows_as_exploit() -> None:
    game = ScriptedGame().exploit(DEFENDER, SSH_BRUTE_FORCE)
    assert (game.red_success, game.activity(DEFENDER)) == (NO, EXPLOITED)
    game = ScriptedGame().do(SSHD, USER3).exploit(USER3, SSH_BRUTE_FORCE)
    assert (game.red_success, game.activity(USER3)) == (NO, EXPLOITED)


def test_decoy_catches_an_exploit_and_shows_as_scan() -> None:
    game = ScriptedGame().do(TOMCAT, USER2).exploit(USER2, HTTPS_RFI)
    assert (game.red_success, game.activity(USER2)) == (NO, SCANNED)
    assert game.sessions(USER2) == (0, 0, 0)


def test_genuine_service_answers_before_a_decoy_on_its_port() -> None:
    assert ScriptedGame().do(VSFTPD, USER3).exploit(USER3, HTTP_RFI).red_success == YES


@pytest.mark.parametrize(("host", "exploit"), [(ENTERPRISE1, ETERNAL_BLUE), (USER3, BLUE_KEEP)])
def test_exploit_without_a_service_fails_without_activity(host: int, exploit: int) -> None:
    game = ScriptedGame().exploit(host, exploit)
    assert (game.red_success, game.red_exploit, game.activity(host)) == (NO, exploit, QUIET)


def test_port_of_a_removed_decoy_is_still_tried() -> None:
    game = ScriptedGame()
    game.known_ports[ENTERPRISE0] = ports(22, 25)
    game.exploit(ENTERPRISE0, HARAKA_RCE)
    assert (game.red_success, game.activity(ENTERPRISE0)) == (NO, QUIET)


def test_sql_is_an_option_only_with_a_web_port() -> None:
    game = ScriptedGame()
    game.known_ports[USER4] = ports(22, 3390)
    assert game.exploit(USER4, SQL_INJECTION).red_exploit == SSH_BRUTE_FORCE


@pytest.mark.parametrize(("rules", "success"), [("final", YES), ("competition", NO)])
def test_haraka_fails_after_restore_under_competition_rules(rules: str, success: int) -> None:
    game = ScriptedGame(rules=rules).do(RESTORE, USER3).exploit(USER3, HARAKA_RCE)
    assert game.red_success == success
    assert game.activity(USER3) == (EXPLOITED if success else SCANNED)  # one event all the same
    assert game.has("malware", USER3) == bool(success)
    assert ScriptedGame(rules=rules).do(RESTORE, USER4).exploit(USER3, HARAKA_RCE).red_success == YES


def test_exploiting_a_held_host_adds_a_session() -> None:
    game = ScriptedGame().hold(USER1, privileged=1).exploit(USER1, FTP_TRAVERSAL).exploit(USER1, SSH_BRUTE_FORCE)
    assert game.sessions(USER1) == (1, 0, 2)


# -- escalating and impact


def test_escalation_needs_a_session() -> None:
    assert ScriptedGame().set_red_action(ESCALATE, USER1).step(target=USER1).red_success == NO


def test_escalation_of_a_privileged_host_changes_nothing_but_succeeds() -> None:
    game = ScriptedGame().hold(USER1, plain=2, privileged=1).set_red_action(ESCALATE, USER1).step(target=USER1)
    assert (game.red_success, game.sessions(USER1)) == (YES, (2, 0, 1))
    assert not game.has("malware", USER1)


@pytest.mark.parametrize(("left", "after"), [(1, (1, 1, 1)), (2, (0, 2, 1))])
def test_escalation_takes_the_recorded_session(left: int, after: tuple) -> None:
    game = (
        ScriptedGame().hold(USER1, plain=1, flagged=2).set_red_action(ESCALATE, USER1).step(target=USER1, flagged=left)
    )
    assert game.sessions(USER1) == after
    assert game.has("malware", USER1)
    assert game.activity(USER1) == QUIET


@pytest.mark.parametrize(
    ("host", "address"),
    [(USER1, ENTERPRISE1), (USER2, ENTERPRISE1), (USER3, ENTERPRISE0), (USER4, ENTERPRISE0), (ENTERPRISE2, OP_SERVER0)],
)
def test_escalation_reveals_the_next_host(host: int, address: int) -> None:
    game = ScriptedGame().hold(host, plain=1).set_red_action(ESCALATE, host)
    game.known_addresses = game.scanned = 0
    game.known_subnets = game.swept = 0
    game.step(target=host)
    assert game.known_addresses == hosts(host, address)
    assert game.known_subnets == 1 << (ENTERPRISE if host == ENTERPRISE2 else USER)


def test_impact_needs_a_session_and_knowledge() -> None:
    assert ScriptedGame().set_red_action(IMPACT).step().red_success == NO
    assert ScriptedGame().hold(OP_SERVER0, privileged=1).set_red_action(IMPACT).step().red_success == NO
    game = ScriptedGame().hold(OP_SERVER0, plain=1).set_red_action(ESCALATE, OP_SERVER0).step(target=OP_SERVER0)
    assert game.knows_ot
    assert game.set_red_action(IMPACT).step().red_success == YES
    assert not game.ot_running


def test_stopped_service_costs_ten_at_every_step_until_op_server_is_restored() -> None:
    game = ScriptedGame().hold(OP_SERVER0, privileged=1)
    game.knows_ot = True
    assert game.set_red_action(IMPACT).step().reward == -11.0
    assert game.stop_red().step().reward == -11.0
    assert game.do(RESTORE, OP_SERVER0).reward == -1.0


def test_impact_after_a_restore_of_op_server_succeeds_without_effect() -> None:
    game = ScriptedGame().do(RESTORE, OP_SERVER0).hold(OP_SERVER0, privileged=1)
    game.knows_ot = True
    for _ in range(3):
        game.set_red_action(IMPACT).step()
        assert (game.red_success, game.reward) == (YES, -1.0)
    assert game.ot_running
    assert not game.ot_active


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
def test_option_of_highest_weight_is_drawn_three_times_in_four(host: int, odds: dict[int, float]) -> None:
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


def test_green_sleeps_half_the_time_and_scans_eight_hosts_uniformly() -> None:
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
