"""CapturedPPO: gradient steps by emulated graphs, one for each of the first minibatch shapes."""

import copy
import dataclasses

import pytest
import torch

from optimist.algorithms.ppo import PPO
from optimist.config import PPOConfig, RunConfig
from optimist.core.anchor import NoAnchor
from optimist.core.config import OPRConfig
from optimist.core.regularizer import OptimisticRegularizer
from optimist.cuda import learning
from optimist.cuda.learning import CapturedPPO
from optimist.training import build
from tests.algorithms.tasks import TableActorCritic, random_rollout

CONFIG = PPOConfig(
    rollout_steps=16, minibatch_size=32, epochs=2, learning_rate_schedule="linear", entropy_coef_final=0.0
)
OPR = OPRConfig(bc_batch_size=8, augment_share=0.25, shaping_scale=0.5, augment_rows="recorded")

pytestmark = pytest.mark.usefixtures("emulated_graphs")


@pytest.fixture
def captures(monkeypatch):
    """The captures of a test."""
    found, capture = [], learning.capture
    monkeypatch.setattr(learning, "capture", lambda *args, **more: found.append(args) or capture(*args, **more))
    return found


def updates(learner, number=12, *, reset_steps=True):
    """Metrics of updates on rollouts; each has one more reset step than the one before, if asked."""
    for seed in range(number):
        valid = torch.ones(16, 4, dtype=torch.bool)
        valid[: seed * reset_steps, 0] = False
        yield learner.update(random_rollout(seed, valid=valid, progress=seed / number))


def assert_same_updates(captured, eager, **settings):
    for found, expected in zip(updates(captured, **settings), updates(eager, **settings), strict=True):
        assert found == pytest.approx(expected, rel=1e-4, abs=1e-6, nan_ok=True)
    torch.testing.assert_close(captured.flat, eager.flat)


def test_first_shapes_are_captured_and_further_ones_run_eagerly(monkeypatch, captures):
    monkeypatch.setattr(learning, "MAX_SHAPES", 3)
    assert_same_updates(CapturedPPO(TableActorCritic(), CONFIG), PPO(TableActorCritic(), CONFIG))
    assert len(captures) == 3  # 32 rows, and the first two remainders


def test_one_shape_is_captured_without_reset_steps(captures):
    list(updates(CapturedPPO(TableActorCritic(), CONFIG), 3, reset_steps=False))
    assert len(captures) == 1


@pytest.mark.parametrize(
    "changes",
    [{}, {"sampling": "uniform", "bc_luck": 0.5}, {"bc_coef": 0.0}, {"bc_phase_interval": 2}],
    ids=["prioritized", "luck", "replayed", "phases"],
)
def test_captured_and_eager_updates_with_opr_agree(captures, changes):
    def anchor():
        return OptimisticRegularizer(dataclasses.replace(OPR, **changes), seed=2)

    captured, eager = CapturedPPO(TableActorCritic(), CONFIG, anchor()), PPO(TableActorCritic(), CONFIG, anchor())
    assert_same_updates(captured, eager, reset_steps=False)
    assert captured.anchor.memory.episodes
    assert len(captures) == 1


def test_restored_learner_continues_as_the_original(captures):
    original, restored = (CapturedPPO(TableActorCritic(), CONFIG, OptimisticRegularizer(OPR)) for _ in range(2))
    list(updates(original, 3))
    list(updates(restored, 5))  # its graphs are of other tensors
    restored.load_state_dict(copy.deepcopy(original.state_dict()))
    assert list(updates(restored, 4)) == list(updates(original, 4))
    assert restored.flat.equal(original.flat)


def test_capture_leaves_no_trace(monkeypatch):
    learner, capture, found = CapturedPPO(TableActorCritic(), CONFIG, OptimisticRegularizer(OPR)), learning.capture, []

    def checked(work, **more):
        priorities = learner.anchor.memory.pools["priorities"]
        tensors = [learner.flat.data, *learner.optimizer.state[learner.flat].values(), priorities]
        before = [tensor.clone() for tensor in tensors]
        graph = capture(work, **more)
        found.append([tensor.equal(old) for tensor, old in zip(tensors, before, strict=True)])
        return graph

    monkeypatch.setattr(learning, "capture", checked)
    list(updates(learner, 3))
    assert found[0] == [True] * 5  # weights, step, two moments, priorities
    assert all(all(same) for same in found)


def test_learner_of_another_package_learns_eagerly(monkeypatch):
    class OwnPPO(PPO):
        pass

    config = RunConfig(algorithm=CONFIG)
    assert type(build.make_algorithm(config, TableActorCritic(), NoAnchor())) is CapturedPPO
    monkeypatch.setitem(build.LEARNERS, PPOConfig, OwnPPO)
    assert type(build.make_algorithm(config, TableActorCritic(), NoAnchor())) is OwnPPO
