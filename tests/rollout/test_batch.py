import dataclasses

import pytest
import torch

from optimist.errors import ShapeMismatch
from optimist.rollout.batch import Rollout


def make_rollout(**changes):
    numbers = torch.arange(6.0).reshape(3, 2)
    columns = {"rewards": numbers, "logp": -numbers, "values": numbers * 2, "next_values": numbers * 3}
    return Rollout(**({"obs": numbers[..., None], "actions": numbers.long(), "dones": numbers < 0} | columns | changes))


def test_flattening_keeps_rows_together_in_order_of_time():
    rollout = make_rollout()
    batch = rollout.flatten(rollout.rewards * 10, rollout.rewards * 100)
    numbers = torch.arange(6.0)
    assert batch.obs.equal(numbers[:, None])
    assert batch.actions.equal(numbers.long())
    assert batch.logp_old.equal(-numbers)
    assert batch.advantages.equal(numbers * 10)
    assert batch.returns.equal(numbers * 100)
    assert batch.values_old.equal(numbers * 2)
    assert batch.statistics_of is None


def test_rows_that_are_not_valid_are_left_out_of_batch_and_statistics():
    valid = torch.tensor([[True, False], [True, True], [False, True]])
    rollout = make_rollout(valid=valid)
    batch = rollout.flatten(rollout.rewards, rollout.rewards, standardized=True)
    assert batch.actions.tolist() == [0, 2, 3, 5]
    assert batch.statistics_of.tolist() == [0.0, 2.0, 3.0, 5.0]


def test_values_must_have_the_shape_of_the_rewards():
    with pytest.raises(ShapeMismatch, match="values"):
        dataclasses.replace(make_rollout(), values=torch.zeros(6))
