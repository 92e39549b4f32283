"""Steps, Rollout and Batch: the shapes they require, and how a rollout becomes minibatches."""

import dataclasses

import numpy as np
import pytest
import torch
from gymnasium.vector import AutoresetMode
from hypothesis import given
from hypothesis import strategies as st

from optimist.core.steps import Rollout, Steps, require_same_shape
from optimist.errors import ConfigError, ShapeMismatch
from optimist.losses.actor_critic import clipped_surrogate
from tests.core.tables import make_batch, make_steps


def make_rollout(**changes):
    numbers = torch.arange(6.0).reshape(3, 2)
    columns = {"rewards": numbers, "logp": -numbers, "values": numbers * 2, "next_values": numbers * 3}
    return Rollout(**({"obs": numbers[..., None], "actions": numbers.long(), "dones": numbers < 0} | columns | changes))


def test_equal_shapes_pass():
    require_same_shape(rewards=torch.zeros(2, 3), values=torch.ones(2, 3), dones=torch.ones(2, 3, dtype=torch.bool))


def test_a_different_shape_is_named_with_the_one_expected():
    with pytest.raises(ShapeMismatch, match=r"logp is \[6\] but rewards is \[2, 3\]"):
        require_same_shape(rewards=torch.zeros(2, 3), logp=torch.zeros(6))


def test_shapes_that_would_broadcast_are_refused():
    with pytest.raises(ShapeMismatch):
        require_same_shape(rewards=torch.zeros(2, 1), logp=torch.zeros(2, 3))


def test_steps_of_different_shapes_are_refused():
    with pytest.raises(ShapeMismatch, match="dones"):
        make_steps(torch.zeros(3, 2), torch.zeros(3, 1))
    with pytest.raises(ShapeMismatch, match=r"expected as \[T, N, ...\]"):
        make_steps(torch.zeros(3, 2), torch.zeros(3, 2), obs=torch.zeros(6, 4))
    with pytest.raises(ShapeMismatch, match=r"rewards is \[0, 2\]; a rollout has at least one step"):
        make_steps(torch.zeros(0, 2), torch.zeros(0, 2))
    with pytest.raises(ShapeMismatch, match="obs is a ndarray; expected a torch tensor"):
        Steps(obs=np.zeros((3, 2)), **dict.fromkeys(("actions", "rewards", "logp", "dones"), torch.zeros(3, 2)))


@pytest.mark.parametrize("name", ["obs", "actions", "rewards", "logp", "dones"])
def test_a_missing_column_is_refused_by_name(name):
    steps = make_steps([[1.0]], [[1]])
    with pytest.raises(ShapeMismatch, match=f"{name} is a NoneType; expected a torch tensor"):
        dataclasses.replace(steps, **{name: None})


def cleanrl(**changes):
    """Three steps of two environments: the first ends at step 0, the second at step 1, the first again at step 2."""
    numbers = torch.arange(6.0).reshape(3, 2)
    columns = {"obs": numbers[..., None], "actions": numbers, "rewards": numbers, "logprobs": -numbers}
    dones, next_done = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), torch.tensor([1.0, 0.0])
    given = columns | {"dones": dones, "next_done": next_done, "autoreset": "SameStep"} | changes
    return Steps.from_cleanrl(**given)


@pytest.mark.parametrize("autoreset", ["SameStep", AutoresetMode.SAME_STEP])
def test_cleanrls_dones_are_moved_to_the_last_step_of_their_episode(autoreset):
    steps = cleanrl(autoreset=autoreset, groups=torch.ones(3, 2))
    assert steps.dones.tolist() == [[True, False], [False, True], [True, False]]
    assert steps.valid is None
    assert steps.logp.equal(-steps.rewards)
    assert steps.groups.equal(torch.ones(3, 2))


