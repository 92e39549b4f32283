"""Q-learning's terms by hand."""

import pytest
import torch

from optimist.losses.q_learning import large_margin, td_losses, td_target


def test_the_target_takes_the_best_next_value_and_stops_at_an_end():
    next_q = torch.tensor([[1.0, 3.0], [5.0, 2.0]])
    target = td_target(torch.tensor([1.0, 2.0]), torch.tensor([0.9, 0.0]), next_q)
    assert target.tolist() == pytest.approx([1 + 0.9 * 3, 2.0])


def test_the_double_target_values_the_action_the_online_network_chose():
    target_q = torch.tensor([[1.0, 3.0], [5.0, 2.0]])
    online_q = torch.tensor([[4.0, 0.0], [0.0, 1.0]])
    target = td_target(torch.zeros(2), torch.full((2,), 0.5), target_q, online_q.argmax(-1))
    assert target.tolist() == [0.5, 1.0]  # not 1.5 and 2.5


def test_huber_is_linear_beyond_1_and_squared_is_not():
    values, targets = torch.tensor([0.0, 0.0, 3.0]), torch.tensor([0.5, -3.0, 3.0])
    assert td_losses(values, targets, "huber").tolist() == [0.125, 2.5, 0.0]
    assert td_losses(values, targets, "squared").tolist() == [0.25, 9.0, 0.0]


def test_the_margin_counts_by_how_much_another_action_comes_too_close():
    q = torch.tensor([[1.0, 0.5, -2.0], [1.0, 0.5, -2.0], [1.0, 0.0, -2.0]])
    margins = large_margin(q, torch.tensor([0, 1, 0]), 0.8)
    assert margins.tolist() == pytest.approx([0.5 + 0.8 - 1.0, 1.0 + 0.8 - 0.5, 0.0])


def test_the_margin_pushes_the_good_action_up_and_its_nearest_rival_down():
    q = torch.tensor([[1.0, 0.5, -2.0]], requires_grad=True)
    large_margin(q, torch.tensor([1]), 0.8).sum().backward()
    assert q.grad.tolist() == [[1.0, -1.0, 0.0]]
