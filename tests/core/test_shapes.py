import pytest
import torch

from optimist.core.shapes import require_same_shape
from optimist.errors import ShapeMismatch


def test_equal_shapes_pass():
    require_same_shape(rewards=torch.zeros(2, 3), values=torch.ones(2, 3), dones=torch.ones(2, 3, dtype=torch.bool))


def test_a_different_shape_is_named_with_the_one_expected():
    with pytest.raises(ShapeMismatch, match=r"logp is \[6\] but rewards is \[2, 3\]"):
        require_same_shape(rewards=torch.zeros(2, 3), logp=torch.zeros(6))


def test_shapes_that_would_broadcast_are_refused():
    with pytest.raises(ShapeMismatch):
        require_same_shape(rewards=torch.zeros(2, 1), logp=torch.zeros(2, 3))
