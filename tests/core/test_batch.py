import dataclasses

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from optimist.core.batch import Batch
from optimist.errors import ShapeMismatch


def make_batch(size, **more):
    numbers = torch.arange(float(size))
    return Batch(
        obs=numbers[:, None],
        actions=numbers.long(),
        logp_old=-numbers,
        advantages=numbers * 2,
        returns=numbers * 3,
        values_old=numbers * 4,
        **more,
    )


@given(st.integers(1, 30), st.integers(1, 40), st.integers(1, 3))
def test_every_row_comes_once_per_epoch_whole_and_in_minibatches_of_the_size(length, size, epochs):
    batch = make_batch(length, weights=torch.arange(float(length)) * 5)
    found = list(batch.minibatches(epochs, size, torch.Generator().manual_seed(0)))
    per_epoch = -(-length // size)
    assert len(found) == epochs * per_epoch
    for epoch in range(epochs):
        parts = found[epoch * per_epoch : (epoch + 1) * per_epoch]
        assert sorted(row for part in parts for row in part.actions.tolist()) == list(range(length))
        assert [len(part) for part in parts] == [min(size, length - begin) for begin in range(0, length, size)]
    for part in found:
        numbers = part.actions.float()
        for name, column in (("obs", numbers[:, None]), ("logp_old", -numbers), ("weights", numbers * 5)):
            assert getattr(part, name).equal(column)
        assert part.advantages.equal(numbers * 2)
        assert part.returns.equal(numbers * 3)
        assert part.values_old.equal(numbers * 4)


@pytest.mark.parametrize(
    ("length", "size", "lengths"),
    [
        (1000, 256, [256, 256, 488]),
        (512, 256, [256, 256]),
        (300, 256, [300]),
        (200, 256, [200]),
    ],
)
def test_what_remains_of_a_pass_can_join_its_last_minibatch(length, size, lengths):
    found = list(make_batch(length).minibatches(2, size, torch.Generator().manual_seed(0), merge_last=True))
    assert [len(part) for part in found] == lengths * 2
    one_pass = found[: len(lengths)]
    assert sorted(row for part in one_pass for row in part.actions.tolist()) == list(range(length))


def test_the_order_is_the_generators_and_changes_between_epochs():
    def orders(seed):
        found = make_batch(20).minibatches(2, 10, torch.Generator().manual_seed(seed))
        return [part.actions.tolist() for part in found]

    assert orders(1) == orders(1) != orders(2)
    assert orders(1)[:2] != orders(1)[2:]


def test_a_full_batch_draws_nothing():
    generator = torch.Generator().manual_seed(3)
    before = generator.get_state()
    list(make_batch(5).minibatches(4, 5, generator))
    assert generator.get_state().equal(before)


def test_the_statistics_are_not_cut_into_minibatches():
    batch = make_batch(6, statistics_of=torch.arange(6.0))
    assert all(len(part.statistics_of) == 6 for part in batch.minibatches(1, 2, torch.Generator()))


def test_all_rows_are_fresh_unless_said_otherwise():
    batch = make_batch(4)
    assert len(batch.of_fresh(batch.advantages)) == 4
    assert len(dataclasses.replace(batch, num_fresh=3).of_fresh(batch.advantages)) == 3


def test_a_joiner_sees_every_minibatch():
    class Marks:
        def join(self, minibatch):
            return dataclasses.replace(minibatch, num_fresh=len(minibatch) - 1)

    found = make_batch(7, joiner=Marks()).minibatches(2, 3, torch.Generator())
    assert [part.num_fresh for part in found] == [2, 2, 0, 2, 2, 0]


def test_columns_of_different_length_are_refused():
    with pytest.raises(ShapeMismatch, match="advantages"):
        dataclasses.replace(make_batch(4), advantages=torch.zeros(3))
