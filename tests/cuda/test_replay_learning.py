"""CapturedDQN and CapturedRainbow on vectors: emulated graphs learn what the eager learners learn."""

import copy

import pytest
import torch

from optimist.algorithms.optimizers import CenteredRMSprop
from optimist.config.value_based import DQNConfig, RainbowConfig
from optimist.core.config import OPRConfig
from optimist.core.regularizer import OptimisticRegularizer
from optimist.cuda.learning import CapturedDQN, CapturedRainbow
from tests.algorithms.test_dqn import make
from tests.replay.rollouts import make_rollout, random_stream

SMALL = {
    "rollout_steps": 5, "gradient_steps": 3, "minibatch_size": 8, "learning_starts": 20, "replay_capacity": 100,
    "learning_rate": 1e-2, "target_interval": 5, "target_unit": "gradient_steps", "max_grad_norm": None,
}  # fmt: skip
LEARNERS = {
    "rmsprop": DQNConfig(optimizer="rmsprop", **SMALL),
    "adam": DQNConfig(optimizer="adam", double=True, **SMALL),
    "rainbow": RainbowConfig(atoms=5, value_min=-2.0, value_max=2.0, **SMALL),
}

pytestmark = pytest.mark.usefixtures("emulated_graphs")


def rollouts(number: int = 8):
    """Steps whose targets depend on a vector; with time limits, and in the second half with reset steps."""
    stream = random_stream(3, 5 * number, 2)
    stream["obs"] = torch.cat([stream["obs"], stream["obs"].cos()], -1) / 40
    stream["actions"] = stream["actions"] % 3
    valid = torch.rand(5 * number, 2, generator=torch.Generator().manual_seed(0)) > 0.2
    for start in range(0, 5 * number, 5):
        part = {name: column[start : start + 5] for name, column in stream.items()}
        late = start >= 5 * number / 2
        yield make_rollout(**part, valid=valid[start : start + 5] | part["truncated"] if late else None)


def make_learner(name, *, captured: bool, opr: bool):
    anchor = OptimisticRegularizer(OPRConfig(bc_batch_size=4, capacity_transitions=30), seed=2) if opr else None
    learner = make(LEARNERS[name], anchor)
    kind = type(learner)
    if captured:
        kind = CapturedRainbow if name == "rainbow" else CapturedDQN
    return kind(learner.policy, learner.config, anchor, seed=1)


@pytest.mark.parametrize("opr", [False, True], ids=["plain", "opr"])
@pytest.mark.parametrize("name", LEARNERS)
def test_captured_and_eager_updates_agree(name, opr):
    eager, captured = make_learner(name, captured=False, opr=opr), make_learner(name, captured=True, opr=opr)
    layouts = set()
    for rollout in rollouts():
        expected, found = eager.update(rollout), captured.update(rollout)
        assert found == pytest.approx(expected, rel=1e-3, abs=1e-5, nan_ok=True)
        layouts.add(captured.layout)
    torch.testing.assert_close(captured.flat, eager.flat, rtol=1e-3, atol=1e-5)
    torch.testing.assert_close(captured.target_flat, eager.target_flat, rtol=1e-3, atol=1e-5)
    assert captured.gradient_steps == eager.gradient_steps == 21
    assert len(layouts) >= 3  # nothing stored, time limits, reset steps
    assert set(captured.captured) == {opr}


@pytest.mark.parametrize("name", LEARNERS)
def test_restored_learner_continues_as_the_original(name):
    """Bit for bit: one that has captured nothing, and one whose graphs are of other tensors."""
    stream = list(rollouts())
    for done in range(2, 7):
        original, old, new = (make_learner(name, captured=True, opr=True) for _ in range(3))
        for rollout in stream[:done]:
            original.update(rollout)
        old.update(stream[0])
        old.update(stream[7])
        saved = copy.deepcopy(original.state_dict())
        for learner in (old, new):
            learner.load_state_dict(copy.deepcopy(saved))
        for rollout in stream[done:]:
            expected = original.update(rollout)
            assert old.update(rollout) == pytest.approx(expected, rel=0, abs=0, nan_ok=True)
            assert new.update(rollout) == pytest.approx(expected, rel=0, abs=0, nan_ok=True)
        assert old.flat.equal(original.flat)
        assert new.flat.equal(original.flat)


def test_learning_rate_as_a_tensor_takes_the_same_steps():
    ours, theirs = (torch.nn.Parameter(torch.linspace(-1, 1, 50)) for _ in range(2))
    settings = {"alpha": 0.95, "eps": 0.01}
    as_tensor = CenteredRMSprop([ours], lr=torch.tensor(1e-2), **settings)
    as_number = CenteredRMSprop([theirs], lr=1e-2, **settings)
    for seed in range(10):
        gradient = torch.randn(50, generator=torch.Generator().manual_seed(seed))
        ours.grad, theirs.grad = gradient.clone(), gradient.clone()
        as_tensor.step()
        as_number.step()
    assert torch.allclose(ours, theirs, rtol=1e-5, atol=1e-7)
