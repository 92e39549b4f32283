import dataclasses

import pytest
import torch

from optimist.anchors.self_imitation import SelfImitation
from optimist.config.sil import SILConfig
from optimist.core.anchor import Anchor
from optimist.errors import ConfigError, UnknownName
from tests.algorithms.tasks import TableActorCritic
from tests.core.tables import TablePolicy, make_batch, make_steps

ON = SILConfig(enabled=True, start_transitions=1, batch_size=16, updates=2, min_normalizer=1)


def sil(**changes) -> SelfImitation:
    return SelfImitation(dataclasses.replace(ON, **changes), gamma=0.5)


def stored_returns(anchor: SelfImitation) -> set[float]:
    return set(anchor.past.draw(500, torch.Generator().manual_seed(0)).returns.tolist())


def test_sil_is_an_anchor_that_leaves_rewards_batch_and_loss_unchanged():
    anchor = sil()
    assert isinstance(anchor, Anchor)
    steps = make_steps([[1.0]], [[1]])
    assert anchor.shape(steps, TablePolicy()) is steps.rewards
    assert anchor.replay(make_batch(3), TablePolicy()) is None
    assert list(anchor.sample([4], TablePolicy())) == [None]
    assert not anchor.capturable


def test_positive_admission_stores_episodes_with_a_positive_reward_only():
    anchor = sil(admission="positive")
    anchor.observe(make_steps([[-1.0], [0.0], [-1.0], [-3.0], [2.0]], [[0], [1], [1], [0], [1]]))
    assert anchor.metrics()["sil/stored"] == 1
    assert stored_returns(anchor) == {-2.0, 2.0}  # −3 + 0.5 · 2, and 2: the total return is negative


def test_any_admission_stores_episodes_without_a_positive_reward_too():
    steps = make_steps([[-1.0], [0.0], [-1.0]], [[0], [1], [1]])
    for rule, number in (("positive", 0), ("any", 2)):
        anchor = sil(admission=rule)
        anchor.observe(steps)
        assert anchor.metrics()["sil/stored"] == number
        assert anchor.past.num_transitions == (0 if rule == "positive" else 3)


def test_returns_are_those_of_whole_episodes_across_rollouts():
    anchor = sil()
    anchor.observe(make_steps([[1.0], [2.0]], [[0], [0]]))
    assert anchor.past.num_transitions == 0
    anchor.observe(make_steps([[4.0], [8.0]], [[1], [0]]))
    assert stored_returns(anchor) == {1.0 + 1.0 + 1.0, 2.0 + 2.0, 4.0}
    anchor.forget_unfinished()
    anchor.observe(make_steps([[16.0]], [[1]]))
    assert stored_returns(anchor) == {3.0, 4.0, 16.0}


def test_a_time_limit_ends_the_return_or_adds_the_recorded_value():
    steps = make_steps([[1.0], [1.0]], [[0], [1]], bootstraps=torch.tensor([[0.0], [8.0]]))
    for reading, expected in (("end", {1.5, 1.0}), ("bootstrap", {1.0 + 0.5 * 5.0, 5.0})):
        anchor = sil(time_limit=reading)
        anchor.observe(steps)
        assert stored_returns(anchor) == expected


def test_no_step_is_taken_before_enough_transitions_are_stored():
    anchor = sil(start_transitions=4)
    policy, losses = TableActorCritic(), []
    anchor.observe(make_steps([[1.0], [1.0], [1.0]], [[0], [0], [1]]))
    anchor.after_update(policy, losses.append)
    assert losses == []
    anchor.observe(make_steps([[1.0]], [[1]]))
    anchor.after_update(policy, losses.append)
    assert len(losses) == 2
    assert {"loss/sil", "sil/advantage", "sil/better"} <= set(anchor.metrics())


def test_no_more_steps_are_drawn_than_are_stored():
    drawn = []
    anchor, policy = sil(updates=1, batch_size=16), TableActorCritic()
    draw = anchor.past.draw
    anchor.past.draw = lambda size, generator: drawn.append(size) or draw(size, generator)
    for length in (3, 20):
        anchor.observe(make_steps([[1.0]] * length, [[0]] * (length - 1) + [[1]]))
        anchor.after_update(policy, lambda loss: None)
    assert drawn == [3, 16]


def test_steps_raise_probability_and_value_where_the_return_exceeds_the_value():
    anchor, policy = sil(admission="any", updates=100, value_coef=1.0, entropy_coef=0.0), TableActorCritic()
    optimizer = torch.optim.SGD(policy.parameters(), lr=0.1)
    with torch.no_grad():
        policy.values.zero_()
    anchor.observe(make_steps([[5.0, -5.0]], [[1, 1]], obs=[[2, 3]], actions=[[0, 0]]))
    before = policy.logits.log_softmax(-1).detach().clone()

    def step(loss):
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    anchor.after_update(policy, step)
    after = policy.logits.log_softmax(-1).detach()
    assert after[2, 0] > before[2, 0] + 0.5
    assert policy.values[2].item() > 0.5
    assert after[3].equal(before[3])  # the return of state 3 is below its value


def test_priorities_are_the_clipped_advantages():
    anchor, policy = sil(updates=20, priority_exponent=1.0, batch_size=200), TableActorCritic()
    with torch.no_grad():
        policy.values.copy_(torch.tensor([0.0, 0.7, 2.0, 0.0, 0.0, 0.0]))
    anchor.observe(make_steps([[5.0, 1.0, 1.0]], [[1, 1, 1]], obs=[[0, 1, 2]]))
    anchor.after_update(policy, lambda loss: None)
    assert anchor.past.powers[:3].tolist() == pytest.approx([1.0, 0.3, 1e-6])


def test_a_policy_without_evaluate_is_refused():
    anchor = sil()
    anchor.observe(make_steps([[1.0]], [[1]]))
    with pytest.raises(ConfigError, match=r"SIL needs a policy with evaluate\(obs, actions\).*use an actor-critic"):
        anchor.after_update(TablePolicy(), lambda loss: None)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"admission": "positiv"}, "did you mean 'positive'"),
        ({"updates": 0}, "sil.updates"),
        ({"batch_size": 1.5}, "sil.batch_size"),
        ({"coef": -1.0}, "sil.coef"),
        ({"advantage_clip": 0.0}, "sil.advantage_clip"),
        ({"priority_exponent": float("nan")}, "sil.priority_exponent"),
    ],
)
def test_a_value_out_of_range_is_refused_by_name(changes, named):
    with pytest.raises(ConfigError, match=named):
        SILConfig(**changes)


def test_the_authors_settings_for_each_learner():
    a2c, ppo = SILConfig.stock("a2c"), SILConfig.stock("ppo")
    assert (a2c.updates, a2c.batch_size, a2c.capacity_transitions, a2c.coef) == (4, 512, 100_000, 1.0)
    assert (ppo.updates, ppo.batch_size, ppo.capacity_transitions, ppo.coef) == (10, 512, 50_000, 0.1)
    assert a2c.admission == ppo.admission == "positive"
    with pytest.raises(UnknownName, match="did you mean 'ppo'"):
        SILConfig.stock("pp")


def test_a_start_beyond_the_capacity_is_refused():
    with pytest.raises(ConfigError, match=r"sil.start_transitions \(101\) must be at most sil.capacity_transitions"):
        SILConfig(capacity_transitions=100)
