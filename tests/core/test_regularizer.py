import dataclasses
import math

import pytest
import torch

from optimist.core.config import OPRConfig
from optimist.core.regularizer import OptimisticRegularizer
from tests.core.tables import TablePolicy, make_steps
from tests.core.test_batch import make_batch

ZERO = {"shaping_scale": 0.0, "bc_coef": 0.0, "augment_share": 0.0, "bc_phase_interval": 0}


def episodes(returns, groups=None, progress=0.0):
    """One stream whose every step is an episode with the return given; its state is its place in the list."""
    rewards = [[r] for r in returns]
    obs = [[i] for i in range(len(returns))]
    more = {} if groups is None else {"groups": [[g] for g in groups]}
    return make_steps(rewards, [[1]] * len(returns), obs=obs, actions=[[0]] * len(returns), progress=progress, **more)


def regularizer(**options):
    return OptimisticRegularizer(OPRConfig(**({"shaping_scale": 0.0} | options)), gamma=0.5, gae_lambda=0.8)


def stored_returns(opr):
    return [e.total_reward for e in opr.memory.episodes]


def test_the_paper_admits_what_is_strictly_above_the_threshold():
    opr = regularizer(admission="paper", retention="fifo")
    opr.observe(episodes([1.0, 1.0, 2.0, 2.0, 0.0]))
    # τ after each: 1, 1, 1.5, 2 and 2 (R = 2 is not above 2)
    assert stored_returns(opr) == [2.0]
    assert opr.metrics()["opr/threshold"] == 2.0
    assert opr.metrics()["opr/admitted"] == 1


def test_the_gate_admits_what_reaches_the_threshold_and_exceeds_the_floor():
    opr = regularizer(admission="gated", retention="fifo")
    opr.observe(episodes([1.0, 1.0, 2.0, 2.0, 0.0]))
    assert stored_returns(opr) == [1.0, 1.0, 2.0, 2.0]
    floored = regularizer(admission="gated", admission_floor=1.0)
    floored.observe(episodes([1.0, 1.0, 2.0, 2.0, 0.0]))
    assert stored_returns(floored) == [2.0, 2.0]


def test_thresholds_per_group_admit_the_best_of_a_hard_group():
    returns, groups = [100.0, 100.0, 100.0, 1.0, 2.0], [0, 0, 0, 1, 1]
    own = regularizer(admission="paper", thresholds="per_group")
    own.observe(episodes(returns, groups))
    shared = regularizer(admission="paper", thresholds="shared")
    shared.observe(episodes(returns, groups))
    assert stored_returns(own) == [2.0]
    assert stored_returns(shared) == []


def test_the_window_is_of_k_episodes():
    opr = regularizer(admission="paper", return_window=2, percentile=100.0)
    opr.observe(episodes([5.0, 1.0, 1.0]))
    assert opr.thresholds.window(0).threshold == 1.0


def test_the_percentile_is_the_configs():
    opr = regularizer(percentile=50.0)
    opr.observe(episodes([0.0, 1.0, 2.0]))
    assert opr.thresholds.window(0).threshold == 1.0


def test_raw_or_learners_return_decides():
    steps = make_steps([[1.0], [1.0]], [[0], [1]], raw_rewards=torch.tensor([[5.0], [7.0]]))
    for word, total in (("raw", 12.0), ("learner", 2.0)):
        opr = regularizer(deciding_return=word)
        opr.observe(steps)
        assert stored_returns(opr) == [total]


def test_capacities_and_the_length_limit_reach_memory_and_builder():
    opr = regularizer(capacity_transitions=4, capacity_episodes=3, max_episode_steps=2, retention="fifo")
    opr.observe(episodes([1.0, 2.0, 3.0, 4.0, 5.0]))
    assert stored_returns(opr) == [3.0, 4.0, 5.0]
    opr.observe(make_steps([[1.0], [2.0], [40.0]], [[0], [0], [1]]))
    assert [(e.total_reward, len(e.rows), e.clipped) for e in opr.memory.episodes][-1] == (43.0, 2, True)
    assert opr.memory.num_transitions == 4


def test_an_old_episode_leaves():
    opr = regularizer(max_age_updates=2, admission="paper")
    opr.observe(episodes([0.0, 1.0]))
    counts = []
    for _ in range(3):
        opr.observe(episodes([-5.0]))
        counts.append(len(opr.memory.episodes))
    assert counts == [1, 1, 0]


# --- shaping


@pytest.mark.parametrize("mode", ["multiplicative", "sign_aware", "additive"])
def test_recorded_leaves_fresh_rewards_alone_in_every_mode(mode):
    opr = OptimisticRegularizer(OPRConfig(reference="recorded", shaping=mode, shaping_scale=10.0, shaping_bound=5.0))
    steps = episodes([1.0, -2.0, 3.0])
    opr.observe(steps)
    assert opr.memory.episodes
    assert opr.shape(steps, TablePolicy()) is steps.rewards


