"""OptimisticRegularizer by hand: admission, shaping, cloning, cloning phases, replayed rows, metrics, memory bound."""

import dataclasses
import math

import pytest
import torch

from optimist.core.anchor import anchor_loss
from optimist.core.config import OPRConfig
from optimist.core.regularizer import OptimisticRegularizer, max_bytes
from optimist.core.steps import Steps
from optimist.errors import ConfigError
from tests.core.tables import (
    LOG_HALF,
    LOG_THREE_QUARTERS,
    TablePolicy,
    episodes,
    filled,
    make_batch,
    make_steps,
    regularizer,
    stored_rows,
    two_state_policy,
)

ZERO = {"shaping_scale": 0.0, "bc_coef": 0.0, "augment_share": 0.0, "bc_phase_interval": 0}


def stored_returns(opr):
    return [e.total_reward for e in opr.memory.episodes]


def test_the_papers_rule_admits_returns_above_the_threshold():
    opr = regularizer(admission="paper", retention="fifo")
    opr.observe(episodes([1.0, 1.0, 2.0, 2.0, 0.0]))
    # τ after each: 1, 1, 1.5, 2 and 2 (R = 2 is not above 2)
    assert stored_returns(opr) == [2.0]
    assert opr.metrics()["opr/threshold"] == 2.0
    assert opr.metrics()["opr/admitted"] == 1


def test_the_gated_rule_admits_returns_that_reach_the_threshold():
    opr = regularizer(admission="gated", retention="fifo")
    opr.observe(episodes([1.0, 1.0, 2.0, 2.0, 0.0]))
    assert stored_returns(opr) == [1.0, 1.0, 2.0, 2.0]


def test_a_group_with_low_returns_has_a_threshold_of_its_own():
    opr = regularizer(admission="paper")
    opr.observe(episodes([100.0, 100.0, 100.0, 1.0, 2.0], groups=[0, 0, 0, 1, 1]))
    assert stored_returns(opr) == [2.0]


def test_the_window_has_k_returns():
    opr = regularizer(admission="paper", return_window=2, percentile=100.0)
    opr.observe(episodes([5.0, 1.0, 1.0]))
    assert opr.windows.windows[0].threshold == 1.0


def test_the_percentile_is_the_configs():
    opr = regularizer(percentile=50.0)
    opr.observe(episodes([0.0, 1.0, 2.0]))
    assert opr.windows.windows[0].threshold == 1.0


def test_raw_rewards_decide_about_admission():
    opr = regularizer()
    opr.observe(make_steps([[1.0], [1.0]], [[0], [1]], raw_rewards=torch.tensor([[5.0], [7.0]])))
    assert stored_returns(opr) == [12.0]


def test_capacities_and_the_length_limit_are_the_configs():
    opr = regularizer(capacity_transitions=4, capacity_episodes=3, max_episode_steps=2, retention="fifo")
    opr.observe(episodes([1.0, 2.0, 3.0, 4.0, 5.0]))
    assert stored_returns(opr) == [3.0, 4.0, 5.0]
    opr.observe(make_steps([[1.0], [2.0], [40.0]], [[0], [0], [1]]))
    assert [(e.total_reward, len(e.rows), e.clipped) for e in opr.memory.episodes][-1] == (43.0, 2, True)
    assert opr.memory.num_transitions == 4


def test_an_old_episode_is_evicted():
    opr = regularizer(max_age_updates=2, admission="paper")
    opr.observe(episodes([0.0, 1.0]))
    counts = []
    for _ in range(3):
        opr.observe(episodes([-5.0]))
        counts.append(len(opr.memory.episodes))
    assert counts == [1, 1, 0]


# --- shaping


def test_a_recorded_reference_leaves_fresh_rewards_unchanged():
    opr = regularizer(reference="recorded", shaping_scale=10.0, shaping_bound=5.0)
    steps = episodes([1.0, -2.0, 3.0])
    opr.observe(steps)
    assert opr.memory.episodes
    assert opr.shape(steps, TablePolicy()) is steps.rewards


def cloned(**settings):
    """OPR with a cloned reference that has been refreshed once, on one stored step: action 1 in state 0."""
    opr = regularizer(**({"reference": "cloned", "shaping_scale": 0.5} | settings))
    policy = TablePolicy(num_states=2, num_actions=2)
    with torch.no_grad():
        policy.logits.zero_()
    first = make_steps([[1.0]], [[1]], actions=[[1]])
    opr.observe(first)
    opr.shape(first, policy)
    return opr, policy


