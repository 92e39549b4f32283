"""Score of a defender: nine cells, intervals, leaderboard."""

import math

import numpy as np
import pytest

from cage2.agents.defender import PolicyDefender
from cage2.cardiff import CardiffDefender
from cage2.errors import ConfigError, UnknownName
from cage2.reference import reference_cells
from cage2.rules.state import REDS
from cage2.scoring import HORIZONS, CellScore, Score, leaderboard, play, rank_of, score

ASLEEP = PolicyDefender(lambda rows: np.eye(1, 145, dtype=np.float32).repeat(len(rows), 0))


@pytest.fixture(scope="module")
def asleep():
    return score(ASLEEP, rules="final", table="official", episodes=1000, greedy=True)


def test_there_are_nine_cells_and_their_sum(asleep):
    assert [(cell.red, cell.horizon) for cell in asleep.cells] == [(red, h) for red in REDS for h in HORIZONS]
    assert asleep.total == pytest.approx(sum(cell.mean for cell in asleep.cells))


def test_sleeping_defender_scores_as_in_the_original(asleep):
    cells = {
        (cell.red, cell.horizon): cell
        for cell in reference_cells()
        if (cell.blue, cell.rules, cell.table, cell.green) == ("sleep", "final", "official", "Sleep")
    }
    compared = 0
    for ours in asleep.cells:
        cell = cells.get((ours.red, ours.horizon))
        if cell is not None and cell.std > 0:
            error = math.sqrt(ours.error**2 + cell.stderr**2)
            assert abs(ours.mean - cell.mean) < 4 * error
            compared += 1
    assert compared >= 3
    assert asleep.cell("Sleep", 100).mean == 0.0


def test_a_seed_fixes_the_score_and_cells_are_different_games():
    network = np.random.default_rng(0).normal(size=(62, 36)).astype(np.float32)
    defender = CardiffDefender(lambda rows: rows.astype(np.float32) @ network)
    keywords = {"rules": "competition", "table": "cardiff", "episodes": 50, "greedy": False}
    first, again, other = (score(defender, **keywords, seed=seed) for seed in (1, 1, 2))
    assert first == again
    assert first != other
    returns = [
        play(defender, 50, red="Meander", horizon=30, rules="final", table="cardiff", greedy=True, seed=seed)
        for seed in (1, 1, 2)
    ]
    assert (returns[0] == returns[1]).all()
    assert (returns[0] != returns[2]).any()


def test_intervals_by_hand():
    cells = (CellScore("B_line", 30, 100, -3.0, 2.0), CellScore("Sleep", 30, 100, 0.0, 0.0))
    score_by_hand = Score("final", "official", "argmax", cells)
    assert score_by_hand.total == -3.0
    assert score_by_hand.half_width == pytest.approx(1.959964 * 0.2)
    assert score_by_hand.as_dict()["interval_95"] == pytest.approx([-3.392, -2.608], abs=1e-3)


def test_few_episodes_have_no_interval():
    few, enough = (CellScore("B_line", 30, episodes, -3.0, 2.0) for episodes in (4, 5))
    assert math.isnan(few.half_width)
    assert math.isnan(Score("final", "official", "argmax", (few, enough)).half_width)
    assert enough.half_width == pytest.approx(1.959964 * 2.0 / math.sqrt(5))


def test_leaderboard_is_complete_and_ordered():
    rows = leaderboard()["rows"]
    assert [row["place"] for row in rows] == list(range(1, 21))
    totals = [row["total"] for row in rows]
    assert totals == sorted(totals, reverse=True)
    for row in rows[:12]:  # the published totals are sums of cells before rounding
        assert sum(row["B_line"] + row["Meander"] + row["Sleep"]) == pytest.approx(row["total"], abs=0.03)
    assert rank_of(-50.0) == 1
    assert rank_of(-54.6) == 2
    assert rank_of(-4000.0) == 21


def test_bad_input_is_refused_by_name():
    with pytest.raises(ConfigError, match="episodes must be at least 1"):
        score(ASLEEP, rules="final", table="official", episodes=0, greedy=True)
    with pytest.raises(UnknownName, match="rule set"):
        score(ASLEEP, rules="finale", table="official", episodes=1, greedy=True)
