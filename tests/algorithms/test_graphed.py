"""What surrounds the graphs of PPO's gradient steps, with plain calls in the place of recordings."""

import pytest
import torch

from optimist.algorithms import graphed
from optimist.algorithms.graphed import GraphedSteps
from optimist.algorithms.ppo import PPO
from optimist.config import PPOConfig
from tests.algorithms.tasks import TableActorCritic, random_rollout
from tests.algorithms.test_graphed_replay import recorded


@pytest.fixture
def recordings(monkeypatch):
    found = []
    monkeypatch.setattr(graphed, "record", lambda *args, **more: found.append(args) or recorded(*args, **more))
    return found


def learned(*, with_graphs: bool):
    """Twelve updates on rollouts of which each has lost another number of dead steps."""
    learner = PPO(TableActorCritic(), PPOConfig(rollout_steps=16, minibatch_size=32, epochs=2))
    learner.graphed = GraphedSteps(learner) if with_graphs else None
    metrics = []
    for number in range(12):
        valid = torch.ones(16, 4, dtype=torch.bool)
        valid[:number, 0] = False
        metrics.append(learner.update(random_rollout(number, valid=valid)))
    return learner.flat.detach(), metrics


def test_a_few_shapes_are_recorded_and_others_learned_from_all_the_same(monkeypatch, recordings):
    monkeypatch.setattr(graphed, "MOST_SHAPES", 3)
    graphed_weights, graphed_metrics = learned(with_graphs=True)
    assert len(recordings) == 3  # of 32 rows, and of the first two remainders
    eager_weights, eager_metrics = learned(with_graphs=False)
    torch.testing.assert_close(graphed_weights, eager_weights)
    for one, other in zip(graphed_metrics, eager_metrics, strict=True):
        assert one == pytest.approx(other, rel=1e-4, abs=1e-6)


def test_without_dead_steps_one_shape_serves_the_run(recordings):
    learner = PPO(TableActorCritic(), PPOConfig(rollout_steps=16, minibatch_size=32, epochs=2))
    learner.graphed = GraphedSteps(learner)
    for number in range(3):
        learner.update(random_rollout(number))
    assert len(recordings) == 1
