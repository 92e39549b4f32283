"""What surrounds the graphs of value-based learners, with plain calls in the place of recordings."""

from types import SimpleNamespace

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from optimist.algorithms import dqn, graphed_replay
from optimist.algorithms.value_based_config import DQNConfig, RainbowConfig
from optimist.core.config import OPRConfig
from optimist.core.regularizer import OptimisticRegularizer
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
ASKING = {"_local_scalar_dense", "nonzero", "equal", "masked_select", "is_nonzero", "lift_fresh", "unique"}


def recorded(work, *, generators=(), kept=()):
    """As `record` does it: try it, then put back what it was told to."""
    before = [tensor.clone() for tensor in kept]
    states = [generator.get_state() for generator in generators]
    for _ in range(3):
        work()
    for tensor, old in zip(kept, before, strict=True):
        tensor.copy_(old)
    for generator, state in zip(generators, states, strict=True):
        generator.set_state(state)
    return SimpleNamespace(replay=work)


@pytest.fixture(autouse=True)
def without_a_gpu(monkeypatch):
    monkeypatch.setattr(graphed_replay, "record", recorded)
    monkeypatch.setattr(dqn, "DRAWN_TOGETHER", 1)


def rollouts(number: int = 8):
    """Steps in which a vector says what follows; time limits from the start, dead steps in the second half."""
    stream = random_stream(3, 5 * number, 2)
    stream["obs"] = torch.cat([stream["obs"], stream["obs"].cos()], -1) / 40
    stream["actions"] = stream["actions"] % 3
    valid = torch.rand(5 * number, 2, generator=torch.Generator().manual_seed(0)) > 0.2
    for begin in range(0, 5 * number, 5):
        part = {name: column[begin : begin + 5] for name, column in stream.items()}
        late = begin >= 5 * number / 2
        yield make_rollout(**part, valid=valid[begin : begin + 5] | part["truncated"] if late else None)


def made(name, *, graphs: bool, opr: bool):
    anchor = OptimisticRegularizer(OPRConfig(bc_batch_size=4, capacity_transitions=30), seed=2) if opr else None
    learner = make(LEARNERS[name], anchor)
    return type(learner)(learner.policy, learner.config, anchor, seed=1, graphs=graphs)


@pytest.mark.parametrize("opr", [False, True], ids=["plain", "opr"])
@pytest.mark.parametrize("name", LEARNERS)
def test_the_same_is_learnt_and_recording_leaves_no_trace(name, opr):
    eager, graphed = made(name, graphs=False, opr=opr), made(name, graphs=True, opr=opr)
    seen = set()
    for rollout in rollouts():
        expected, found = eager.update(rollout), graphed.update(rollout)
        assert found == pytest.approx(expected, rel=1e-3, abs=1e-5, nan_ok=True)
        seen.add(graphed.graphed.layout)
    torch.testing.assert_close(graphed.flat, eager.flat, rtol=1e-3, atol=1e-5)
    torch.testing.assert_close(graphed.target_flat, eager.target_flat, rtol=1e-3, atol=1e-5)
    assert graphed.gradient_steps == eager.gradient_steps == 21
    assert len(seen) >= 3  # nothing yet, time limits, dead steps
    assert set(graphed.graphed.graphs) == {opr}


@pytest.mark.parametrize("name", ["rmsprop", "rainbow"])
def test_what_is_recorded_asks_for_no_number(name):
    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.add(func.__name__.split(".")[0])
            return func(*args, **(kwargs or {}))

    seen: set[str] = set()
    learner = made(name, graphs=True, opr=True)
    for rollout in rollouts(6):
        learner.update(rollout)
    assert learner.graphed.graphs.keys() == {True}
    with Watch():
        learner.graphed._work(True)
    assert {"index_select", "mm"} & seen
    assert not ASKING & seen


def test_a_tensor_as_learning_rate_makes_the_same_steps():
    ours, theirs = (torch.nn.Parameter(torch.linspace(-1, 1, 50)) for _ in range(2))
    settings = {"alpha": 0.95, "eps": 0.01}
    one = dqn.CenteredRMSprop([ours], lr=torch.tensor(1e-2), **settings)
    other = dqn.CenteredRMSprop([theirs], lr=1e-2, **settings)
    for i in range(10):
        gradient = torch.randn(50, generator=torch.Generator().manual_seed(i))
        ours.grad, theirs.grad = gradient.clone(), gradient.clone()
        one.step()
        other.step()
    assert torch.allclose(ours, theirs, rtol=1e-5, atol=1e-7)
