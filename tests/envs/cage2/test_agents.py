"""Agents that come with the package: they load offline and are worth what was recorded of them."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open

from optimist.envs.cage2.agents import LOADERS, load_agent
from optimist.envs.cage2.agents.best import FOLDER, weights_of
from optimist.envs.cage2.defender import Defender
from optimist.envs.cage2.expert import NUM_ACTOR_BITS
from optimist.envs.cage2.score import score_defender
from optimist.errors import UnknownName

RECORDED = Path(__file__).parents[3] / "results" / "cage2" / "best" / "score.json"
BARS = {"competition": -44.5, "final": -52.5}


@pytest.mark.parametrize("rules", ["final", "competition"])
def test_best_is_worth_what_was_recorded_and_pays_nothing_while_red_sleeps(rules: str) -> None:
    recorded = json.loads(RECORDED.read_text())["rules"][rules]["argmax"]
    score = score_defender(
        load_agent("best", rules), rules=rules, table="official", episodes=2_000, greedy=True, seed=12
    )
    half_widths = score.half_width, recorded["total"] - recorded["interval_95"][0]
    assert abs(score.total - recorded["total"]) < 2.0 * math.hypot(*half_widths)  # 4 standard errors
    assert recorded["interval_95"][0] > BARS[rules]
    for cell in score.cells:
        if cell.red == "Sleep":
            assert (cell.mean, cell.std) == (0.0, 0.0)


@pytest.mark.parametrize("name", LOADERS)
@pytest.mark.parametrize("rules", ["final", "competition"])
def test_shipped_agents_are_defenders(name: str, rules: str) -> None:
    defender = load_agent(name, rules)
    assert isinstance(defender, Defender)
    defender.reset(3)
    generator = np.random.default_rng(0)
    for greedy in (True, False):
        actions = defender.act(np.zeros((3, 52), np.int8), greedy=greedy, generator=generator)
        assert actions.shape == (3,)
        assert ((actions >= 0) & (actions < 145)).all()


def test_weights_say_where_they_come_from_and_are_small() -> None:
    for rules in BARS:
        with safe_open(weights_of(rules), "numpy") as file:
            assert file.metadata()["preset"] == "cage2/best"
            assert file.metadata()["rules"] == rules
            assert file.get_tensor("0.weight").shape[1] == NUM_ACTOR_BITS
    assert sum(path.stat().st_size for path in FOLDER.glob("*.safetensors")) < 1_000_000


def test_unknown_names_get_a_suggestion() -> None:
    with pytest.raises(UnknownName, match="did you mean 'best'"):
        load_agent("besst", "final")
    with pytest.raises(UnknownName, match="competition"):
        load_agent("best", "competitoin")
