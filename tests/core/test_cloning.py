"""L_BC and the weights of cloned steps: advantages, and how far an episode exceeds luck."""

import dataclasses
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from optimist.core.admission import GroupWindows
from optimist.core.anchor import anchor_loss
from optimist.core.cloning import (
    advantage_weights,
    bc_loss,
    chosen_weights,
    luck_weights,
    tail_weights,
    trust_weights,
)
from optimist.core.config import OPRConfig
from optimist.core.eviction import StoredEpisode
from optimist.core.regularizer import OptimisticRegularizer
from optimist.errors import ShapeMismatch
from tests.core.tables import (
    LOG_HALF,
    LOG_THREE_QUARTERS,
    TablePolicy,
    episodes,
    filled,
    make_steps,
    stored_rows,
    two_state_policy,
)


def test_the_cloning_loss_is_the_mean_negative_log_probability():
    assert bc_loss(torch.tensor([-1.0, -3.0])).item() == 2.0


def test_weights_multiply_each_step_and_the_mean_is_over_all_steps():
    # (0.5 · 1 + 0 · 3) / 2
    assert bc_loss(torch.tensor([-1.0, -3.0]), torch.tensor([0.5, 0.0])).item() == 0.25


def test_weights_get_no_gradient():
    logp = torch.tensor([-1.0, -3.0], requires_grad=True)
    weights = torch.tensor([0.5, 1.0], requires_grad=True)
    bc_loss(logp, weights).backward()
    assert weights.grad is None
    assert logp.grad.tolist() == [-0.25, -0.5]


def test_advantage_weights_by_hand():
    returns, values = torch.tensor([1.0, 0.2, 0.0, 5.0]), torch.tensor([0.5, 0.2, 1.0, 1.0])
    assert advantage_weights(returns, values).tolist() == [0.5, 0.0, 0.0, 1.0]


def test_advantage_weights_give_the_value_no_gradient():
    values = torch.tensor([0.5], requires_grad=True)
    assert not advantage_weights(torch.tensor([1.0]), values).requires_grad


def test_shapes_must_match():
    with pytest.raises(ShapeMismatch):
        bc_loss(torch.zeros(3), torch.zeros(1))
    with pytest.raises(ShapeMismatch):
        advantage_weights(torch.zeros(3), torch.zeros(1))


@given(st.floats(-100, 100, width=32), st.floats(-100, 100, width=32))
def test_advantage_weights_are_between_0_and_1_and_0_without_an_advantage(ret, value):
    weight = advantage_weights(torch.tensor([ret]), torch.tensor([value])).item()
    assert 0.0 <= weight <= 1.0
    if ret <= value:
        assert weight == 0.0


def stored(total_reward, group=0):
    row = torch.zeros(1, dtype=torch.int64)
    return StoredEpisode(total_reward, group, 0, False, 1, row, row)


def recent(returns, groups=None):
    windows = GroupWindows(100, 75.0)
    for total_reward, group in zip(returns, groups or [0] * len(returns), strict=True):
        windows.admits(total_reward, group)
    return windows


def test_luck_weights_by_hand():
    # m = 2, s = 2: R = 5, 6, 7, 9 are 1.5, 2, 2.5 and 3.5 deviations above the mean
    found = luck_weights([stored(r) for r in (5.0, 6.0, 7.0, 9.0, -9.0)], recent([0.0, 4.0]), luck=2.0)
    assert found == [0.0, 0.0, 0.5, 1.0, 0.0]


def test_a_goal_reached_in_one_of_100_episodes_exceeds_luck_and_one_in_4_does_not():
    rare, frequent = recent([1.0] + [0.0] * 99), recent([1.0, 0.0, 0.0, 0.0] * 25)
    assert luck_weights([stored(1.0)], rare, luck=2.0) == [1.0]
    assert luck_weights([stored(1.0)], frequent, luck=2.0) == [0.0]


def test_any_return_above_equal_recent_returns_exceeds_luck():
    equal = recent([0.0] * 5)
    assert luck_weights([stored(1e-9), stored(0.0), stored(-1.0)], equal, luck=2.0) == [1.0, 0.0, 0.0]


def test_luck_is_measured_by_the_returns_of_an_episodes_group():
    windows = recent([0.0, 4.0, 100.0, 104.0], groups=[0, 0, 1, 1])
    assert luck_weights([stored(8.0, 0), stored(104.0, 1)], windows, luck=2.0) == [1.0, 0.0]


def test_the_cloning_loss_leaves_out_episodes_within_luck():
    # recent returns 1 and 2: m = 1.5, s = 0.5; the stored ones are 1 deviation below and above
    for luck, weight in ((0.0, 1.0), (0.25, 0.75), (1.0, 0.0)):
        opr = filled(bc_coef=0.5, bc_weights="uniform", bc_luck=luck)
        expected = -0.5 * weight * LOG_THREE_QUARTERS / 2
        assert anchor_loss(opr, two_state_policy(), stored_rows(opr)).item() == pytest.approx(expected, rel=1e-5)
        assert opr.metrics()["opr/beyond_luck"] == pytest.approx(weight / 2)
        assert opr.metrics()["opr/bc_weight"] == pytest.approx(weight / 2)


def test_luck_weights_multiply_advantage_weights():
    # R = 1, 2 and V = 0.75, 1.5: advantages 0.25 and 0.5; luck weights 0 and 0.5
    opr = filled(bc_coef=1.0, bc_weights="advantage", bc_luck=0.5)
    expected = -0.5 * 0.5 * LOG_THREE_QUARTERS / 2
    loss = anchor_loss(opr, two_state_policy((0.75, 1.5)), stored_rows(opr))
    assert loss.item() == pytest.approx(expected, rel=1e-5)


