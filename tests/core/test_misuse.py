"""What a loop of one's own may hand over by mistake, and what it means to switch the method off."""

import dataclasses
import math

import pytest
import torch

from optimist.core.config import OPRConfig
from optimist.core.regularizer import OptimisticRegularizer
from optimist.errors import ConfigError, NonFiniteLoss, ShapeMismatch
from tests.core.tables import TablePolicy, make_steps
from tests.core.test_batch import make_batch
from tests.core.test_regularizer import episodes, regularizer, stored_returns


@pytest.mark.parametrize("reward", [math.nan, math.inf])
def test_a_reward_that_is_no_number_is_refused_before_it_spoils_the_threshold(reward):
    opr = regularizer()
    opr.observe(episodes([1.0, 2.0]))
    with pytest.raises(NonFiniteLoss, match="a reward is nan or infinite"):
        opr.observe(episodes([reward]))
    assert list(opr.thresholds.window(0).returns) == [1.0, 2.0]
    assert stored_returns(opr) == [1.0, 2.0]


def test_switched_off_it_has_no_strength():
    opr = regularizer(enabled=False, shaping_scale=0.5, reference="snapshot", augment_share=0.5, bc_phase_interval=1)
    steps, policy, batch = episodes([1.0, 2.0]), TablePolicy(), make_batch(4)
    opr.observe(steps)
    assert opr.shape(steps, policy) is steps.rewards
    assert opr.augment(batch, policy) is batch
    assert opr.loss(policy) == 0.0
    opr.after_update(policy, lambda loss: pytest.fail("a phase"))


class WidePolicy(TablePolicy):
    """Forgets to take the column out of its critic, or the action taken out of its actor."""

    def __init__(self, wide):
        super().__init__()
        self.wide = wide

    def log_prob(self, obs, actions):
        return self.logits.log_softmax(-1)[obs.long()] if self.wide == "log_prob" else super().log_prob(obs, actions)

    def value(self, obs):
        return super().value(obs)[:, None] if self.wide == "value" else super().value(obs)


@pytest.mark.parametrize(
    ("wide", "options"),
    [
        ("log_prob", {}),
        ("log_prob", {"bc_weights": "uniform", "sampling": "uniform"}),
        ("value", {}),
        ("value", {"sampling": "uniform"}),
        ("value", {"bc_weights": "uniform"}),
    ],
)
def test_a_policy_with_too_many_numbers_is_refused(wide, options):
    opr = regularizer(**options)
    opr.observe(episodes([1.0, 2.0]))
    with pytest.raises(ShapeMismatch, match=rf"{wide} is \[256, \d\] but returns is \[256\]"):
        opr.loss(WidePolicy(wide))


@pytest.mark.parametrize("wrong", [{"gamma": 1.5}, {"gamma": math.nan}, {"gae_lambda": -0.1}, {"frame_stack": 0}])
def test_numbers_that_make_no_sense_are_refused(wrong):
    with pytest.raises(ConfigError, match="must lie between 0 and 1, and frame_stack be 1 or more"):
        OptimisticRegularizer(OPRConfig(), **wrong)


@pytest.mark.parametrize("config", [{}, "atari", dataclasses.asdict(OPRConfig())])
def test_settings_of_another_kind_are_refused(config):
    with pytest.raises(ConfigError, match=r"OPR's settings are an OPRConfig, got (dict|str)"):
        OptimisticRegularizer(config)


@pytest.mark.parametrize("name", ["obs", "actions", "rewards", "logp", "dones"])
def test_nothing_needed_may_be_left_out(name):
    steps = episodes([1.0])
    with pytest.raises(ShapeMismatch, match=f"{name} is a NoneType; expected a torch tensor"):
        dataclasses.replace(steps, **{name: None})


def test_rewards_that_a_network_gave_are_numbers_here():
    steps = dataclasses.replace(episodes([1.0, 2.0]), rewards=torch.ones(2, 1, requires_grad=True))
    opr = regularizer()
    opr.observe(steps)
    assert stored_returns(opr) == [1.0, 1.0]


def test_a_bootstrap_that_is_no_number_is_refused():
    steps = make_steps([[1.0]], [[True]], bootstraps=[[math.nan]])
    ended = dataclasses.replace(steps, dones=torch.tensor([[False]]), episode_ends=torch.tensor([[True]]))
    opr = regularizer()
    with pytest.raises(NonFiniteLoss, match="a reward or a bootstrap that is nan or infinite"):
        opr.observe(ended)
    assert not opr.memory.episodes


