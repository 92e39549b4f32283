"""Shipped agents load offline and score as recorded."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from cage2.agents.defender import Defender
from cage2.agents.shipped import FOLDER, SHIPPED_AGENTS, load_agent, origin_of
from cage2.errors import UnknownName
from cage2.expert.features import NUM_ACTOR_BITS
from cage2.scoring import score

RECORDED = Path(__file__).parents[4] / "results" / "cage2-best" / "score.json"
BARS = {"competition": -44.5, "final": -52.5}


@pytest.mark.parametrize("rules", ["final", "competition"])
def test_best_scores_as_recorded_and_loses_nothing_while_red_sleeps(rules: str) -> None:
    recorded = json.loads(RECORDED.read_text())["rules"][rules]["argmax"]
    found = score(load_agent("best", rules), rules=rules, table="official", episodes=2_000, greedy=True, seed=12)
    half_widths = found.half_width, recorded["total"] - recorded["interval_95"][0]
    assert abs(found.total - recorded["total"]) < 2.0 * math.hypot(*half_widths)  # 4 standard errors
    assert recorded["interval_95"][0] > BARS[rules]
    for cell in found.cells:
        if cell.red == "Sleep":
            assert (cell.mean, cell.std) == (0.0, 0.0)


@pytest.mark.parametrize("name", SHIPPED_AGENTS)
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


def test_weights_have_their_origin_and_are_small() -> None:
    for rules in BARS:
        assert origin_of(rules)["preset"] == "cage2/best"
        assert origin_of(rules)["rules"] == rules
        assert load_agent("best", rules).network.layers[0][0].shape[1] == NUM_ACTOR_BITS
    assert sum(path.stat().st_size for path in FOLDER.glob("*.npz")) < 1_000_000


def test_unknown_names_get_a_suggestion() -> None:
    with pytest.raises(UnknownName, match="did you mean 'best'"):
        load_agent("besst", "final")
    with pytest.raises(UnknownName, match="competition"):
        load_agent("best", "competitoin")
