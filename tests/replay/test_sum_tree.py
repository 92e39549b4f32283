"""The wide tree against a plain cumulative sum."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from optimist.replay.prioritized import WIDTH, WIDTH_ON_GPU, SumTree


def plain_find(weights: np.ndarray, share: float) -> int:
    """The first leaf at which the running sum exceeds the share of the total, walked leaf by leaf."""
    mass, running = share * weights.sum(), 0.0
    for leaf, weight in enumerate(weights):
        running += weight
        if running > mass:
            return leaf
    return int(np.flatnonzero(weights)[-1])


def test_leaves_are_found_by_hand():
    tree = SumTree(4)
    tree.set(torch.arange(4), torch.tensor([1.0, 0.0, 2.0, 1.0]))
    assert float(tree.total) == 4.0
    shares = torch.tensor([0.0, 0.2499, 0.25, 0.7499, 0.75, 0.9999])
    assert tree.find(shares).tolist() == [0, 0, 2, 2, 3, 3]


@pytest.mark.parametrize("width", [WIDTH, WIDTH_ON_GPU, 2])
@pytest.mark.parametrize("size", [1, WIDTH - 1, WIDTH, WIDTH + 1, WIDTH**2 + 3])
def test_the_tree_finds_what_a_plain_walk_finds(size, width):
    generator = np.random.default_rng(size)
    weights = generator.integers(0, 5, size).astype(float)  # whole numbers: every sum is exact
    weights[generator.integers(size)] = 3.0
    tree = SumTree(size, width=width)
    tree.set(torch.arange(size), torch.from_numpy(weights))
    shares = generator.random(200)
    assert tree.find(torch.from_numpy(shares)).tolist() == [plain_find(weights, share) for share in shares]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 299), st.floats(0, 1e6)), min_size=1, max_size=40), st.integers(0, 10**6))
def test_sums_stay_exact_and_empty_leaves_are_never_found(changes, seed):
    tree, weights = SumTree(300), np.zeros(300)
    for leaf, weight in changes:
        weights[leaf] = weight
        tree.set(torch.tensor([leaf, leaf]), torch.tensor([weight, weight], dtype=torch.float64))
    assert float(tree.total) == pytest.approx(weights.sum(), rel=1e-12)
    if weights.sum() > 0:
        shares = torch.cat([torch.rand(20, generator=torch.Generator().manual_seed(seed)), torch.tensor([1.0 - 1e-7])])
        assert (weights[tree.find(shares).numpy()] > 0).all()


def test_leaves_are_drawn_in_proportion():
    tree = SumTree(500)
    weights = torch.rand(500, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    tree.set(torch.arange(500), weights)
    counts = torch.bincount(tree.find((torch.arange(200_000) + 0.5) / 200_000), minlength=500)
    assert torch.allclose(counts.double() / 200_000, weights / weights.sum(), atol=2e-5)