@pytest.mark.parametrize(
    ("name", "first", "then", "message"),
    [
        ("obs", [3], [1], r"obs is \[1\] of torch.float32 a step and was \[3\] of torch.float32 before"),
        ("obs", [3], [4], r"obs is \[4\] of torch.float32 a step and was \[3\]"),
        ("actions", [2], [], r"actions is \[\] of torch.float32 a step and was \[2\]"),
    ],
)
def test_observations_and_actions_stay_what_they_were(name, first, then, message):
    opr = regularizer()
    opr.observe(dataclasses.replace(episodes([1.0]), **{name: torch.zeros(1, 1, *first)}))
    with pytest.raises(ShapeMismatch, match=message):
        opr.observe(dataclasses.replace(episodes([1.0]), **{name: torch.zeros(1, 1, *then)}))
    resumed = regularizer()
    resumed.load_state_dict(opr.state_dict(), TablePolicy())
    with pytest.raises(ShapeMismatch, match=message):
        resumed.observe(dataclasses.replace(episodes([1.0]), **{name: torch.zeros(1, 1, *then)}))


def test_the_number_of_environments_may_change_while_nothing_is_in_play():
    opr = regularizer()
    opr.observe(make_steps([[1.0, 1.0], [1.0, 1.0]], [[True, False], [True, False]]))
    with pytest.raises(ShapeMismatch, match="steps of 3 environments; there were 2 before"):
        opr.observe(make_steps([[1.0, 1.0, 1.0]], [[True, True, True]]))
    opr.forget_unfinished()
    opr.observe(make_steps([[2.0, 3.0, 4.0]], [[True, True, True]]))
    assert stored_returns(opr) == [1.0, 1.0, 2.0, 3.0, 4.0]


def frames(*stacks):
    """One environment; an observation is a stack of two frames, each a number."""
    return torch.tensor(stacks, dtype=torch.uint8)[:, None, :, None]


@pytest.mark.parametrize("after", [[0, 3], [3, 3], [1, 3]])
def test_stacks_that_begin_anew_with_a_life_are_refused(after):
    opr = OptimisticRegularizer(OPRConfig(admission="gated"), frame_stack=2)
    ends = {"dones": [[False], [True], [True]], "episode_ends": [[False], [False], [True]]}
    whole = make_steps([[1.0]] * 3, obs=frames([0, 1], [1, 2], [2, 3]), **ends)
    opr.observe(whole)
    (stored,) = opr.memory.episodes
    assert opr.memory.pools["frames"][stored.frames].flatten().tolist() == [0, 1, 2, 3]
    with pytest.raises(ConfigError, match=r"stacked anew where a life is lost within a game.*frame_stack = 1"):
        opr.observe(dataclasses.replace(whole, obs=frames([0, 1], [1, 2], after)))


@pytest.mark.parametrize(
    ("settings", "more", "message"),
    [
        ({"capacity_transitions": 2}, {}, "3 transitions of 3 episodes were stored, and there is room for 2 of"),
        ({"capacity_episodes": 2}, {}, "room for [0-9,]+ of 2: raise capacity_transitions or capacity_episodes"),
        ({}, {"frame_stack": 4}, "another frame_stack than 4"),
    ],
)
def test_a_memory_that_does_not_fit_is_refused_before_anything_changes(settings, more, message):
    full = regularizer()
    full.observe(episodes([1.0, 2.0, 3.0]))
    other = OptimisticRegularizer(dataclasses.replace(full.config, **settings), **more)
    with pytest.raises(ConfigError, match=message):
        other.load_state_dict(full.state_dict(), TablePolicy())
    assert (other.updates, len(other.memory.episodes), other.memory.num_transitions) == (0, 0, 0)


def test_a_state_of_another_reading_of_the_good_policy_is_refused():
    recorded = regularizer(reference="recorded")
    with pytest.raises(ConfigError, match="no cloned reference: keep the reading"):
        regularizer(reference="cloned").load_state_dict(recorded.state_dict(), TablePolicy())


def test_something_else_than_a_state_is_refused():
    with pytest.raises(ConfigError, match="no state of OptimisticRegularizer: it lacks clocks, thresholds, memory"):
        regularizer().load_state_dict({"policy": 1}, TablePolicy())
