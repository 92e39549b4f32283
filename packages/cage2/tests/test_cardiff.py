"""The Cardiff interface: outputs, lists of decoys, scan memory, opening, fingerprint and fall-back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cage2.cardiff import CardiffVectorEnv, fall_back, fingerprint, scan_memory
from cage2.cardiff_rules import (
    DECOY_HOSTS,
    DECOY_ORDER,
    DIRECT_OUTPUTS,
    NUM_OUTPUTS,
    SCAN_HOSTS,
    SLEEP_OUTPUT,
)
from cage2.errors import ConfigError
from cage2.rules.scenario import ACTION_NAMES, HOSTS
from cage2.rules.state import decoys_of
from cage2.traces import Trace, parse_episode
from cage2.vector_env import CageVectorEnv


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


class PlainCardiff:
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

    def inputs(self, bits: np.ndarray) -> np.ndarray:
        for slot, host in enumerate(SCAN_HOSTS):
            if bits[4 * host] == 1 and bits[4 * host + 1] == 0:
                self.memory = [min(value, 1) for value in self.memory]
                self.memory[slot] = 2
                break
        return np.concatenate([bits, self.memory])


@pytest.mark.parametrize("red", ["B_line", "Meander"])
@pytest.mark.parametrize("green", ["Sleep", "GreenAgent"])
def test_interface_equals_a_plain_implementation(red: str, green: str) -> None:
    number = 40
    keywords = {"red": red, "green": green, "table": "cardiff", "horizon": 101}
    cardiff, plain = CardiffVectorEnv(number, **keywords), CageVectorEnv(number, **keywords)
    cardiff.reset(seed=9)
    plain.reset(seed=9)
    naive = [PlainCardiff() for _ in range(number)]
    rng = np.random.default_rng(1)
    for _ in range(100):
        outputs = rng.integers(NUM_OUTPUTS, size=number)
        inputs, rewards, _, _, infos = cardiff.step(outputs)
        bits, plain_rewards, *_ = plain.step([n.flat(o) for n, o in zip(naive, outputs.tolist(), strict=True)])
        np.testing.assert_array_equal(inputs, [n.inputs(b) for n, b in zip(naive, bits, strict=True)])
        np.testing.assert_array_equal(rewards, plain_rewards)
        np.testing.assert_array_equal(infos["executed"], outputs)


def test_decoys_are_placed_in_order() -> None:
    assert decoys_after(["Decoy User2"] * 4) == {"User2": ["Femitter", "Tomcat", "Apache", "SSHD"]}
    assert decoys_after(["Decoy Enterprise0"] * 3) == {"Enterprise0": ["HarakaSMPT", "Tomcat", "Vsftpd"]}


def test_decoy_counts_as_placed_even_if_the_host_refuses_it() -> None:
    # Apache is refused after Vsftpd; the list then starts again with Haraka, which is refused too
    assert decoys_after(["Decoy Enterprise0"] * 5) == {"Enterprise0": ["HarakaSMPT", "Tomcat", "Vsftpd"]}


def test_first_decoy_is_placed_again_after_the_end_of_the_list() -> None:
    assert decoys_after(["Decoy User4"] * 3) == {"User4": ["Vsftpd"] * 3}  # Vsftpd can be repeated


def test_restore_resets_the_list_of_its_host_only() -> None:
    played = ["Decoy User2", "Decoy User1", "Restore User2", "Decoy User2", "Decoy User1"]
    assert decoys_after(played) == {"User2": ["Femitter"], "User1": ["Apache", "Tomcat"]}


def test_opening_is_forced_and_reported() -> None:
    env = CardiffVectorEnv(3, red="Sleep", opening=True, horizon=5)
    env.reset(seed=0)
    requested = np.array([output("Restore User1")] * 3)
    infos = [env.step(requested)[4] for _ in range(9)]
    opening = [[31] * 3, [31] * 3, [27] * 3]
    free = [requested.tolist()] * 2
    assert [info["executed"].tolist() for info in infos] == opening + free + opening + free[:1]  # and again
    assert [info["forced"].all() for info in infos] == [True] * 3 + [False] * 2 + [True] * 3 + [False]
    assert CardiffVectorEnv(1, horizon=9).longest_episode == 9
    env.reset(seed=0)
    rewards = [float(env.step(requested)[1][0]) for _ in range(4)]
    assert rewards == [0.0, 0.0, 0.0, -1.0]
    env.reset(seed=0)
    for _ in range(3):
        env.step(requested)
    assert decoys_of(env.games, 0) == {"User2": ["Femitter", "Tomcat"], "Enterprise0": ["HarakaSMPT"]}


@pytest.mark.parametrize(("red", "index"), [("B_line", 0), ("Meander", 1), ("Sleep", 2)])
def test_fingerprint_names_the_attacker_at_the_fourth_decision(red: str, index: int) -> None:
    env = CardiffVectorEnv(500, red=red, opening=True)
    env.reset(seed=2)
    for _ in range(3):
        observations, *_ = env.step(np.zeros(500, np.int64))
    assert (fingerprint(scan_memory(observations)) == index).all()


def test_fingerprint_maps_any_other_sum_to_sleep() -> None:
    scans = np.zeros((5, 10), np.int8)
    scans[1, 0], scans[2, :2], scans[3, :3], scans[4, 3] = 2, (1, 2), (1, 1, 2), 1
    assert fingerprint(scans).tolist() == [2, 0, 1, 2, 2]


def test_fall_back_takes_the_most_probable_output_that_is_free_and_no_restore() -> None:
    probabilities = np.zeros((4, NUM_OUTPUTS))
    full, other_full, restore, analyse, decoy = 27, 28, output("Restore User1"), output("Analyse User1"), 30
    probabilities[:, [full, other_full, restore, analyse, decoy]] = [0.5, 0.2, 0.15, 0.1, 0.05]
    free = np.ones((4, 9), np.bool_)
    free[:, :2] = False
    free[3, 0] = True
    probabilities[2, decoy] = 0.12
    requested = np.array([full, restore, full, full])
    # full → Analyse; a requested Restore is kept; full → a free decoy; not full → kept
    assert fall_back(requested, probabilities, free).tolist() == [analyse, restore, decoy, full]
    assert fall_back(np.array([SLEEP_OUTPUT] * 4), probabilities, free).tolist() == [SLEEP_OUTPUT] * 4


def test_free_decoys_follow_the_placed_decoys() -> None:
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


# -- the recorded agent


def traces_of(recorded: dict[str, list[Any]], policy: str) -> list[Trace]:
    episodes = [episode for name, group in recorded.items() if f"-{policy}-" in name for episode in group]
    assert episodes
    return [parse_episode(episode) for episode in episodes]


def test_recorded_agent_places_decoys_in_order_and_none_after_the_end_of_a_list(recorded: dict[str, list[Any]]) -> None:
    decoys = 0
    for trace in traces_of(recorded, "cardiff"):
        naive = PlainCardiff()
        for action in trace.actions.tolist():
            if action in DIRECT_OUTPUTS:
                naive.flat(DIRECT_OUTPUTS.index(action))
            elif action:
                entry = next(i for i, order in enumerate(DECOY_ORDER) if action in order)
                assert action not in naive.used
                assert naive.flat(27 + entry) == action
                decoys += 1
    assert decoys > 500


def test_recorded_random_outputs_place_the_first_decoy_after_the_end_of_a_list(recorded: dict[str, list[Any]]) -> None:
    again = 0
    for trace in traces_of(recorded, "random_cardiff"):
        naive = PlainCardiff()
        for action in trace.actions.tolist():
            if action in DIRECT_OUTPUTS:
                naive.flat(DIRECT_OUTPUTS.index(action))
            else:
                entry = next(i for i, order in enumerate(DECOY_ORDER) if action in order)
                again += action in naive.used
                assert naive.flat(27 + entry) == action
    assert again > 50


def test_recorded_agent_sleeps_exactly_when_the_fingerprint_is_sleep(recorded: dict[str, list[Any]]) -> None:
    fingerprints = {0: 0, 1: 0, 2: 0}
    for trace in traces_of(recorded, "cardiff"):
        assert trace.actions[:3].tolist() == [51, 116, 55]
        naive = PlainCardiff()
        inputs = [naive.inputs(bits) for bits in trace.digits["obs"][:3]]
        (attacker,) = fingerprint(scan_memory(np.array(inputs[-1:])))
        fingerprints[int(attacker)] += 1
        assert (trace.actions[3:] == 0).all() == (attacker == 2)
    assert min(fingerprints.values()) > 10