def test_a_cloned_reference_shapes_fresh_rewards_by_hand():
    opr, policy = cloned(shaping_bound=0.8)
    # Adam's first step moves the logits of state 0 to ∓ 0.001: π_good(1|0) is known; state 1 is unchanged
    good = torch.tensor([-1e-3, 1e-3]).log_softmax(-1)[1].item()
    logp = [[math.log(1 / 4)], [math.log(1 / 2)], [math.log(0.999)]]
    steps = make_steps([[2.0], [2.0], [-1.0]], [[0], [0], [0]], obs=[[0], [1], [0]], actions=[[1], [0], [1]], logp=logp)
    opr.observe(steps)
    shaped = opr.shape(steps, policy)
    first, last = (2 * math.tanh((good - math.log(p)) / 2) for p in (1 / 4, 0.999))  # 2/3 and −0.67, within ± 0.8
    expected = torch.tensor([[2.0 * (1 + 0.5 * first)], [2.0], [-1.0 * (1 + 0.5 * last)]])
    torch.testing.assert_close(shaped, expected)
    assert first == pytest.approx(2 / 3, abs=1e-3)
    assert opr.metrics()["opr/shaping_saturated"] == 0.0


def test_the_share_of_saturated_log_ratios_is_logged():
    opr, policy = cloned(shaping_bound=0.01)
    good = torch.tensor([-1e-3, 1e-3]).log_softmax(-1)[1].item()
    steps = make_steps([[1.0], [1.0]], [[0], [0]], actions=[[1], [1]], logp=[[-9.0], [good]])
    opr.observe(steps)
    opr.shape(steps, policy)
    assert opr.metrics()["opr/shaping_saturated"] == 0.5


def test_a_cloned_reference_raises_the_reward_of_actions_in_good_episodes():
    opr, policy = cloned(shaping_bound=5.0)
    half = math.log(0.5)
    steps = make_steps([[1.0], [1.0]], [[0], [0]], actions=[[0], [1]], logp=[[half], [half]])
    for _ in range(100):  # π_good is cloned again in every tenth
        shaped = opr.shape(steps, policy).flatten()
    assert shaped[0] < 1.0 < shaped[1]


def test_without_shaping_no_reference_is_cloned():
    assert regularizer(reference="cloned", shaping_scale=0.0).reference is None
    assert regularizer(reference="recorded", shaping_scale=0.5).reference is None


# --- cloning


def test_the_loss_is_zero_while_memory_is_empty():
    assert regularizer().loss(TablePolicy()).item() == 0.0


def test_uniform_cloning_loss_by_hand():
    opr = filled(bc_coef=0.5, bc_weights="uniform")
    expected = -0.5 * (LOG_HALF + LOG_THREE_QUARTERS) / 2
    assert anchor_loss(opr, two_state_policy(), stored_rows(opr)).item() == pytest.approx(expected, rel=1e-5)


def test_advantage_weighted_cloning_loss_by_hand():
    # R = 1, 2; V = 0.75, −8: weights 0.25 and min(10, 1) = 1
    opr = filled(bc_coef=0.5, bc_weights="advantage")
    expected = -0.5 * (0.25 * LOG_HALF + LOG_THREE_QUARTERS) / 2
    assert anchor_loss(opr, two_state_policy((0.75, -8.0)), stored_rows(opr)).item() == pytest.approx(
        expected, rel=1e-5
    )
    assert opr.metrics()["opr/bc_weight"] == pytest.approx(0.625)
    assert opr.metrics()["loss/bc"] == pytest.approx(2 * expected, rel=1e-5)


def test_cloning_changes_the_policy_and_not_the_value():
    opr, policy = filled(bc_coef=1.0), two_state_policy()
    opr.loss(policy).backward()
    assert policy.logits.grad.abs().sum() > 0
    assert policy.values.grad is None


def test_loss_draws_rows_of_its_own():
    opr = filled(bc_coef=1.0, bc_weights="uniform", bc_batch_size=1)
    losses = {round(opr.loss(two_state_policy()).item(), 4) for _ in range(30)}
    assert losses == {round(-LOG_HALF, 4), round(-LOG_THREE_QUARTERS, 4)}


def test_the_loss_sets_the_priorities_of_prioritised_sampling():
    for sampling, share in (("prioritized", 2**0.6 / (2**0.6 + 1)), ("uniform", 1 / 2)):
        opr = filled(sampling=sampling, bc_weights="uniform", bc_coef=1.0)
        anchor_loss(opr, two_state_policy((0.0, 1.5)), stored_rows(opr))  # R − V: 1 and 0.5
        good = opr.memory.sample(6_000, torch.Generator().manual_seed(0))
        assert (good.returns == 1.0).float().mean().item() == pytest.approx(share, abs=0.02)