@pytest.mark.parametrize("autoreset", ["NextStep", AutoresetMode.NEXT_STEP])
def test_the_step_after_an_end_is_not_valid_where_it_only_resets(autoreset):
    rewards = torch.tensor([[1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    steps = cleanrl(rewards=rewards, autoreset=autoreset)
    assert steps.dones.tolist() == [[True, False], [False, True], [True, False]]
    assert steps.valid.tolist() == [[True, True], [False, True], [True, False]]
    shifted = cleanrl(rewards=rewards - 0.1, raw_rewards=rewards, autoreset=autoreset)
    assert shifted.valid.equal(steps.valid)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"autoreset": AutoresetMode.DISABLED}, ConfigError, r"autoreset is 'Disabled'; expected 'SameStep' or 'NextS"),
        ({"autoreset": None}, ConfigError, r"autoreset is None; .* pass envs.metadata\["),
        ({"autoreset": "NextStep"}, ConfigError, "a step after an end has a reward or ends an episode"),
        ({"next_done": torch.zeros(3)}, ShapeMismatch, r"next_done is \[3\] and dones \[3, 2\]; expected \[N\] and"),
        ({"dones": torch.zeros(2)}, ShapeMismatch, r"next_done is \[2\] and dones \[2\]"),
        ({"next_done": np.zeros(2)}, ShapeMismatch, "next_done is a ndarray; expected a torch tensor"),
    ],
)
def test_what_a_cleanrl_loop_cannot_mean_is_refused(changes, error, message):
    with pytest.raises(error, match=message):
        cleanrl(**changes)


def test_an_end_at_a_step_that_should_only_reset_is_refused():
    dones, next_done = torch.tensor([[0.0], [1.0], [1.0]]), torch.zeros(1)
    with pytest.raises(ConfigError, match="ends an episode"):
        Steps.from_cleanrl(
            **dict.fromkeys(("obs", "actions", "rewards", "logprobs"), torch.zeros(3, 1)),
            dones=dones,
            next_done=next_done,
            autoreset="NextStep",
        )


@pytest.mark.parametrize("progress", [-0.1, 900])
def test_a_progress_outside_0_and_1_is_refused(progress):
    with pytest.raises(ConfigError, match=f"progress must be between 0 and 1, got {progress}"):
        make_rollout(progress=progress)


def test_the_values_of_a_rollout_must_have_the_shape_of_its_rewards():
    with pytest.raises(ShapeMismatch, match="values"):
        dataclasses.replace(make_rollout(), values=torch.zeros(6))


def test_a_rollout_is_flattened_in_order_of_time():
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


def test_invalid_rows_are_left_out_of_batch_and_statistics():
    valid = torch.tensor([[True, False], [True, True], [False, True]])
    rollout = make_rollout(valid=valid)
    batch = rollout.flatten(rollout.rewards, rollout.rewards, standardized=True)
    assert batch.actions.tolist() == [0, 2, 3, 5]
    assert batch.statistics_of.tolist() == [0.0, 2.0, 3.0, 5.0]


@given(st.integers(1, 30), st.integers(1, 40), st.integers(1, 3))
def test_every_row_comes_once_per_epoch_in_minibatches_of_the_size(length, size, epochs):
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
def test_the_rest_of_a_pass_can_join_its_last_minibatch(length, size, lengths):
    found = list(make_batch(length).minibatches(2, size, torch.Generator().manual_seed(0), merge_last=True))
    assert [len(part) for part in found] == lengths * 2
    one_pass = found[: len(lengths)]
    assert sorted(row for part in one_pass for row in part.actions.tolist()) == list(range(length))


def test_each_epoch_has_an_order_of_its_own():
    def orders(seed):
        found = make_batch(20).minibatches(2, 10, torch.Generator().manual_seed(seed))
        return [part.actions.tolist() for part in found]

    assert orders(1) == orders(1) != orders(2)
    assert orders(1)[:2] != orders(1)[2:]


def test_a_full_batch_draws_no_random_numbers():
    generator = torch.Generator().manual_seed(3)
    before = generator.get_state()
    list(make_batch(5).minibatches(4, 5, generator))
    assert generator.get_state().equal(before)


