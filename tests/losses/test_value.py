import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from optimist.errors import ShapeMismatch
from optimist.losses.value import clipped_squared_error, squared_error

NUMBERS = st.floats(-10, 10, width=32)


def test_the_squared_error_by_hand():
    values, returns = torch.tensor([1.0, 2.0]), torch.tensor([0.0, 5.0])
    assert squared_error(values, returns).item() == 5.0  # (1 + 9) / 2
    assert squared_error(values, returns, torch.tensor([1.0, 0.0])).item() == 1.0  # the second row is as good as absent
    assert squared_error(values, returns, torch.tensor([1.0, 3.0])).item() == 7.0  # (1 + 3 · 9) / 4


def test_the_clipped_squared_error_by_hand():
    # V_clip = 0 + clip(V, ± 0.5): 0.5 and 0.25; R = 1 and 1
    # max((1 − 1)², (0.5 − 1)²) = 0.25; max((0.25 − 1)², the same) = 0.5625
    values, old, returns = torch.tensor([1.0, 0.25]), torch.zeros(2), torch.ones(2)
    assert clipped_squared_error(values, old, returns, 0.5).item() == (0.25 + 0.5625) / 2
    assert clipped_squared_error(values, old, returns, 0.5, torch.tensor([0.0, 1.0])).item() == 0.5625


def test_a_value_clipped_away_from_the_target_gets_no_gradient():
    values = torch.tensor([1.0], requires_grad=True)
    clipped_squared_error(values, torch.zeros(1), torch.tensor([1.2]), 0.5).backward()
    assert values.grad.item() == 0.0


@given(st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS), min_size=1, max_size=8), st.floats(0.1, 5))
def test_clipping_never_makes_the_error_smaller(rows, clip):
    values, old, returns = torch.tensor(rows).T
    assert clipped_squared_error(values, old, returns, clip) >= squared_error(values, returns)


def test_shapes_must_match():
    with pytest.raises(ShapeMismatch):
        squared_error(torch.zeros(3, 1), torch.zeros(3))
    with pytest.raises(ShapeMismatch):
        clipped_squared_error(torch.zeros(3), torch.zeros(3), torch.zeros(1), 0.1)
