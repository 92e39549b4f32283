import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from optimist.replay.past_steps import PastSteps
from tests.core.tables import make_episode


def past_steps(capacity: int, stack: int = 1) -> PastSteps:
    return PastSteps(capacity, exponent=0.6, importance_exponent=0.1, frame_stack=stack)


def drawable(past: PastSteps) -> set[tuple[int, float]]:
    """(label, return) of every step that a draw can give."""
    rows = past.draw(2_000, torch.Generator().manual_seed(0))
    return set(zip(rows.actions.tolist(), rows.returns.tolist(), strict=True))


def test_stored_steps_are_drawn_unchanged():
    past = past_steps(10)
    past.add(make_episode(3, label=7), torch.tensor([3.0, 2.0, 1.0]))
    rows = past.draw(50, torch.Generator().manual_seed(1))
    assert set(rows.returns.tolist()) == {3.0, 2.0, 1.0}
    for obs, value in zip(rows.obs.tolist(), rows.returns.tolist(), strict=True):
        assert obs == [7.0, 3.0 - value]
    assert rows.actions.eq(7).all()
    assert (past.num_transitions, past.num_bytes) == (3, 10 * (8 + 8 + 4))


def test_the_oldest_single_steps_are_overwritten():
    past = past_steps(5)
    past.add(make_episode(3, label=1), torch.tensor([1.0, 2.0, 3.0]))
    past.add(make_episode(4, label=2), torch.tensor([4.0, 5.0, 6.0, 7.0]))
    assert drawable(past) == {(1, 3.0), (2, 4.0), (2, 5.0), (2, 6.0), (2, 7.0)}


def test_an_episode_longer_than_the_buffer_keeps_its_end():
    past = past_steps(4)
    past.add(make_episode(9, label=1), torch.arange(9.0))
    assert drawable(past) == {(1, 5.0), (1, 6.0), (1, 7.0), (1, 8.0)}
    stacked = past_steps(6, stack=3)
    stacked.add(make_episode(9, label=1, stack=3), torch.arange(9.0))
    assert drawable(stacked) == {(1, 5.0), (1, 6.0), (1, 7.0), (1, 8.0)}


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=8), st.integers(1, 4), st.integers(8, 20))
def test_a_drawn_stack_is_always_the_one_that_was_seen(lengths, stack, capacity):
    past = past_steps(capacity, stack)
    for label, length in enumerate(lengths):
        past.add(make_episode(length, label=label, stack=stack), torch.arange(float(length)))
        rows = past.draw(100, torch.Generator().manual_seed(label))
        steps = rows.returns[:, None] + torch.arange(stack) if stack > 1 else rows.returns
        assert rows.obs[..., 0].eq(rows.actions.view(-1, *[1] * (stack > 1))).all()
        assert rows.obs[..., 1].equal(steps)
    newest = min(lengths[-1], capacity - stack + 1)
    assert newest <= past.num_transitions <= min(sum(lengths), capacity - stack + 1)


@pytest.mark.parametrize("stack", [1, 3])
def test_a_restored_buffer_equals_the_original(stack):
    past, other = past_steps(12, stack), past_steps(12, stack)
    other.load_state_dict(past.state_dict())
    assert other.num_transitions == 0
    for label in range(5):
        past.add(make_episode(4, label=label, stack=stack), torch.arange(4.0))
        past.set_priorities(torch.tensor([label + stack]), torch.tensor([0.1 * label]))
        other = past_steps(12, stack)
        other.load_state_dict(past.state_dict())
        assert other.num_transitions == past.num_transitions
        mine, its = (p.draw(64, torch.Generator().manual_seed(label)) for p in (past, other))
        assert all(getattr(mine, name).equal(getattr(its, name)) for name in ("obs", "actions", "returns", "weights"))
    for buffer in (past, other):
        buffer.add(make_episode(2, label=9, stack=stack), torch.arange(2.0))
    mine, its = (p.draw(64, torch.Generator().manual_seed(9)) for p in (past, other))
    assert mine.obs.equal(its.obs)


def test_steps_whose_action_was_forced_are_not_drawn():
    past = past_steps(10)
    past.add(make_episode(3, label=7, forced=torch.tensor([True, False, False])), torch.tensor([3.0, 2.0, 1.0]))
    assert drawable(past) == {(7, 2.0), (7, 1.0)}
    assert past.num_transitions == 2
