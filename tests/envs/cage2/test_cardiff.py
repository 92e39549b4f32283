"""The Cardiff interface: outputs, greedy decoys, marks, scan memory, opening, fingerprint and fall-back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from optimist.envs.cage2.actions import ACTION_NAMES
from optimist.envs.cage2.cardiff import (
    NUM_OUTPUTS,
    SLEEP_OUTPUT,
    CardiffVectorEnv,
    fall_back,
    fingerprint,
    scan_memory,
)
from optimist.envs.cage2.cardiff_rules import DECOY_HOSTS, DECOY_ORDER, DIRECT_OUTPUTS, SCAN_HOSTS
from optimist.envs.cage2.env import CageVectorEnv
from optimist.envs.cage2.network import HOSTS
from optimist.envs.cage2.state import decoys_of
from optimist.envs.cage2.traces import Trace, read_traces
from optimist.errors import ConfigError

DATA = Path(__file__).parents[2] / "data" / "cage2"


def output(name: str) -> int:
    """The output that plays this: a flat action by its name, or "Decoy HOST"."""
    if name.startswith("Decoy "):
        return 27 + [HOSTS[host] for host in DECOY_HOSTS].index(name.removeprefix("Decoy "))
    return DIRECT_OUTPUTS.index(ACTION_NAMES.index(name))


def decoys_after(names: list[str]) -> dict[str, list[str]]:
    env = CardiffVectorEnv(1, red="Sleep")
    env.reset(seed=0)
    for name in names:
        env.step([output(name)])
    return decoys_of(env.games, 0)


class Naive:
    """The interface written out plainly over flat actions and 52 bits, as a second opinion."""

    def __init__(self) -> None:
        self.used: set[int] = set()
        self.memory = [0] * len(SCAN_HOSTS)

    def flat(self, output: int) -> int:
        if output < 27:
            action = DIRECT_OUTPUTS[output]
            if ACTION_NAMES[action].startswith("Restore"):
                host = ACTION_NAMES[action].split()[1]
                self.used -= {a for a in self.used if ACTION_NAMES[a].endswith(host)}
            return action
        order = DECOY_ORDER[output - 27]
        free = [action for action in order if action not in self.used]
        self.used.update(free[:1])
        return free[0] if free else order[0]

    def look(self, bits: np.ndarray) -> np.ndarray:
        for slot, host in enumerate(SCAN_HOSTS):
            if bits[4 * host] == 1 and bits[4 * host + 1] == 0:
                self.memory = [min(value, 1) for value in self.memory]
                self.memory[slot] = 2
                break
        return np.concatenate([bits, self.memory])


@pytest.mark.parametrize("red", ["B_line", "Meander"])
@pytest.mark.parametrize("green", ["Sleep", "GreenAgent"])
def test_interface_equals_its_plain_version_over_flat_actions(red: str, green: str) -> None:
    number = 40
    keywords = {"red": red, "green": green, "table": "cardiff", "horizon": 101}
    cardiff, plain = CardiffVectorEnv(number, **keywords), CageVectorEnv(number, **keywords)
    cardiff.reset(seed=9)
    plain.reset(seed=9)
    naive = [Naive() for _ in range(number)]
    rng = np.random.default_rng(1)
    for _ in range(100):
        outputs = rng.integers(NUM_OUTPUTS, size=number)
        inputs, rewards, _, _, infos = cardiff.step(outputs)
        bits, plain_rewards, *_ = plain.step([n.flat(o) for n, o in zip(naive, outputs.tolist(), strict=True)])
        np.testing.assert_array_equal(inputs, [n.look(b) for n, b in zip(naive, bits, strict=True)])
        np.testing.assert_array_equal(rewards, plain_rewards)
        np.testing.assert_array_equal(infos["executed"], outputs)


def test_decoys_come_in_greedy_order() -> None:
    assert decoys_after(["Decoy User2"] * 4) == {"User2": ["Femitter", "Tomcat", "Apache", "SSHD"]}
    assert decoys_after(["Decoy Enterprise0"] * 3) == {"Enterprise0": ["HarakaSMPT", "Tomcat", "Vsftpd"]}


def test_entry_is_marked_even_if_the_host_refuses_it() -> None:
    # Apache is refused after Vsftpd; the list then starts over with Haraka, which is refused too
    assert decoys_after(["Decoy Enterprise0"] * 5) == {"Enterprise0": ["HarakaSMPT", "Tomcat", "Vsftpd"]}


def test_used_up_list_issues_its_first_entry_again() -> None:
    assert decoys_after(["Decoy User4"] * 3) == {"User4": ["Vsftpd"] * 3}  # Vsftpd stacks


def test_restore_clears_the_marks_of_its_host_only() -> None:
    played = ["Decoy User2", "Decoy User1", "Restore User2", "Decoy User2", "Decoy User1"]
    assert decoys_after(played) == {"User2": ["Femitter"], "User1": ["Apache", "Tomcat"]}


def test_opening_is_forced_and_told() -> None:
    env = CardiffVectorEnv(3, red="Sleep", opening=True, horizon=5)
    env.reset(seed=0)
    asked = np.array([output("Restore User1")] * 3)
    executed = [env.step(asked)[4]["executed"].tolist() for _ in range(9)]
    opening = [[31] * 3, [31] * 3, [27] * 3]
    free = [asked.tolist()] * 2
    assert executed == opening + free + opening + free[:1]  # again in the next episode
    env.reset(seed=0)
    rewards = [float(env.step(asked)[1][0]) for _ in range(4)]
    assert rewards == [0.0, 0.0, 0.0, -1.0]
    env.reset(seed=0)
    for _ in range(3):
        env.step(asked)
    assert decoys_of(env.games, 0) == {"User2": ["Femitter", "Tomcat"], "Enterprise0": ["HarakaSMPT"]}


@pytest.mark.parametrize(("red", "index"), [("B_line", 0), ("Meander", 1), ("Sleep", 2)])
def test_fingerprint_names_the_attacker_at_the_fourth_decision(red: str, index: int) -> None:
    env = CardiffVectorEnv(500, red=red, opening=True)
    env.reset(seed=2)
    for _ in range(3):
        observations, *_ = env.step(np.zeros(500, np.int64))
    assert (fingerprint(scan_memory(observations)) == index).all()


def test_fingerprint_takes_any_other_sum_for_sleep() -> None:
    scans = np.zeros((5, 10), np.int8)
    scans[1, 0], scans[2, :2], scans[3, :3], scans[4, 3] = 2, (1, 2), (1, 1, 2), 1
    assert fingerprint(scans).tolist() == [2, 0, 1, 2, 2]


def test_fall_back_takes_the_most_probable_output_that_is_no_restore_and_not_full() -> None:
    probabilities = np.zeros((4, NUM_OUTPUTS))
    full, other_full, restore, analyse, decoy = 27, 28, output("Restore User1"), output("Analyse User1"), 30
    probabilities[:, [full, other_full, restore, analyse, decoy]] = [0.5, 0.2, 0.15, 0.1, 0.05]
    free = np.ones((4, 9), np.bool_)
    free[:, :2] = False
    free[3, 0] = True
    probabilities[2, decoy] = 0.12
    asked = np.array([full, restore, full, full])
    # full → Analyse; a Restore that was asked for stays; full → a free decoy; not full → stays
    assert fall_back(asked, probabilities, free).tolist() == [analyse, restore, decoy, full]
    assert fall_back(np.array([SLEEP_OUTPUT] * 4), probabilities, free).tolist() == [SLEEP_OUTPUT] * 4


def test_free_decoys_follow_the_marks() -> None:
    env = CardiffVectorEnv(2, red="Sleep")
    env.reset(seed=0)
    assert env.free_decoys().all()
    env.step([output("Decoy User4"), output("Decoy User2")])
    assert env.free_decoys().sum(axis=1).tolist() == [8, 9]
    env.step([output("Restore User4"), output("Decoy User2")])
    assert env.free_decoys().all()


def test_sleep_output_exists_on_request_only() -> None:
    env = CardiffVectorEnv(1)
    env.reset(seed=0)
    with pytest.raises(ConfigError, match=r"action 36 of game 0 is outside 0\.\.35"):
        env.step([SLEEP_OUTPUT])
    env = CardiffVectorEnv(1, red="Sleep", sleep_output=True)
    env.reset(seed=0)
    assert env.single_action_space.n == 37
    assert env.step([SLEEP_OUTPUT])[4]["executed"].tolist() == [SLEEP_OUTPUT]
    assert env.games["blue_success"].tolist() == [-1]


# -- the agent itself, as recorded


def recorded(policy: str) -> list[Trace]:
    paths = sorted(DATA.glob(f"*-{policy}-*.jsonl.gz"))
    assert paths
    return [trace for path in paths for trace in read_traces(path)]


def test_recorded_agent_places_decoys_in_greedy_order_and_never_from_a_used_up_list() -> None:
    decoys = 0
    for trace in recorded("cardiff"):
        naive = Naive()
        for action in trace.actions.tolist():
            if action in DIRECT_OUTPUTS:
                naive.flat(DIRECT_OUTPUTS.index(action))
            elif action:
                entry = next(i for i, order in enumerate(DECOY_ORDER) if action in order)
                assert action not in naive.used
                assert naive.flat(27 + entry) == action
                decoys += 1
    assert decoys > 500


def test_recorded_random_outputs_start_a_used_up_list_over() -> None:
    again = 0
    for trace in recorded("random_cardiff"):
        naive = Naive()
        for action in trace.actions.tolist():
            if action in DIRECT_OUTPUTS:
                naive.flat(DIRECT_OUTPUTS.index(action))
            else:
                entry = next(i for i, order in enumerate(DECOY_ORDER) if action in order)
                again += action in naive.used
                assert naive.flat(27 + entry) == action
    assert again > 50


def test_recorded_agent_sleeps_exactly_where_the_fingerprint_says_so() -> None:
    taken_for = {0: 0, 1: 0, 2: 0}
    for trace in recorded("cardiff"):
        assert trace.actions[:3].tolist() == [51, 116, 55]
        naive = Naive()
        inputs = [naive.look(bits) for bits in trace.digits["obs"][:3]]
        (attacker,) = fingerprint(scan_memory(np.array(inputs[-1:])))
        taken_for[int(attacker)] += 1
        assert (trace.actions[3:] == 0).all() == (attacker == 2)
    assert min(taken_for.values()) > 10
