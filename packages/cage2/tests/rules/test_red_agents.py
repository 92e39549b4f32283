"""The attackers: B_line's fixed order and jumps, Meander's priorities and memory."""

from __future__ import annotations

import numpy as np
import pytest
from scripted_game import EVERYTHING, ScriptedGame, gateway

from cage2.rules.scenario import (
    DEFENDER,
    ENTERPRISE,
    ENTERPRISE0,
    ENTERPRISE1,
    ENTERPRISE2,
    ESCALATE,
    EXPLOIT,
    FTP_TRAVERSAL,
    GENUINE_PORTS,
    HARAKA_RCE,
    HTTPS_RFI,
    IMPACT,
    NO,
    OP_HOST0,
    OP_SERVER0,
    OPERATIONAL,
    RED_SLEEP,
    RESTORE,
    SCAN,
    SSH_BRUTE_FORCE,
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
from cage2.vector_env import CageVectorEnv


def action(game: ScriptedGame) -> tuple[int, int]:
    return int(game.red_verb), int(game.red_target)


# -- B_line


def test_b_line_advances_through_user1_in_fixed_order() -> None:
    game, seen = ScriptedGame("B_line"), []
    for _ in range(16):
        exploit = {2: FTP_TRAVERSAL, 5: HTTPS_RFI, 9: HTTPS_RFI, 12: SSH_BRUTE_FORCE}.get(len(seen), 8)
        game.step(target=USER1, exploit=exploit)
        seen.append(action(game))
        assert game.red_success == YES
    assert seen == [
        *((SWEEP, USER), (SCAN, USER1), (EXPLOIT, USER1), (ESCALATE, USER1)),
        *((SCAN, ENTERPRISE1), (EXPLOIT, ENTERPRISE1), (ESCALATE, ENTERPRISE1), (SWEEP, ENTERPRISE)),
        *((SCAN, ENTERPRISE2), (EXPLOIT, ENTERPRISE2), (ESCALATE, ENTERPRISE2)),
        *((SCAN, OP_SERVER0), (EXPLOIT, OP_SERVER0), (ESCALATE, OP_SERVER0), (IMPACT, OP_SERVER0)),
        (IMPACT, OP_SERVER0),
    ]
    assert game.reward == pytest.approx(-13.1)


@pytest.mark.parametrize(("entry", "second"), [(USER2, ENTERPRISE1), (USER3, ENTERPRISE0), (USER4, ENTERPRISE0)])
def test_b_line_attacks_the_host_its_entry_reveals(entry: int, second: int) -> None:
    game = ScriptedGame("B_line")
    game.entry, game.position, game.red_success = entry, 3, YES
    assert action(game.step()) == (SCAN, second)


@pytest.mark.parametrize(
    ("failed", "next_position"), [(2, 2), (3, 2), (5, 2), (6, 5), (9, 5), (10, 9), (12, 9), (13, 12), (14, 13)]
)
def test_b_line_goes_back_after_a_failure(failed: int, next_position: int) -> None:
    game = ScriptedGame("B_line")
    game.entry, game.position, game.red_success = USER1, failed, NO
    game.known_ports[:] = GENUINE_PORTS
    assert game.step(exploit=SSH_BRUTE_FORCE).position == next_position


def test_b_line_without_ports_of_op_server_scans_its_entry_in_the_same_step() -> None:
    game = ScriptedGame("B_line")
    game.entry, game.position, game.red_success = USER4, 10, YES
    assert action(game.step()) == (SCAN, OP_SERVER0)  # unreachable: success, but nothing learnt
    assert action(game.step()) == (SCAN, USER4)
    assert game.position == 1
    game = gateway(ScriptedGame("B_line"))
    game.entry, game.position, game.red_success = USER4, 10, YES
    assert action(game.step().step(exploit=SSH_BRUTE_FORCE)) == (EXPLOIT, OP_SERVER0)


def test_b_line_does_not_scan_when_it_goes_back_to_an_exploit() -> None:
    game = ScriptedGame("B_line")
    game.entry, game.position, game.red_success = USER3, 5, NO
    game.known_ports[USER3] = ports(443)  # of a Tomcat decoy long gone; the genuine service has it too
    game.step(exploit=HARAKA_RCE)  # not among the remembered options
    assert (action(game), game.red_exploit) == ((EXPLOIT, USER3), HTTPS_RFI)


def test_b_line_chooses_user1_to_4_with_equal_probability() -> None:
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
    game = ScriptedGame("Meander")
    game.known_subnets = 0b111
    assert [action(game.step()) for _ in range(3)] == [(SWEEP, ENTERPRISE), (SWEEP, OPERATIONAL), (SWEEP, USER)]
    assert game.swept == 0b111  # Operational too, though its sweep failed


def test_meander_impacts_once_op_server_is_escalated() -> None:
    game = ScriptedGame().set_red_action(SCAN, USER1)
    game.escalated = hosts(OP_SERVER0)
    assert action(game.step(target=USER1)) == (IMPACT, OP_SERVER0)


def after(verb: int, host: int, success: int, **memory: int) -> ScriptedGame:
    """Meander after its last action, with nothing to sweep or scan, takes its next turn on User0."""
    game = ScriptedGame("Meander").set_red_action(RED_SLEEP)
    game.known_addresses = game.scanned = EVERYTHING
    for name, value in memory.items():
        setattr(game, name, value)
    game.red_verb, game.red_target, game.red_success = verb, host, success
    return game.step(target=USER0)


def test_meander_maps_what_it_exploited() -> None:
    game = after(EXPLOIT, USER1, YES, exploited=hosts(USER1))
    assert game.mapped == hosts(USER1)
    assert game.has("exploited", USER1)


def test_failed_exploit_makes_meander_repeat_its_most_advanced_subnet() -> None:
    done = hosts(USER1, USER2, ENTERPRISE1, OP_HOST0)
    game = after(EXPLOIT, USER2, NO, exploited=done, escalated=hosts(USER1, ENTERPRISE1, OP_HOST0))
    assert game.escalated == hosts(USER1, ENTERPRISE1)
    assert game.exploited == hosts(USER1, ENTERPRISE1, USER0)  # and it exploits User0 now
    game = after(EXPLOIT, USER2, NO, exploited=done, escalated=hosts(USER1, ENTERPRISE1))
    assert game.escalated == hosts(USER1)
    assert game.exploited == hosts(USER1, OP_HOST0, USER0)
    game = after(EXPLOIT, USER2, NO, exploited=done, escalated=hosts(USER1))
    assert game.escalated == hosts(USER1)
    assert game.exploited == hosts(USER1, ENTERPRISE1, OP_HOST0, USER0)


def test_failed_escalation_clears_the_host_if_it_was_mapped() -> None:
    memory = {"exploited": hosts(USER1), "escalated": hosts(USER1)}
    mapped = after(ESCALATE, USER1, NO, mapped=hosts(USER1), **memory)
    assert (mapped.escalated, mapped.exploited) == (0, hosts(USER0))
    unmapped = after(ESCALATE, USER1, NO, mapped=0, **memory)
    assert (unmapped.escalated, unmapped.exploited) == (0, hosts(USER1, USER0))


def test_failed_impact_clears_op_server() -> None:
    memory = {"exploited": hosts(OP_SERVER0), "escalated": hosts(OP_SERVER0), "mapped": hosts(OP_SERVER0)}
    game = after(IMPACT, OP_SERVER0, NO, **memory)
    assert action(game) == (EXPLOIT, USER0)
    assert (game.escalated, game.exploited) == (0, hosts(USER0))


def test_meander_does_not_escalate_a_mapped_host_it_must_exploit_again() -> None:
    game = after(SCAN, USER2, YES, known_names=hosts(USER1), mapped=hosts(USER1), exploited=0)
    assert action(game)[0] == EXPLOIT
    game = after(SCAN, USER2, YES, known_names=hosts(USER1), mapped=hosts(USER1), exploited=hosts(USER1))
    assert action(game) == (ESCALATE, USER1)


def test_meander_never_scans_a_host_twice_even_after_an_empty_scan() -> None:
    game = ScriptedGame().set_red_action(SCAN, OP_SERVER0).step(target=OP_SERVER0)
    assert game.known_ports[OP_SERVER0] == 0
    gateway(game).exploited = EVERYTHING & ~hosts(OP_SERVER0)
    game.known_names = 0
    assert action(game.step(target=OP_SERVER0)) == (EXPLOIT, OP_SERVER0)
    assert game.red_success == NO  # no remembered ports, for the rest of the episode


def test_meander_always_fails_on_defender() -> None:
    assert ScriptedGame().exploit(DEFENDER, SSH_BRUTE_FORCE).red_success == NO


def test_restore_of_the_gateway_stops_red_in_the_same_step() -> None:
    game = gateway(ScriptedGame()).set_red_action(SCAN, OP_HOST0).do(RESTORE, ENTERPRISE0, target=OP_HOST0)
    assert game.known_ports[OP_HOST0] == 0


def test_sleep_does_nothing() -> None:
    assert ScriptedGame("Sleep").step().red_verb == RED_SLEEP