def test_snapshot_shapes_fresh_rewards_by_hand():
    options = {"reference": "snapshot", "shaping": "multiplicative", "shaping_scale": 0.5, "shaping_bound": 0.8}
    opr, policy = OptimisticRegularizer(OPRConfig(**options)), TablePolicy(num_states=2, num_actions=2)
    with torch.no_grad():
        policy.logits.zero_()  # π_good(a) = 1/2
    opr.observe(episodes([1.0]))
    opr.shape(episodes([1.0]), policy)  # an admission: the snapshot is taken
    logp = [[math.log(1 / 4)], [math.log(1 / 2)], [math.log(0.999)]]  # Δ = ln 2 → 2/3; 0; −0.69 → −0.666
    steps = make_steps([[2.0], [2.0], [-1.0]], [[0], [0], [0]], obs=[[0], [1], [0]], actions=[[1], [0], [1]], logp=logp)
    opr.observe(steps)
    shaped = opr.shape(steps, policy)
    delta = 2 * math.tanh((math.log(0.5) - math.log(0.999)) / 2)
    expected = torch.tensor([[2.0 * (1 + 0.5 * 2 / 3)], [2.0], [-1.0 * (1 + 0.5 * delta)]])
    torch.testing.assert_close(shaped, expected)
    assert opr.metrics()["opr/shaping_saturated"] == 0.0


def test_saturation_is_reported():
    opr = OptimisticRegularizer(OPRConfig(reference="snapshot", shaping_bound=0.01))
    policy = TablePolicy()
    opr.observe(episodes([1.0]))
    opr.shape(episodes([1.0]), policy)
    steps = make_steps(
        [[1.0], [1.0]], [[0], [0]], logp=[[-9.0], [policy.log_prob(torch.tensor(0), 0 * torch.tensor(0)).item()]]
    )
    opr.observe(steps)
    opr.shape(steps, policy)
    assert opr.metrics()["opr/shaping_saturated"] == 0.5


def test_cloned_rewards_what_good_episodes_did():
    options = {"reference": "cloned", "reference_epochs": 50, "reference_learning_rate": 0.05}
    opr = OptimisticRegularizer(OPRConfig(shaping="additive", shaping_scale=1.0, shaping_bound=5.0, **options))
    policy = TablePolicy(num_states=1, num_actions=2)
    with torch.no_grad():
        policy.logits.zero_()
    opr.observe(make_steps([[1.0]], [[1]], actions=[[1]]))
    half = [[math.log(0.5)], [math.log(0.5)]]
    steps = make_steps([[0.0], [0.0]], [[0], [0]], actions=[[0], [1]], logp=half)
    shaped = opr.shape(steps, policy).flatten()
    assert shaped[0] < -0.3 < 0.3 < shaped[1]


# --- cloning


def filled(**options):
    """Memory of two one-step episodes: states 0 and 1, returns 1 and 2, action 0."""
    opr = regularizer(**({"percentile": 0.0, "bc_schedule": "constant"} | options))
    opr.observe(episodes([1.0, 2.0]))
    return opr


def in_order(opr):
    """The stored rows of `filled`, in their order."""
    good = opr.memory.sample(200, torch.Generator().manual_seed(0))
    first = [int((good.returns == value).nonzero()[0]) for value in (1.0, 2.0)]
    columns = {f.name: getattr(good, f.name)[first] for f in dataclasses.fields(good)}
    return dataclasses.replace(good, **columns)


def policy_with(values=(0.0, 0.0)):
    policy = TablePolicy(num_states=2, num_actions=2)
    with torch.no_grad():
        policy.logits.copy_(torch.tensor([[0.0, 0.0], [math.log(3.0), 0.0]]))  # π(0|s) = 1/2 and 3/4
        policy.values.copy_(torch.tensor(values))
    return policy


LOG_HALF, LOG_THREE_QUARTERS = math.log(1 / 2), math.log(3 / 4)


def test_the_loss_is_zero_while_memory_is_empty():
    assert regularizer().loss(TablePolicy()).item() == 0.0


def test_uniform_cloning_loss_by_hand():
    opr = filled(bc_coef=0.5, bc_weights="uniform")
    expected = -0.5 * (LOG_HALF + LOG_THREE_QUARTERS) / 2
    assert opr.loss(policy_with(), in_order(opr)).item() == pytest.approx(expected, rel=1e-5)


