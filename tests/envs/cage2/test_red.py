"""The attackers: B_line's ladder and jumps, Meander's order of business and its forgetting."""

from __future__ import annotations

import numpy as np
import pytest

from optimist.envs.cage2.actions import ESCALATE, EXPLOIT, IMPACT, NO, RED_SLEEP, RESTORE, SCAN, SWEEP, YES
from optimist.envs.cage2.env import CageVectorEnv
from optimist.envs.cage2.network import (
    DEFENDER,
    ENTERPRISE,
    ENTERPRISE0,
    ENTERPRISE1,
    ENTERPRISE2,
    FTP_TRAVERSAL,
    GENUINE_PORTS,
    HARAKA_RCE,
    HTTPS_RFI,
    OP_HOST0,
    OP_SERVER0,
    OPERATIONAL,
    SSH_BRUTE_FORCE,
    USER,
    USER0,
    USER1,
    USER2,
    USER3,
    USER4,
    hosts,
    ports,
)
from tests.envs.cage2.board import EVERYTHING, Board, gateway


def action(board: Board) -> tuple[int, int]:
    return int(board.red_verb), int(board.red_target)


# -- B_line


def test_b_line_climbs_its_ladder_through_user1() -> None:
    board, seen = Board("B_line"), []
    for _ in range(16):
        exploit = {2: FTP_TRAVERSAL, 5: HTTPS_RFI, 9: HTTPS_RFI, 12: SSH_BRUTE_FORCE}.get(len(seen), 8)
        board.step(target=USER1, exploit=exploit)
        seen.append(action(board))
        assert board.red_success == YES
    assert seen == [
        *((SWEEP, USER), (SCAN, USER1), (EXPLOIT, USER1), (ESCALATE, USER1)),
        *((SCAN, ENTERPRISE1), (EXPLOIT, ENTERPRISE1), (ESCALATE, ENTERPRISE1), (SWEEP, ENTERPRISE)),
        *((SCAN, ENTERPRISE2), (EXPLOIT, ENTERPRISE2), (ESCALATE, ENTERPRISE2)),
        *((SCAN, OP_SERVER0), (EXPLOIT, OP_SERVER0), (ESCALATE, OP_SERVER0), (IMPACT, OP_SERVER0)),
        (IMPACT, OP_SERVER0),
    ]
    assert board.reward == pytest.approx(-13.1)


@pytest.mark.parametrize(("entry", "second"), [(USER2, ENTERPRISE1), (USER3, ENTERPRISE0), (USER4, ENTERPRISE0)])
def test_b_line_goes_on_to_the_host_its_entry_reveals(entry: int, second: int) -> None:
    board = Board("B_line")
    board.entry, board.position, board.red_success = entry, 3, YES
    assert action(board.step()) == (SCAN, second)


@pytest.mark.parametrize(
    ("failed", "next_position"), [(2, 2), (3, 2), (5, 2), (6, 5), (9, 5), (10, 9), (12, 9), (13, 12), (14, 13)]
)
def test_b_line_falls_back_after_a_failure(failed: int, next_position: int) -> None:
    board = Board("B_line")
    board.entry, board.position, board.red_success = USER1, failed, NO
    board.known_ports[:] = GENUINE_PORTS
    assert board.step(exploit=SSH_BRUTE_FORCE).position == next_position


def test_b_line_without_ports_of_op_server_scans_its_entry_again_in_the_same_turn() -> None:
    board = Board("B_line")
    board.entry, board.position, board.red_success = USER4, 10, YES
    assert action(board.step()) == (SCAN, OP_SERVER0)  # unreachable: success, but nothing learnt
    assert action(board.step()) == (SCAN, USER4)
    assert board.position == 1
    board = gateway(Board("B_line"))
    board.entry, board.position, board.red_success = USER4, 10, YES
    assert action(board.step().step(exploit=SSH_BRUTE_FORCE)) == (EXPLOIT, OP_SERVER0)


def test_b_line_does_not_scan_again_when_it_falls_back_on_an_exploit() -> None:
    board = Board("B_line")
    board.entry, board.position, board.red_success = USER3, 5, NO
    board.known_ports[USER3] = ports(443)  # of a Tomcat decoy long gone; the genuine service has it too
    board.step(exploit=HARAKA_RCE)  # not among the remembered options
    assert (action(board), board.red_exploit) == ((EXPLOIT, USER3), HTTPS_RFI)


def test_b_line_chooses_among_user1_to_4_alike() -> None:
    env = CageVectorEnv(20_000, red="B_line", horizon=10)
    env.reset(seed=1)
    for _ in range(2):
        env.step(np.zeros(20_000, np.int64))
    counts = np.bincount(env.games["entry"], minlength=13)
    assert counts[[USER1, USER2, USER3, USER4]].sum() == 20_000
    assert np.abs(counts[[USER1, USER2, USER3, USER4]] / 5_000 - 1).max() < 0.07


# -- Meander