def test_statistics_are_not_split_into_minibatches():
    batch = make_batch(6, statistics_of=torch.arange(6.0))
    assert all(len(part.statistics_of) == 6 for part in batch.minibatches(1, 2, torch.Generator()))


def test_all_rows_are_fresh_by_default():
    batch = make_batch(4)
    assert len(batch.fresh(batch.advantages)) == 4
    assert len(dataclasses.replace(batch, num_fresh=3).fresh(batch.advantages)) == 3


def replayed_rows(size, **more):
    rows = make_batch(size, weights=torch.full((size,), 0.25), value_weights=torch.zeros(size), **more)
    return dataclasses.replace(rows, actions=rows.actions + 50)


def test_replayed_rows_come_after_the_fresh_rows_which_stay_unchanged():
    fresh = make_batch(6, statistics_of=torch.arange(9.0))
    batch = fresh.joined(replayed_rows(3, num_fresh=0))
    assert (len(batch), batch.num_fresh) == (9, 6)
    for name in ("obs", "actions", "logp_old", "advantages", "returns", "values_old"):
        assert batch.fresh(getattr(batch, name)).equal(getattr(fresh, name))
    assert batch.actions[6:].tolist() == [50, 51, 52]
    assert batch.weights.tolist() == [1.0] * 6 + [0.25] * 3
    assert batch.value_weights.tolist() == [1.0] * 6 + [0.0] * 3
    assert batch.statistics_of is fresh.statistics_of


def test_weights_of_the_fresh_rows_are_kept():
    own = torch.arange(4.0)
    batch = make_batch(4, weights=own, value_weights=own * 2).joined(replayed_rows(2, num_fresh=0))
    assert batch.weights.tolist() == [0.0, 1.0, 2.0, 3.0, 0.25, 0.25]
    assert batch.value_weights.tolist() == [0.0, 2.0, 4.0, 6.0, 0.0, 0.0]


def test_replayed_rows_that_count_like_fresh_ones_leave_all_rows_fresh():
    batch = make_batch(4).joined(replayed_rows(2))
    assert batch.num_fresh == -1
    assert len(batch.fresh(batch.advantages)) == 6


def test_an_empty_batch_has_no_minibatches():
    empty = make_batch(4).rows(slice(0))
    assert list(empty.minibatches(3, 2, torch.Generator())) == []


def test_columns_of_different_lengths_are_refused():
    with pytest.raises(ShapeMismatch, match="advantages"):
        dataclasses.replace(make_batch(4), advantages=torch.zeros(3))


def test_a_forced_action_has_no_policy_loss_and_keeps_its_value_loss():
    forced = torch.tensor([[True, False], [False, False], [True, False]])
    rollout = make_rollout(forced=forced)
    batch = rollout.flatten(torch.zeros(3, 2), torch.zeros(3, 2))
    assert batch.weights.tolist() == [0.0, 1.5, 1.5, 1.5, 0.0, 1.5]  # a mean over six rows is one over the four chosen
    assert batch.value_weights is None
    assert make_rollout().flatten(torch.zeros(3, 2), torch.zeros(3, 2)).weights is None


def test_a_minibatch_of_forced_actions_has_a_policy_loss_of_zero():
    forced = torch.tensor([[True, True], [False, False], [False, False]])
    rows = make_rollout(forced=forced).flatten(torch.ones(3, 2), torch.zeros(3, 2)).rows(slice(0, 2))
    assert clipped_surrogate(rows.logp_old, rows.logp_old, rows.advantages, 0.2, rows.weights).item() == 0.0


def test_a_rollout_of_forced_actions_alone_is_refused():
    rollout = make_rollout(forced=torch.ones(3, 2, dtype=torch.bool))
    with pytest.raises(ConfigError, match=r"forced every action of a rollout.* set env.forced_actions = 'executed'"):
        rollout.flatten(torch.zeros(3, 2), torch.zeros(3, 2))