def test_advantage_weighted_cloning_loss_by_hand():
    # R = 1, 2; V = 0.5, −8: weights 0.5 / 2 = 0.25 and min(10 / 2, 1) = 1
    opr = filled(bc_coef=0.5, bc_weights="advantage", bc_advantage_scale=2.0)
    expected = -0.5 * (0.25 * LOG_HALF + LOG_THREE_QUARTERS) / 2
    assert opr.loss(policy_with((0.5, -8.0)), in_order(opr)).item() == pytest.approx(expected, rel=1e-5)
    assert opr.metrics()["opr/bc_weight"] == pytest.approx(0.625)
    assert opr.metrics()["loss/bc"] == pytest.approx(2 * expected, rel=1e-5)


def test_filtered_cloning_loss_by_hand():
    opr = filled(bc_coef=1.0, bc_weights="uniform", bc_filter=True)
    expected = -LOG_THREE_QUARTERS / 2  # the first gained nothing: R = V
    assert opr.loss(policy_with((1.0, 0.0)), in_order(opr)).item() == pytest.approx(expected, rel=1e-5)


def test_cloning_teaches_the_policy_and_not_the_value():
    opr, policy = filled(bc_coef=1.0), policy_with()
    opr.loss(policy).backward()
    assert policy.logits.grad.abs().sum() > 0
    assert policy.values.grad is None


def test_rows_are_drawn_where_none_are_given():
    opr = filled(bc_coef=1.0, bc_weights="uniform", bc_batch_size=1)
    losses = {round(opr.loss(policy_with()).item(), 4) for _ in range(30)}
    assert losses == {round(-LOG_HALF, 4), round(-LOG_THREE_QUARTERS, 4)}


def test_lambda_falls_linearly_or_stays():
    for schedule, expected in (("linear", [0.4, 0.3, 0.1]), ("constant", [0.4, 0.4, 0.4])):
        opr = regularizer(bc_coef=0.4, bc_schedule=schedule)
        found = []
        for progress in (0.0, 0.25, 0.75):
            opr.observe(episodes([1.0], progress=progress))
            found.append(opr.bc_coef)
        assert found == pytest.approx(expected)
        assert opr.metrics()["opr/bc_coef"] == pytest.approx(expected[-1])


def test_prioritised_sampling_learns_its_priorities_from_the_loss():
    opr = filled(sampling="prioritized", priority_exponent=1.0, bc_weights="uniform", bc_coef=1.0)
    opr.loss(policy_with((0.0, 1.5)), in_order(opr))  # R − V: 1 and 0.5
    good = opr.memory.sample(6_000, torch.Generator().manual_seed(0))
    assert (good.returns == 1.0).float().mean().item() == pytest.approx(2 / 3, abs=0.02)
    uniform = filled(sampling="uniform", priority_exponent=1.0, bc_coef=1.0)
    uniform.loss(policy_with((0.0, 1.5)), in_order(uniform))
    good = uniform.memory.sample(6_000, torch.Generator().manual_seed(0))
    assert (good.returns == 1.0).float().mean().item() == pytest.approx(1 / 2, abs=0.02)


# --- phases


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


def test_a_phase_every_so_many_updates_passes_over_all_of_memory():
    # three passes over 1, 2, 3, … stored steps in minibatches of 2
    assert phases([[1.0]] * 6, bc_phase_interval=2, bc_phase_epochs=3) == [0, 3, 0, 6, 0, 9]
    assert phases([[1.0]] * 4, bc_phase_interval=2, bc_phase_epochs=1) == [0, 1, 0, 2]


def test_a_phase_every_so_many_episodes():
    rounds = [[1.0], [1.0, 1.0], [1.0], [1.0, 1.0, 1.0]]
    assert [n > 0 for n in phases(rounds, bc_phase_interval=3, bc_phase_unit="episodes")] == [False, True, False, True]


def test_a_phase_every_so_many_steps():
    rounds = [[1.0] * 4, [1.0] * 4, [1.0] * 4, [1.0] * 4]
    assert [n > 0 for n in phases(rounds, bc_phase_interval=8, bc_phase_unit="steps")] == [False, True, False, True]


def test_steps_of_all_environments_count():
    opr, losses = regularizer(bc_phase_interval=8, bc_phase_unit="steps", percentile=0.0), []
    opr.observe(make_steps(torch.ones(2, 4), torch.ones(2, 4)))
    opr.after_update(TablePolicy(), losses.append)
    assert losses


def test_no_interval_no_phase():
    assert phases([[1.0]] * 3, bc_phase_interval=0) == [0, 0, 0]


def test_a_phase_that_finds_memory_empty_waits_for_the_first_episode():
    found = phases([[1.0], [1.0], [2.0]], bc_phase_interval=1, admission="paper", percentile=75.0)
    assert found == [0, 0, 3]


def test_a_phase_clones_with_the_weights_and_without_lambda():
    opr = filled(bc_coef=0.0, bc_phase_interval=1, bc_phase_epochs=1, bc_weights="advantage", bc_advantage_scale=2.0)
    losses = []
    opr.after_update(policy_with((0.5, -8.0)), losses.append)
    (loss,) = losses
    assert loss.item() == pytest.approx(-(0.25 * LOG_HALF + LOG_THREE_QUARTERS) / 2, rel=1e-5)


