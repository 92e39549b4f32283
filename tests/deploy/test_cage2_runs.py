"""Runs on CAGE 2 loaded as defenders: each interface, several runs, shipped agents, bad input."""

import shutil
from dataclasses import replace

import numpy as np
import pytest

from cage2.agents.defender import Defender, PolicyDefender
from cage2.agents.shipped import SHIPPED_AGENTS
from cage2.cardiff import CardiffDefender, CardiffVectorEnv, fall_back
from cage2.expert.env import ExpertDefender, ExpertVectorEnv
from cage2.expert.features import NUM_FEATURES
from cage2.rules.state import B_LINE, MEANDER
from cage2.vector_env import CageVectorEnv
from optimist.api import load
from optimist.config.toml import to_toml
from optimist.deploy.cage2_runs import find_rules, load_defender, load_runs, make_defender, policy_logits
from optimist.errors import ConfigError, RunFolderError, UnknownName


def test_each_interface_has_its_defender(runs):
    kinds = {name: type(load_defender([path], "final")).__name__ for name, path in runs.items()}
    assert kinds == {
        "b_line": "CardiffDefender",
        "meander": "CardiffDefender",
        "mixed": "CardiffDefender",
        "plain": "PolicyDefender",
        "plain_normalized": "PolicyDefender",
        "meander_tanh": "CardiffDefender",
        "sleepy": "CardiffDefender",
        "expert": "ExpertDefender",
        "expert_unmasked": "ExpertDefender",
        "expert_mask_not_obeyed": "ExpertDefender",
    }
    assert all(isinstance(load_defender([path], "final"), Defender) for path in runs.values())


def test_cardiff_run_acts_as_in_its_environment_with_the_fall_back(runs):
    agent, defender = load(runs["mixed"]), load_defender([runs["mixed"]], "final")
    game = {"red": "mixed", "horizon": 40, "table": defender.table}
    trained_in, original = CardiffVectorEnv(64, opening=True, **game), CageVectorEnv(64, **game)
    inputs, _ = trained_in.reset(seed=3)
    observations, _ = original.reset(seed=3)
    defender.reset(64)
    logits_of = policy_logits(agent.policy)
    fell_back = 0
    for _ in range(39):
        logits = logits_of(inputs)
        outputs = fall_back(logits.argmax(1), logits, trained_in.free_decoys())
        fell_back += int((outputs != logits.argmax(1)).sum())
        inputs, expected, *_ = trained_in.step(outputs)
        actions = defender.act(observations, greedy=True, generator=np.random.default_rng(0))
        observations, rewards, *_ = original.step(actions)
        assert (observations == inputs[:, :52]).all()
        assert (rewards == expected).all()
    assert fell_back > 0


@pytest.mark.parametrize("name", ["expert", "expert_unmasked", "expert_mask_not_obeyed"])
def test_expert_run_acts_as_in_its_environment_with_or_without_the_mask(runs, name):
    agent, defender = load(runs[name]), load_defender([runs[name]], "final")
    game = {"red": "Meander", "horizon": 40}
    mask = agent.config.env.kwargs.get("mask", True)
    trained_in, original = ExpertVectorEnv(64, mask=mask, **game), CageVectorEnv(64, **game)
    rows, _ = trained_in.reset(seed=3)
    observations, _ = original.reset(seed=3)
    defender.reset(64)
    forbidden = 0
    for _ in range(39):
        outputs = agent.act(rows)
        useful = ExpertDefender(defender.network)
        useful.memories, useful.started = defender.memories.copy(), defender.started
        forbidden += int((useful.inputs(observations)[np.arange(64), NUM_FEATURES + outputs] == 0).sum())
        rows, expected, *_ = trained_in.step(outputs)
        actions = defender.act(observations, greedy=True, generator=np.random.default_rng(0))
        observations, rewards, *_ = original.step(actions)
        assert (rewards == expected).all()
    assert (forbidden > 0) == (name != "expert"), "the mask must matter in this test"


def test_plain_run_takes_the_argmax_of_its_policy(runs):
    agent, defender = load(runs["plain"]), load_defender([runs["plain"]], "final")
    observations = np.random.default_rng(0).integers(0, 2, (100, 52)).astype(np.int8)
    defender.reset(100)
    actions = defender.act(observations, greedy=True, generator=np.random.default_rng(0))
    assert (actions == agent.act(observations)).all()
    assert defender.table == "official"


def test_each_of_several_runs_defends_against_its_own_attacker(runs):
    defender = load_defender([runs["meander"], runs["b_line"]], "final")
    assert isinstance(defender, CardiffDefender)
    assert set(defender.networks) == {B_LINE, MEANDER}
    inputs = np.zeros((5, 62), np.int8)
    expected = policy_logits(load(runs["meander"]).policy)(inputs)
    assert (defender.networks[MEANDER](inputs) == expected).all()


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["b_line", "mixed"], "trained against mixed"),
        (["b_line", "b_line"], "trained against B_line like"),
        (["b_line", "plain"], "trained on optimist/CAGE2-v0"),
        (["expert", "b_line"], "trained on optimist/CAGE2Expert-v0"),
    ],
)
def test_runs_that_do_not_combine_as_specialists_are_refused(runs, names, message):
    with pytest.raises(ConfigError, match=message):
        load_defender([runs[name] for name in names], "final")


def test_specialists_need_the_same_opening_and_table(runs, tmp_path):
    other = tmp_path / "official"
    shutil.copytree(runs["meander"], other)
    config = load(runs["meander"]).config
    changed = replace(config, env=replace(config.env, kwargs={**config.env.kwargs, "table": "official"}))
    (other / "config.toml").write_text(to_toml(changed))
    with pytest.raises(ConfigError, match="differ in opening or table"):
        make_defender(load_runs([runs["b_line"], str(other)]))


def test_rules_default_to_those_of_the_training(runs):
    assert find_rules([runs["mixed"]]) == "competition"
    assert find_rules([runs["b_line"], runs["meander"]]) == "final"
    with pytest.raises(ConfigError, match="different rules"):
        find_rules([runs["b_line"], runs["mixed"]])


def test_shipped_agent_is_found_by_name_and_does_not_combine(runs, monkeypatch):
    asked = []

    def make_sleepy(rules):
        asked.append(rules)
        return PolicyDefender(lambda inputs: np.eye(1, 145, dtype=np.float32).repeat(len(inputs), 0))

    monkeypatch.setitem(SHIPPED_AGENTS, "sleepy", make_sleepy)
    defender = load_defender(["sleepy"], "competition")
    assert isinstance(defender, PolicyDefender)
    assert asked == ["competition"]
    with pytest.raises(ConfigError, match="cannot be combined"):
        load_defender(["sleepy", runs["b_line"]], "final")


def test_path_that_is_no_run_is_refused_in_one_line(tmp_path):
    with pytest.raises(UnknownName, match="no run folder or shipped agent 'nowhere'"):
        load_defender(["nowhere"], "final")
    with pytest.raises(RunFolderError):
        load_defender([str(tmp_path)], "final")