def test_meander_sweeps_scans_its_subnet_and_escalates_user0_before_it_exploits() -> None:
    env = CageVectorEnv(500, red="Meander", horizon=20)
    env.reset(seed=2)
    verbs, targets = [], []
    for _ in range(8):
        env.step(np.zeros(500, np.int64))
        verbs.append(env.games["red_verb"].copy())
        targets.append(env.games["red_target"].copy())
    assert (np.array(verbs) == np.array([SWEEP, *[SCAN] * 5, ESCALATE, EXPLOIT])[:, None]).all()
    scans = np.sort(np.array(targets[1:6]), axis=0)
    assert (scans == np.array([USER0, USER1, USER2, USER3, USER4])[:, None]).all()
    assert (targets[6] == USER0).all()
    assert set(np.unique(targets[7])) == {USER0, USER1, USER2, USER3, USER4}


def test_meander_sweeps_enterprise_before_operational_before_user() -> None:
    board = Board("Meander")
    board.known_subnets = 0b111
    assert [action(board.step()) for _ in range(3)] == [(SWEEP, ENTERPRISE), (SWEEP, OPERATIONAL), (SWEEP, USER)]
    assert board.swept == 0b111  # Operational too, though its sweep failed


def test_meander_impacts_once_op_server_is_escalated() -> None:
    board = Board().tell_red(SCAN, USER1)
    board.escalated = hosts(OP_SERVER0)
    assert action(board.step(target=USER1)) == (IMPACT, OP_SERVER0)


def after(verb: int, host: int, success: int, **memory: int) -> Board:
    """Meander after its last action, with nothing to sweep or scan, takes its next turn on User0."""
    board = Board("Meander").tell_red(RED_SLEEP)
    board.known_addresses = board.scanned = EVERYTHING
    for name, value in memory.items():
        setattr(board, name, value)
    board.red_verb, board.red_target, board.red_success = verb, host, success
    return board.step(target=USER0)


def test_meander_maps_what_it_exploited() -> None:
    board = after(EXPLOIT, USER1, YES, exploited=hosts(USER1))
    assert board.mapped == hosts(USER1)
    assert board.has("exploited", USER1)


def test_failed_exploit_makes_meander_redo_its_most_advanced_layer() -> None:
    done = hosts(USER1, USER2, ENTERPRISE1, OP_HOST0)
    board = after(EXPLOIT, USER2, NO, exploited=done, escalated=hosts(USER1, ENTERPRISE1, OP_HOST0))
    assert board.escalated == hosts(USER1, ENTERPRISE1)
    assert board.exploited == hosts(USER1, ENTERPRISE1, USER0)  # and it exploits User0 now
    board = after(EXPLOIT, USER2, NO, exploited=done, escalated=hosts(USER1, ENTERPRISE1))
    assert board.escalated == hosts(USER1)
    assert board.exploited == hosts(USER1, OP_HOST0, USER0)
    board = after(EXPLOIT, USER2, NO, exploited=done, escalated=hosts(USER1))
    assert board.escalated == hosts(USER1)
    assert board.exploited == hosts(USER1, ENTERPRISE1, OP_HOST0, USER0)


def test_failed_escalation_forgets_the_host_if_it_was_mapped() -> None:
    memory = {"exploited": hosts(USER1), "escalated": hosts(USER1)}
    mapped = after(ESCALATE, USER1, NO, mapped=hosts(USER1), **memory)
    assert (mapped.escalated, mapped.exploited) == (0, hosts(USER0))
    unmapped = after(ESCALATE, USER1, NO, mapped=0, **memory)
    assert (unmapped.escalated, unmapped.exploited) == (0, hosts(USER1, USER0))


def test_failed_impact_forgets_op_server() -> None:
    memory = {"exploited": hosts(OP_SERVER0), "escalated": hosts(OP_SERVER0), "mapped": hosts(OP_SERVER0)}
    board = after(IMPACT, OP_SERVER0, NO, **memory)
    assert action(board) == (EXPLOIT, USER0)
    assert (board.escalated, board.exploited) == (0, hosts(USER0))


def test_meander_does_not_escalate_a_mapped_host_it_must_exploit_again() -> None:
    board = after(SCAN, USER2, YES, known_names=hosts(USER1), mapped=hosts(USER1), exploited=0)
    assert action(board)[0] == EXPLOIT
    board = after(SCAN, USER2, YES, known_names=hosts(USER1), mapped=hosts(USER1), exploited=hosts(USER1))
    assert action(board) == (ESCALATE, USER1)


def test_meander_never_scans_a_host_twice_even_after_an_empty_scan() -> None:
    board = Board().tell_red(SCAN, OP_SERVER0).step(target=OP_SERVER0)
    assert board.known_ports[OP_SERVER0] == 0
    gateway(board).exploited = EVERYTHING & ~hosts(OP_SERVER0)
    board.known_names = 0
    assert action(board.step(target=OP_SERVER0)) == (EXPLOIT, OP_SERVER0)
    assert board.red_success == NO  # no remembered ports, for the rest of the episode


def test_meander_always_fails_on_defender() -> None:
    assert Board().exploit(DEFENDER, SSH_BRUTE_FORCE).red_success == NO


def test_blue_restoring_the_gateway_is_felt_in_the_same_step() -> None:
    board = gateway(Board()).tell_red(SCAN, OP_HOST0).do(RESTORE, ENTERPRISE0, target=OP_HOST0)
    assert board.known_ports[OP_HOST0] == 0


def test_sleep_does_nothing() -> None:
    assert Board("Sleep").step().red_verb == RED_SLEEP
