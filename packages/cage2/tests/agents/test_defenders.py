"""Defenders: policies, the Cardiff agent with one network or several, sampling."""

import numpy as np
import pytest

from cage2.agents.defender import Defender, PolicyDefender, choose_action
from cage2.cardiff import (
    CardiffDefender,
    CardiffInterface,
    CardiffVectorEnv,
    fall_back,
    fingerprint,
    scan_memory,
)
from cage2.cardiff_rules import OPENING, SLEEP_OUTPUT
from cage2.errors import ConfigError
from cage2.rules.state import B_LINE, MEANDER, SLEEPER
from cage2.vector_env import CageVectorEnv

GAMES, STEPS = 200, 60


def random_network(seed, inputs=62, outputs=36):
    weights = np.random.default_rng(seed).normal(size=(inputs, outputs)).astype(np.float32)
    return lambda rows: rows.astype(np.float32) @ weights


def generator():
    return np.random.default_rng(0)


def test_policy_and_cardiff_agents_are_defenders():
    assert isinstance(PolicyDefender(random_network(0, 52, 145)), Defender)
    assert isinstance(CardiffDefender(random_network(0)), Defender)


def test_cardiff_interface_equals_the_compiled_environment():
    game = {"red": "mixed", "green": "GreenAgent", "horizon": STEPS + 1, "table": "cardiff"}
    compiled, original = CardiffVectorEnv(GAMES, **game), CageVectorEnv(GAMES, **game)
    inputs, _ = compiled.reset(seed=1)
    observations, _ = original.reset(seed=1)
    interface, rng = CardiffInterface(GAMES), generator()
    for _ in range(STEPS):
        assert (interface.inputs(observations) == inputs).all()
        assert (interface.free_decoys() == compiled.free_decoys()).all()
        outputs = rng.integers(36, size=GAMES)
        inputs, *_ = compiled.step(outputs)
        observations, *_ = original.step(interface.flat_actions(outputs))


def test_fingerprint_selects_the_specialist_and_sleep_is_answered_by_sleep():
    networks = {B_LINE: random_network(1), MEANDER: random_network(2)}
    game = {"red": "mixed", "red_weights": (1, 1, 1), "horizon": STEPS + 1, "table": "cardiff"}
    trained_in = CardiffVectorEnv(GAMES, opening=True, sleep_output=True, **game)
    original = CageVectorEnv(GAMES, **game)
    inputs, infos = trained_in.reset(seed=2)
    observations, _ = original.reset(seed=2)
    defender = CardiffDefender(networks)
    defender.reset(GAMES)
    for step in range(STEPS):
        if step == 3:
            chosen = fingerprint(scan_memory(inputs))
            assert (chosen == infos["red"]).all()
        outputs = np.full(GAMES, SLEEP_OUTPUT)
        for red, network in networks.items() if step >= 3 else ():
            logits = network(inputs)
            best = fall_back(logits.argmax(1), logits, trained_in.free_decoys())
            outputs = np.where(chosen == red, best, outputs)
        inputs, expected, *_ = trained_in.step(outputs)
        actions = defender.act(observations, greedy=True, generator=generator())
        observations, rewards, *_ = original.step(actions)
        assert (observations == inputs[:, :52]).all()
        assert (rewards == expected).all()
    assert (actions[chosen == SLEEPER] == 0).all()


def test_specialist_for_sleep_acts_instead_of_sleeping():
    only = np.eye(36, dtype=np.float32)[[12]]  # always Analyse User1
    networks = {red: lambda rows: only.repeat(len(rows), 0) for red in (B_LINE, MEANDER, SLEEPER)}
    defender = CardiffDefender(networks)
    defender.reset(2)
    quiet = np.zeros((2, 52), np.int8)
    actions = [defender.act(quiet, greedy=True, generator=generator()).tolist() for _ in range(4)]
    assert actions == [[51, 51], [116, 116], [55, 55], [11, 11]]


def test_network_acts_from_the_start_without_the_opening():
    only = np.eye(36, dtype=np.float32)[[31]]  # always the next decoy on User2
    defender = CardiffDefender(lambda rows: only.repeat(len(rows), 0), opening=False)
    defender.reset(1)
    quiet = np.zeros((1, 52), np.int8)
    actions = [int(defender.act(quiet, greedy=True, generator=generator())[0]) for _ in range(5)]
    assert actions == [51, 116, 38, 90, 3]  # then the first output that is neither Restore nor used up


def test_reset_clears_the_memory():
    defender = CardiffDefender(random_network(3))
    env = CageVectorEnv(GAMES, red="Meander", horizon=STEPS, table="cardiff")
    plays = []
    for _ in range(2):
        observations, _ = env.reset(seed=4)
        defender.reset(GAMES)
        actions = []
        for _ in range(STEPS - 1):
            actions.append(defender.act(observations, greedy=False, generator=generator()))
            observations, *_ = env.step(actions[-1])
        plays.append(np.stack(actions))
    assert (plays[0] == plays[1]).all()
    assert len(OPENING) == 3
    assert len(np.unique(plays[0])) > 20


@pytest.mark.parametrize(
    ("networks", "opening"),
    [({B_LINE: None}, True), ({}, True), ({B_LINE: None, MEANDER: None}, False)],
)
def test_missing_specialists_or_opening_are_refused(networks, opening):
    with pytest.raises(ConfigError, match="specialists need the opening and one network each"):
        CardiffDefender(networks, opening=opening)


def test_sampled_actions_follow_the_softmax():
    logits = np.log(np.array([[0.1, 0.2, 0.7]], np.float32)).repeat(30_000, 0)
    drawn = choose_action(logits, greedy=False, generator=generator())
    assert np.bincount(drawn) / len(drawn) == pytest.approx([0.1, 0.2, 0.7], abs=0.01)
    assert (choose_action(logits, greedy=True, generator=generator()) == 2).all()