def test_a_phase_alone_measures_advantages_in_deviations_too():
    phase = {"bc_coef": 0.0, "bc_phase_interval": 1, "bc_phase_epochs": 1}
    opr = filled(**phase, bc_weights="advantage", bc_advantage_scale=1.0, bc_advantage_unit="deviation")
    fresh = torch.tensor([-2.0, 2.0, -2.0, 2.0]) * 3**0.5 / 2  # standard deviation 2
    opr.augment(dataclasses.replace(make_batch(4), advantages=fresh), TablePolicy())
    losses = []
    opr.after_update(policy_with((0.5, 1.0)), losses.append)
    # (R − V)/2: 0.25 and 0.5
    assert losses[0].item() == pytest.approx(-(0.25 * LOG_HALF + 0.5 * LOG_THREE_QUARTERS) / 2, rel=1e-5)


def test_what_is_logged_of_a_minibatch_lies_where_it_lay_after_a_phase():
    """A step recorded as a graph writes its numbers where they lay when it was recorded, phase or not."""
    opr = filled(bc_coef=0.5, bc_weights="uniform", bc_phase_interval=1)
    opr.loss(TablePolicy())
    recorded = opr._cloned["loss/bc"]
    opr.after_update(TablePolicy(seed=1), lambda loss: None)
    recorded.fill_(7.0)  # as the next replay does
    assert opr.metrics()["loss/bc"] == 7.0


def test_a_phase_alone_is_logged_with_the_update_it_belongs_to():
    opr = filled(bc_coef=0.0, bc_phase_interval=2, bc_phase_epochs=1, bc_weights="uniform")
    for has_phase in (False, True, False):
        opr.after_update(TablePolicy(), lambda loss: None)
        assert ("loss/bc" in opr.metrics()) is has_phase
        opr.observe(episodes([0.0]))


# --- augmentation and zero strength


def test_good_rows_join_only_once_there_are_some():
    opr, batch = regularizer(augment_share=0.5, bc_coef=0.1), make_batch(8)
    assert opr.augment(batch, TablePolicy()) is batch
    opr.observe(episodes([1.0]))
    augmented = opr.augment(batch, TablePolicy())
    fresh = dataclasses.replace(make_batch(8), obs=torch.zeros(8, dtype=torch.int64))
    joined = augmented.joiner.join(fresh)
    assert (len(joined), joined.num_fresh, len(joined.good)) == (12, 8, 256)


def test_without_a_share_only_rows_to_clone_join():
    opr = filled(augment_share=0.0, bc_coef=0.1, bc_batch_size=7)
    joined = opr.augment(make_batch(8), TablePolicy()).joiner.join(make_batch(8))
    assert (len(joined), joined.weights, len(joined.good)) == (8, None, 7)


@pytest.mark.parametrize("reference", ["recorded", "cloned", "snapshot"])
def test_zero_strength_touches_nothing_of_the_hosts(reference):
    opr, policy = OptimisticRegularizer(OPRConfig(**ZERO, reference=reference)), TablePolicy(num_states=3)
    before, random_state = {k: v.clone() for k, v in policy.state_dict().items()}, torch.get_rng_state()
    for _ in range(3):
        steps, batch = episodes([1.0, 2.0, 3.0]), make_batch(4)
        opr.observe(steps)
        assert opr.shape(steps, policy) is steps.rewards
        assert opr.augment(batch, policy) is batch
        assert opr.loss(policy, None).item() == 0.0
        opr.after_update(policy, pytest.fail)
    assert opr.memory.episodes, "it still watches"
    assert torch.get_rng_state().equal(random_state)
    assert all(policy.state_dict()[k].equal(v) for k, v in before.items())


def test_nothing_is_drawn_from_the_hosts_random_numbers_at_full_strength():
    opr, policy = (
        OptimisticRegularizer(OPRConfig(bc_phase_interval=1, augment_share=1.0, reference="cloned")),
        TablePolicy(),
    )
    random_state = torch.get_rng_state()
    for _ in range(3):
        steps = episodes([1.0, 2.0, 3.0])
        opr.observe(steps)
        opr.shape(steps, policy)
        batch = dataclasses.replace(make_batch(4), obs=torch.zeros(4, dtype=torch.int64))
        for minibatch in opr.augment(batch, policy).minibatches(2, 2, torch.Generator().manual_seed(0)):
            opr.loss(policy, minibatch.good).backward()
        opr.after_update(policy, lambda loss: loss.backward())
    assert torch.get_rng_state().equal(random_state)


def test_forgetting_reaches_the_builder():
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
