import pytest
import torch

from optimist.replay.rows import PrioritizedRows


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_rows_are_drawn_in_proportion_to_p_to_the_alpha():
    table = PrioritizedRows(5, exponent=0.5, importance_exponent=0.4)
    table.prioritize(torch.tensor([0, 1, 3]))
    table.set_priorities(torch.tensor([0, 1, 3]), torch.tensor([0.04, 0.16, 1.0]))
    rows, _ = table.draw_rows(100_000, generator())
    shares = torch.bincount(rows, minlength=5) / 100_000
    assert shares.tolist() == pytest.approx([0.2 / 1.6, 0.4 / 1.6, 0.0, 1.0 / 1.6, 0.0], abs=0.01)


def test_importance_weights_by_hand():
    # P = 0.125, 0.25, 0.625; (3 P)^−0.4 over that of the rarest row.
    table = PrioritizedRows(5, exponent=0.5, importance_exponent=0.4)
    table.prioritize(torch.tensor([0, 1, 3]))
    table.set_priorities(torch.tensor([0, 1, 3]), torch.tensor([0.04, 0.16, 1.0]))
    rows, weights = table.draw_rows(200, generator())
    expected = {0: 1.0, 1: 2.0**-0.4, 3: 5.0**-0.4}
    assert weights.tolist() == pytest.approx([expected[row] for row in rows.tolist()])


def test_new_rows_get_the_largest_priority_so_far():
    table = PrioritizedRows(4, exponent=1.0, importance_exponent=0.0)
    table.prioritize(torch.tensor([0]))
    assert table.powers[0] == 1.0
    table.set_priorities(torch.tensor([0]), torch.tensor([3.0]))
    table.set_priorities(torch.tensor([0]), torch.tensor([0.5]))
    table.prioritize(torch.tensor([1]))
    assert table.powers.tolist() == [0.5, 3.0, 0.0, 0.0]


def test_a_removed_row_is_never_drawn_at_any_position():
    for gone in (0, 4, 9):
        table = PrioritizedRows(10, exponent=0.6, importance_exponent=0.1)
        table.prioritize(torch.arange(10))
        table.remove(torch.tensor([gone]))
        rows, weights = table.draw_rows(5_000, generator(gone))
        assert gone not in rows.tolist()
        assert weights.isfinite().all()


def test_a_network_that_diverged_leaves_usable_priorities():
    table = PrioritizedRows(3, exponent=0.6, importance_exponent=0.1)
    table.prioritize(torch.arange(3))
    table.set_priorities(torch.arange(3), torch.tensor([float("nan"), float("inf"), -1.0]))
    assert table.powers.isfinite().all()
    assert (table.powers > 0).all()


def test_a_draw_at_the_very_end_stays_on_the_last_row_with_a_priority(monkeypatch):
    table = PrioritizedRows(6, exponent=1.0, importance_exponent=0.1)
    table.prioritize(torch.tensor([1, 3]))
    monkeypatch.setattr(torch, "rand", lambda size, **_: torch.ones(size, dtype=torch.float64))
    rows, _ = table.draw_rows(4, generator())
    assert rows.tolist() == [3, 3, 3, 3]


def test_priorities_are_restored_from_their_state():
    table, other = PrioritizedRows(4, 0.6, 0.1), PrioritizedRows(4, 0.6, 0.1)
    table.prioritize(torch.arange(3))
    table.set_priorities(torch.tensor([1]), torch.tensor([7.0]))
    other.load_state_dict(table.state_dict())
    assert other.powers.equal(table.powers)
    assert other.largest == 7.0


def test_rows_are_written_over_the_oldest_and_restored():
    table, other = PrioritizedRows(4, 0.6, 0.1), PrioritizedRows(4, 0.6, 0.1)
    for first in (0, 3):
        rows = table.advance(3)
        table.write("names", rows, torch.arange(first, first + 3))
        table.prioritize(rows)
    assert (table.columns["names"].tolist(), table.head, table.filled) == ([4, 5, 2, 3], 2, 4)
    assert table.num_bytes == 4 * 8
    other.load_state_dict(table.state_dict())
    assert other.columns["names"].tolist() == [4, 5, 2, 3]
    assert (other.head, other.filled, other.num_bytes) == (2, 4, 32)
    with pytest.raises(ValueError, match="the saved replay has 4 rows, this one 5"):
        PrioritizedRows(5, 0.6, 0.1).load_state_dict(table.state_dict())