def test_sampled_rows_are_none_without_cloning_or_without_episodes():
    policy = two_state_policy()
    assert list(regularizer(bc_coef=0.1).sample([4, 2], policy)) == [None, None]
    assert list(filled(bc_coef=0.0).sample([4, 2], policy)) == [None, None]
    assert [len(good) for good in filled(bc_coef=0.1, bc_batch_size=7).sample([4, 2], policy)] == [7, 7]


@pytest.mark.parametrize(("size", "rows"), [(256, 64), (100, 25), (1, 1), (20_000, 256)])
def test_a_share_of_the_minibatch_is_cloned_and_at_most_256_rows(size, rows):
    opr = filled(bc_coef=0.1, bc_batch_size=0.25)
    (good,) = opr.sample([size], two_state_policy())
    assert len(good) == rows


def test_a_share_of_an_unknown_minibatch_is_refused():
    opr, policy = filled(bc_coef=0.1, bc_batch_size=0.25), two_state_policy()
    with pytest.raises(ConfigError, match=r"^opr.bc_batch_size is a share, 0.25, and .* pass loss\(policy, minibatch"):
        opr.loss(policy)
    assert opr.loss(policy, minibatch_size=64).item() > 0.0


def test_a_trust_region_needs_a_learner_that_draws_rows_before_its_update():
    with pytest.raises(ConfigError, match=r"^opr.bc_trust works with this package's learners only"):
        filled(bc_trust=0.2).loss(two_state_policy())


def test_a_new_step_has_the_priority_of_its_own_advantage():
    opr = filled(sampling="advantage")
    opr.shape(episodes([1.0]), two_state_policy((0.0, 1.5)))  # R − V: 1 and 0.5
    rows = [int(stored.rows) for stored in opr.memory.episodes]
    assert opr.memory.pools["priorities"][rows].tolist() == pytest.approx([1.0, 0.5**0.6])


def test_a_new_step_has_the_largest_priority_in_the_memory():
    opr = filled(sampling="prioritized", retention="fifo")
    anchor_loss(opr, two_state_policy((-3.0, 1.5)), stored_rows(opr))  # R − V: 4 and 0.5
    opr.observe(episodes([3.0, 5.0]))
    opr.shape(episodes([1.0]), two_state_policy())
    rows = [int(stored.rows) for stored in opr.memory.episodes]
    assert opr.memory.pools["priorities"][rows].tolist() == pytest.approx([4.0**0.6, 0.5**0.6, 4.0**0.6, 4.0**0.6])


def test_the_tensors_that_the_loss_writes_are_named():
    opr = regularizer(bc_coef=1.0)
    assert list(opr.in_place_tensors()) == []
    opr.observe(episodes([1.0, 2.0]))
    tensors = opr.in_place_tensors()
    before = [tensor.clone() for tensor in tensors]
    pools = {name: pool.clone() for name, pool in opr.memory.pools.items()}
    anchor_loss(opr, two_state_policy((0.0, 1.5)), stored_rows(opr))
    assert any(not tensor.equal(old) for tensor, old in zip(tensors, before, strict=True))
    named = {tensor.data_ptr() for tensor in tensors}
    for name, pool in opr.memory.pools.items():
        assert pool.data_ptr() in named or pool.equal(pools[name]), name


# --- cloning phases


def phases(rounds, **options):
    """Gradient steps taken after each round of episodes."""
    opr = regularizer(**({"bc_coef": 0.0, "percentile": 0.0, "bc_batch_size": 2} | options))
    taken = []
    for returns in rounds:
        opr.observe(episodes(returns))
        losses = []
        opr.after_update(TablePolicy(), losses.append)
        taken.append(len(losses))
    return taken


def test_a_phase_every_n_updates_passes_over_the_whole_memory():
    # three passes over 1, 2, 3, … stored steps in minibatches of 2
    assert phases([[1.0]] * 6, bc_phase_interval=2, bc_phase_epochs=3) == [0, 3, 0, 6, 0, 9]
    assert phases([[1.0]] * 4, bc_phase_interval=2, bc_phase_epochs=1) == [0, 1, 0, 2]


def test_a_phase_every_n_episodes():
    rounds = [[1.0], [1.0, 1.0], [1.0], [1.0, 1.0, 1.0]]
    assert [n > 0 for n in phases(rounds, bc_phase_interval=3, bc_phase_unit="episodes")] == [False, True, False, True]


def test_a_phase_every_n_steps():
    rounds = [[1.0] * 4, [1.0] * 4, [1.0] * 4, [1.0] * 4]
    assert [n > 0 for n in phases(rounds, bc_phase_interval=8, bc_phase_unit="steps")] == [False, True, False, True]


