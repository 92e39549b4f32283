"""Losses of Q-learning by hand, and C51's projection against algorithm 1 of Bellemare et al. (2017)."""

import math

import pytest
import torch

from optimist.losses.q_learning import cross_entropy, large_margin, project, scattered, spread, td_losses, td_target


def test_the_target_uses_the_highest_next_value_and_no_value_after_an_end():
    next_q = torch.tensor([[1.0, 3.0], [5.0, 2.0]])
    target = td_target(torch.tensor([1.0, 2.0]), torch.tensor([0.9, 0.0]), next_q)
    assert target.tolist() == pytest.approx([1 + 0.9 * 3, 2.0])


def test_the_double_target_is_the_value_of_the_online_networks_action():
    target_q = torch.tensor([[1.0, 3.0], [5.0, 2.0]])
    online_q = torch.tensor([[4.0, 0.0], [0.0, 1.0]])
    target = td_target(torch.zeros(2), torch.full((2,), 0.5), target_q, online_q.argmax(-1))
    assert target.tolist() == [0.5, 1.0]  # not 1.5 and 2.5


def test_huber_is_linear_beyond_1_and_squared_is_not():
    values, targets = torch.tensor([0.0, 0.0, 3.0]), torch.tensor([0.5, -3.0, 3.0])
    assert td_losses(values, targets, "huber").tolist() == [0.125, 2.5, 0.0]
    assert td_losses(values, targets, "squared").tolist() == [0.25, 9.0, 0.0]


def test_the_margin_loss_by_hand():
    q = torch.tensor([[1.0, 0.5, -2.0], [1.0, 0.5, -2.0], [1.0, 0.0, -2.0]])
    margins = large_margin(q, torch.tensor([0, 1, 0]), 0.8)
    assert margins.tolist() == pytest.approx([0.5 + 0.8 - 1.0, 1.0 + 0.8 - 0.5, 0.0])


def test_the_margin_loss_raises_the_good_action_and_lowers_the_next_best():
    q = torch.tensor([[1.0, 0.5, -2.0]], requires_grad=True)
    large_margin(q, torch.tensor([1]), 0.8).sum().backward()
    assert q.grad.tolist() == [[1.0, -1.0, 0.0]]


def plain_projection(probabilities, ret, discount, atoms):
    """Algorithm 1 of Bellemare et al. (2017) as a loop over atoms."""
    low, high, count = atoms[0], atoms[-1], len(atoms)
    spacing = (high - low) / (count - 1)
    result = [0.0] * count
    for probability, atom in zip(probabilities, atoms, strict=True):
        place = (min(max(ret + discount * atom, low), high) - low) / spacing
        lower, upper = math.floor(place), math.ceil(place)
        if lower == upper:
            result[lower] += probability
        else:
            result[lower] += probability * (upper - place)
            result[upper] += probability * (place - lower)
    return result


def test_the_projection_by_hand():
    atoms = torch.tensor([0.0, 1.0, 2.0])
    probabilities = torch.tensor([[0.5, 0.25, 0.25]])
    # 0.5 + 0.5 z = 0.5, 1.0, 1.5
    projected = project(probabilities, torch.tensor([0.5]), torch.tensor([0.5]), atoms)
    assert projected.tolist() == [[0.25, 0.25 + 0.25 + 0.125, 0.125]]


@pytest.mark.parametrize("atoms", [2, 11, 51])
def test_the_projection_equals_algorithm_1(atoms):
    generator = torch.Generator().manual_seed(atoms)
    support = torch.linspace(-2.0, 3.0, atoms, dtype=torch.float64)
    probabilities = torch.rand(20, atoms, generator=generator, dtype=torch.float64).softmax(-1)
    returns = 3 * torch.randn(20, generator=generator, dtype=torch.float64)
    discounts = torch.where(torch.rand(20, generator=generator) < 0.3, 0.0, 0.97).double()
    projected = project(probabilities, returns, discounts, support)
    rows = zip(probabilities.tolist(), returns.tolist(), discounts.tolist(), strict=True)
    expected = [plain_projection(*row, support.tolist()) for row in rows]
    assert torch.allclose(projected, torch.tensor(expected, dtype=torch.float64), atol=1e-12)
    assert torch.allclose(projected.sum(-1), torch.ones(20, dtype=torch.float64))


def test_scattered_and_spread_agree():
    generator = torch.Generator().manual_seed(0)
    probabilities = torch.rand(40, 51, generator=generator).softmax(-1)
    places = 50 * torch.rand(40, 51, generator=generator)
    places[0], places[1], places[2, :3] = 0.0, 50.0, torch.tensor([7.0, 8.0, 49.999996])
    assert torch.allclose(scattered(probabilities, places), spread(probabilities, places), atol=1e-6)


def test_a_return_without_discounted_value_is_projected_to_its_atom():
    atoms = torch.linspace(-1.0, 1.0, 5)
    uniform = torch.full((2, 5), 0.2)
    projected = project(uniform, torch.tensor([0.5, 9.0]), torch.zeros(2), atoms)
    assert torch.allclose(projected, torch.tensor([[0, 0, 0, 1.0, 0], [0, 0, 0, 0, 1.0]]))


def test_the_cross_entropy_is_lowest_at_the_target():
    target = torch.tensor([[0.1, 0.6, 0.3]])
    at_target = cross_entropy(target.log(), target)
    assert at_target.item() == pytest.approx(-sum(p * math.log(p) for p in (0.1, 0.6, 0.3)))
    assert cross_entropy(torch.tensor([[0.0, 0.0, 0.0]]), target) > at_target
