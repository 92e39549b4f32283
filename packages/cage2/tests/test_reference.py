"""Returns of random games against those measured on the original, and the statistics of the comparison."""

from __future__ import annotations

import numpy as np
import pytest

from cage2.reference import Cell, compare_returns, holm, reference_cells, summary, z_score


def test_returns_agree_with_the_original_in_every_cell() -> None:
    comparisons = compare_returns(reference_cells(), episodes=2_000, seed=1)
    result = summary(comparisons)
    assert result["cells"] == 111
    assert result["cells_of_equality"] == 9
    assert [c.as_dict for c in comparisons if not c.agrees] == []
    assert 0.7 < result["z_rms"] < 1.3
    assert result["z_max"] < 4


def test_wrong_rules_are_detected() -> None:
    cells = [
        cell
        for cell in reference_cells()
        if (cell.rules, cell.green, cell.red, cell.blue) == ("final", "Sleep", "B_line", "react_restore")
    ]
    others = [Cell(**{**cell.__dict__, "rules": "competition"}) for cell in cells]
    assert not all(c.agrees for c in compare_returns(others, episodes=4_000, seed=2))


def cell(mean: float, std: float) -> Cell:
    return Cell("final", "official", "Sleep", "sleep", "Sleep", 30, mean, std, 100, std / 10)


def test_z_by_hand() -> None:
    assert z_score(cell(0.0, 3.0), np.array([1.0, 3.0])) == pytest.approx(2 / np.sqrt(1 + 0.09))
    assert z_score(cell(0.0, 0.0), np.array([0.0])) is None


def test_holm_stops_at_the_first_that_passes() -> None:
    assert holm([0.1, 5.0, 3.0, -6.0], significance=0.01) == [False, True, True, True]
    assert holm([2.7, 2.7], significance=0.01) == [False, False]  # each alone would be rejected
    assert holm([2.7], significance=0.01) == [True]


def test_equality_is_required_where_the_original_is_constant() -> None:
    (good,), (bad,) = (compare_returns([cell(mean, 0.0)], episodes=50) for mean in (0.0, -1.0))
    assert good.agrees
    assert not bad.agrees
    assert good.z is None
