"""Transitions are drawn by priority, with importance weights."""

import numpy as np
import pytest
import torch

from optimist.replay.prioritized import SMALLEST, PrioritizedReplay
from tests.replay.rollouts import make_rollout, random_stream


def filled(num_steps: int = 30, capacity: int = 200, **settings) -> PrioritizedReplay:
    replay = PrioritizedReplay(capacity, priority_exponent=0.5, **settings)
    stream = random_stream(2, num_steps, 2)
    for begin in range(0, num_steps, 5):
        rollout = make_rollout(**{name: column[begin : begin + 5] for name, column in stream.items()})
        replay.add(rollout, rollout.rewards)
    return replay


def test_new_steps_get_the_largest_priority_so_far():
    replay = filled(10)
    ready = replay.tree.weights[: replay.num_ready]
    assert ready.tolist() == [1.0] * 18
    replay.set_priorities(torch.tensor([0, 3]), torch.tensor([16.0, 4.0]))
    rollout = make_rollout(**random_stream(3, 5, 2))
    replay.add(rollout, rollout.rewards)
    weights = replay.tree.weights[: replay.num_ready]
    assert weights[0] == pytest.approx((16 + SMALLEST) ** 0.5)
    assert weights[3] == pytest.approx((4 + SMALLEST) ** 0.5)
    assert weights[18:].tolist() == pytest.approx([4.0] * 10, rel=1e-6)  # √16, the largest


@pytest.mark.parametrize("n_step", [1, 3])
def test_only_drawable_steps_have_a_priority_also_after_the_ring_wraps(n_step):
    replay = filled(60, 44, n_step=n_step)
    drawable = (torch.arange(replay.num_ready) + replay._first * 2) % replay.size
    expected = torch.zeros(replay.size, dtype=torch.float64)
    expected[drawable] = 1.0
    assert replay.tree.weights.equal(expected)


def test_dead_steps_have_no_priority():
    replay = PrioritizedReplay(50, priority_exponent=0.5)
    valid = torch.tensor([[True], [True], [False], [True], [True]])
    dones = torch.tensor([[False], [True], [True], [False], [False]])
    rollout = make_rollout(torch.arange(5.0).view(5, 1, 1), torch.ones(5, 1), dones, valid=valid)
    replay.add(rollout, rollout.rewards)
    assert replay.tree.weights[:5].tolist() == [1, 1, 0, 1, 0]


def test_weights_are_importance_weights_by_hand():
    replay = filled(30)
    losses = torch.linspace(0.1, 4.0, replay.num_ready)
    replay.set_priorities(torch.arange(replay.num_ready), losses)
    batch = replay.sample_by_priority(32, 0.4, torch.Generator().manual_seed(0))
    priorities = (losses.double() + SMALLEST).sqrt()
    probabilities = (priorities / priorities.sum())[batch.positions]
    expected = (replay.num_ready * probabilities) ** -0.4
    np.testing.assert_allclose(batch.weights, expected / expected.max(), rtol=1e-5)


def test_draws_follow_the_priorities():
    replay = filled(30)
    losses = torch.rand(replay.num_ready, generator=torch.Generator().manual_seed(0))
    replay.set_priorities(torch.arange(replay.num_ready), losses)
    generator = torch.Generator().manual_seed(1)
    positions = torch.cat([replay.sample_by_priority(500, 1.0, generator).positions for _ in range(40)])
    share = torch.bincount(positions, minlength=replay.num_ready).double() / len(positions)
    priorities = (losses.double() + SMALLEST).sqrt()
    assert torch.allclose(share, priorities / priorities.sum(), atol=3e-3)


def test_a_nan_loss_does_not_stop_drawing():
    replay = filled(30)
    replay.set_priorities(torch.tensor([0, 1]), torch.tensor([float("nan"), float("inf")]))
    assert bool(torch.isfinite(replay.tree.total))
    replay.sample_by_priority(8, 1.0, torch.Generator().manual_seed(0))