def test_steps_of_all_environments_are_counted():
    opr, losses = regularizer(bc_phase_interval=8, bc_phase_unit="steps", percentile=0.0), []
    opr.observe(make_steps(torch.ones(2, 4), torch.ones(2, 4)))
    opr.after_update(TablePolicy(), losses.append)
    assert losses


def test_an_interval_of_0_gives_no_phase():
    assert phases([[1.0]] * 3, bc_phase_interval=0) == [0, 0, 0]


def test_a_phase_with_an_empty_memory_is_run_at_the_first_admission():
    found = phases([[1.0], [1.0], [2.0]], bc_phase_interval=1, admission="paper", percentile=75.0)
    assert found == [0, 0, 3]


def test_a_phase_clones_with_the_weights_and_without_lambda():
    opr = filled(bc_coef=0.0, bc_phase_interval=1, bc_phase_epochs=1, bc_weights="advantage")
    losses = []
    opr.after_update(two_state_policy((0.75, -8.0)), losses.append)
    (loss,) = losses
    assert loss.item() == pytest.approx(-(0.25 * LOG_HALF + LOG_THREE_QUARTERS) / 2, rel=1e-5)


def test_metrics_of_the_loss_keep_their_addresses():
    """Of several captured graphs each writes its metrics into the same tensors."""
    opr = filled(bc_coef=0.5, bc_weights="uniform")
    opr.loss(TablePolicy())
    kept, first = dict(opr._cloning_metrics), opr.metrics()["loss/bc"]
    opr.loss(TablePolicy(seed=1))
    assert all(opr._cloning_metrics[name] is tensor for name, tensor in kept.items())
    assert opr.metrics()["loss/bc"] != first


def test_a_phase_does_not_replace_the_tensors_that_the_loss_writes():
    """A captured graph writes its metrics into the tensors of the capture, whether a phase ran in between or not."""
    opr = filled(bc_coef=0.5, bc_weights="uniform", bc_phase_interval=1)
    opr.loss(TablePolicy())
    captured = opr._cloning_metrics["loss/bc"]
    opr.after_update(TablePolicy(seed=1), lambda loss: None)
    captured.fill_(7.0)  # as the next replay does
    assert opr.metrics()["loss/bc"] == 7.0


def test_metrics_of_a_phase_are_logged_in_its_update_only():
    opr = filled(bc_coef=0.0, bc_phase_interval=2, bc_phase_epochs=1, bc_weights="uniform")
    for has_phase in (False, True, False):
        opr.after_update(TablePolicy(), lambda loss: None)
        assert ("loss/bc" in opr.metrics()) is has_phase
        opr.observe(episodes([0.0]))


# --- replayed rows and zero strength


def in_state_0(size):
    return dataclasses.replace(make_batch(size), obs=torch.zeros(size, dtype=torch.int64))


def joined(opr, batch):
    """The batch as a learner joins it with replayed rows."""
    replayed = opr.replay(batch, TablePolicy())
    return batch if replayed is None else opr.join(batch, replayed)


def test_rows_are_replayed_once_an_episode_is_stored():
    opr, batch = regularizer(augment_share=0.5), in_state_0(8)
    assert opr.replay(batch, TablePolicy()) is None
    opr.observe(episodes([1.0]))
    found = joined(opr, batch)
    assert (len(found), found.num_fresh) == (12, 8)


@pytest.mark.parametrize(("share", "size", "rows"), [(0.25, 8, 2), (0.25, 2, 0), (1.0, 8, 8), (2.0, 3, 6), (0.0, 8, 0)])
def test_the_share_is_of_the_fresh_rows(share, size, rows):
    assert len(joined(filled(augment_share=share), in_state_0(size))) == size + rows


def test_a_minibatch_gets_its_share_of_the_rows_drawn_for_the_batch():
    opr = filled(augment_share=0.5)
    replayed = opr.replay(in_state_0(8), TablePolicy())
    assert len(replayed) >= 4
    assert len(opr.join(in_state_0(4), replayed)) == 4 + 2


@pytest.mark.parametrize(("augment_rows", "num_fresh"), [("decoupled", 8), ("recorded", 8), ("full", -1)])
def test_replayed_rows_count_as_fresh_under_full_only(augment_rows, num_fresh):
    opr = filled(augment_share=0.5, augment_rows=augment_rows)
    assert joined(opr, in_state_0(8)).num_fresh == num_fresh