def test_a_stored_episode_exceeds_luck_again_once_recent_returns_are_low():
    opr = filled(bc_coef=1.0, bc_weights="uniform", bc_luck=1.0, return_window=3)
    assert anchor_loss(opr, two_state_policy(), stored_rows(opr)).item() == 0.0
    opr.observe(episodes([-1.0, -1.0, -1.0]))
    expected = -(LOG_HALF + LOG_THREE_QUARTERS) / 2
    assert anchor_loss(opr, two_state_policy(), stored_rows(opr)).item() == pytest.approx(expected, rel=1e-5)


def test_without_luck_every_stored_episode_is_cloned():
    opr = filled(bc_coef=1.0, bc_weights="uniform")
    expected = -(LOG_HALF + LOG_THREE_QUARTERS) / 2
    assert anchor_loss(opr, two_state_policy(), stored_rows(opr)).item() == pytest.approx(expected, rel=1e-5)
    assert "opr/beyond_luck" not in opr.metrics()


def test_tail_weights_by_hand():
    # median 2, mean excess over it ((3 − 2) + (5 − 2))/2 = 2; n = 20, so the best (k = 1) is at 2 + 2 log 10 by luck
    windows, tenth = recent([0.0, 1.0, 2.0, 3.0, 5.0]), 2.0 + 2.0 * math.log(10.0)
    for above, weight in ((0.0, 0.0), (2.0, 0.0), (3.0, 0.5), (4.0, 1.0)):  # one scale above is not enough, two are
        assert tail_weights([stored(tenth + above)], windows, 20) == pytest.approx([weight])
    # the second best of 20 is at 2 + 2 log 5 by luck
    both = [stored(100.0), stored(2.0 + 2.0 * math.log(5.0) + 3.0)]
    assert tail_weights(both, windows, 20) == pytest.approx([1.0, 0.5])


def test_equal_returns_share_the_lowest_rank():
    windows = recent([0.0, 1.0, 2.0, 3.0, 5.0])
    once = 2.0 + 2.0 * math.log(5.0) + 3.0  # weight 0.5 as the second best of 20, see above
    assert tail_weights([stored(once), stored(once)], windows, 20) == pytest.approx([0.5, 0.5])


def test_any_return_above_equal_recent_returns_is_beyond_the_tail():
    windows = recent([0.0] * 5)
    assert tail_weights([stored(1e-9), stored(0.0), stored(-1.0)], windows, 1_000) == [1.0, 0.0, 0.0]


def test_the_best_of_many_exponential_returns_are_luck_by_the_tail_and_not_by_deviations():
    generator = torch.Generator().manual_seed(0)
    returns = torch.empty(20_000, dtype=torch.float64).exponential_(generator=generator).tolist()
    windows = GroupWindows(1_000, 75.0)
    for total_reward in returns[-1_000:]:
        windows.admits(total_reward, 0)
    best = [stored(total_reward) for total_reward in sorted(returns)[-500:]]
    tail, deviations = tail_weights(best, windows, len(returns)), luck_weights(best, windows, 2.0)
    assert sum(tail) / len(best) < 0.01
    assert sum(deviations) / len(best) > 0.7


def test_trust_weights_by_hand():
    start = torch.tensor([0.5, 0.5, 0.5]).log()
    logp = torch.tensor([0.54, 0.549, 0.56]).log()  # π/π_start: 1.08, 1.098 and 1.12
    assert trust_weights(logp, start, 0.1).tolist() == [1.0, 1.0, 0.0]


def test_a_step_outside_the_trust_region_is_not_cloned():
    # π was 1/2 in state 0 and 1/4 in state 1 at the start of the update, and is 1/2 and 3/4 now
    opr = filled(bc_coef=1.0, bc_weights="uniform", bc_trust=0.2)
    good = dataclasses.replace(stored_rows(opr), logp_start=torch.tensor([0.5, 0.25]).log())
    assert anchor_loss(opr, two_state_policy(), good).item() == pytest.approx(-LOG_HALF / 2)


def test_the_trust_region_is_around_the_policy_at_the_start_of_the_update():
    opr, policy = filled(bc_coef=1.0, bc_trust=0.2, bc_batch_size=3), two_state_policy()
    rows = opr.sample([4, 4], policy)
    with torch.no_grad():
        policy.logits.zero_()
    for good in rows:
        assert good.logp_start.exp().tolist() == pytest.approx([0.75 if state else 0.5 for state in good.obs.tolist()])


def test_the_mean_over_chosen_steps_leaves_out_forced_ones():
    forced = torch.tensor([True, False, False, True])
    assert chosen_weights(forced).tolist() == [0.0, 2.0, 2.0, 0.0]
    assert bc_loss(torch.tensor([-8.0, -1.0, -3.0, -9.0]), chosen_weights(forced)).item() == 2.0
    assert chosen_weights(torch.ones(2, dtype=torch.bool)).tolist() == [0.0, 0.0]


def test_a_forced_step_is_stored_and_never_cloned():
    opr = OptimisticRegularizer(OPRConfig(bc_coef=1.0, bc_weights="uniform", admission="gated"), gamma=1.0)
    opr.observe(
        make_steps([[0.0], [0.0], [1.0]], [[0], [0], [1]], obs=[[0], [1], [2]], forced=[[True], [False], [False]])
    )
    policy = TablePolicy()
    anchor_loss(opr, policy, opr.memory.at(*opr.memory._stored_steps())).backward()
    assert opr.memory.num_transitions == 3
    assert not policy.logits.grad[0].any()
    assert policy.logits.grad[1].any()
    rows = opr.memory.sample(200, torch.Generator().manual_seed(0))
    assert not rows.forced.any()  # its priority is the smallest there is