@pytest.mark.parametrize("reference", ["recorded", "cloned"])
def test_zero_strength_changes_nothing_of_the_host(reference):
    opr, policy = regularizer(**ZERO, reference=reference), TablePolicy(num_states=3)
    before, random_state = {k: v.clone() for k, v in policy.state_dict().items()}, torch.get_rng_state()
    for _ in range(3):
        steps, batch = episodes([1.0, 2.0, 3.0]), make_batch(4)
        opr.observe(steps)
        assert opr.shape(steps, policy) is steps.rewards
        assert opr.replay(batch, policy) is None
        assert list(opr.sample([4], policy)) == [None]
        assert opr.loss(policy).item() == 0.0
        opr.after_update(policy, pytest.fail)
    assert opr.memory.episodes, "episodes are admitted all the same"
    assert torch.get_rng_state().equal(random_state)
    assert all(policy.state_dict()[k].equal(v) for k, v in before.items())


def test_the_hosts_random_numbers_are_not_used_at_full_strength():
    opr = regularizer(bc_phase_interval=1, augment_share=1.0, reference="cloned", shaping_scale=0.5)
    policy = TablePolicy()
    random_state = torch.get_rng_state()
    for _ in range(3):
        steps, batch = episodes([1.0, 2.0, 3.0]), in_state_0(4)
        opr.observe(steps)
        opr.shape(steps, policy)
        replayed = opr.replay(batch, policy)
        for minibatch in batch.minibatches(2, 2, torch.Generator().manual_seed(0)):
            opr.join(minibatch, replayed)
            opr.loss(policy).backward()
        opr.after_update(policy, lambda loss: loss.backward())
    assert torch.get_rng_state().equal(random_state)


def test_unfinished_episodes_can_be_dropped():
    opr = regularizer()
    opr.observe(make_steps([[100.0]], [[0]]))
    opr.forget_unfinished()
    opr.observe(make_steps([[1.0]], [[1]]))
    assert stored_returns(opr) == [1.0]


def test_metrics_describe_the_memory():
    opr = filled(capacity_transitions=8)
    metrics = opr.metrics()
    assert metrics["opr/memory_transitions"] == metrics["opr/memory_episodes"] == 2
    assert metrics["opr/memory_fill"] == 0.25
    assert metrics["opr/memory_return"] == 1.5
    assert metrics["opr/memory_bytes"] == opr.memory.num_bytes + opr.builder.num_bytes > 0
    assert all(type(value) is float for value in metrics.values())


# --- the bound of memory


def steps_of(num_steps, num_envs, frame_stack, ends):
    shape = (frame_stack, 6, 5) if frame_stack > 1 else (7,)
    frames = torch.randint(255, (num_steps, num_envs, *shape), dtype=torch.uint8)
    return Steps(
        obs=frames,
        actions=torch.zeros(num_steps, num_envs, dtype=torch.int64),
        rewards=torch.randn(num_steps, num_envs),
        logp=torch.zeros(num_steps, num_envs),
        dones=ends,
    )


@pytest.mark.parametrize("frame_stack", [1, 4])
def test_a_full_memory_and_the_longest_episodes_take_exactly_the_bound(frame_stack):
    config = OPRConfig(capacity_transitions=300, capacity_episodes=20, max_episode_steps=50)
    opr = OptimisticRegularizer(config, frame_stack=frame_stack)
    shape = (frame_stack, 6, 5) if frame_stack > 1 else (7,)
    bound = max_bytes(
        config,
        observation=torch.zeros(shape, dtype=torch.uint8),
        action=torch.zeros((), dtype=torch.int64),
        num_envs=3,
        rollout_steps=16,
        frame_stack=frame_stack,
    )
    largest = 0
    for update in range(40):  # every episode is longer than max_episode_steps
        ends = torch.zeros(16, 3, dtype=torch.bool)
        ends[-1] = update % 8 == 7
        opr.observe(steps_of(16, 3, frame_stack, ends))
        largest = max(largest, int(opr.metrics()["opr/memory_bytes"]))
        assert largest <= bound
    assert largest == bound


def test_the_bound_by_hand():
    config = OPRConfig(capacity_transitions=10, capacity_episodes=2, max_episode_steps=5)
    # a step in M: 4 bytes of observation, 8 of action, 4 + 4 + 1 + 4 of numbers, 8 of return and priority
    in_memory = 10 * (4 + 8 + 13 + 8)
    unfinished = 2 * (5 + 3) * (4 + 8 + 13)
    sample = {"observation": torch.zeros(1), "action": torch.zeros((), dtype=torch.int64)}
    assert max_bytes(config, **sample, num_envs=2, rollout_steps=3) == in_memory + unfinished
