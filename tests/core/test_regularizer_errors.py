"""Wrong input to OptimisticRegularizer is refused in one line; OPR that is switched off does nothing."""

import dataclasses
import math
import re

import pytest
import torch

from optimist.core.config import OPRConfig
from optimist.core.regularizer import OptimisticRegularizer
from optimist.errors import ConfigError, NonFiniteLoss, ShapeMismatch
from tests.core.tables import TablePolicy, episodes, make_batch, make_steps, regularizer


def stored_returns(opr):
    return [e.total_reward for e in opr.memory.episodes]


@pytest.mark.parametrize("reward", [math.nan, math.inf])
def test_a_reward_that_is_not_finite_is_refused_before_the_window_changes(reward):
    opr = regularizer()
    opr.observe(episodes([1.0, 2.0]))
    with pytest.raises(NonFiniteLoss, match="a reward is nan or infinite"):
        opr.observe(episodes([reward]))
    assert list(opr.windows.windows[0].returns) == [1.0, 2.0]
    assert stored_returns(opr) == [1.0, 2.0]


def test_a_disabled_config_has_no_strength():
    opr = regularizer(enabled=False, shaping_scale=0.5, reference="cloned", augment_share=0.5, bc_phase_interval=1)
    steps, policy, batch = episodes([1.0, 2.0]), TablePolicy(), make_batch(4)
    opr.observe(steps)
    assert opr.shape(steps, policy) is steps.rewards
    assert opr.replay(batch, policy) is None
    assert list(opr.sample([4], policy)) == [None]
    assert opr.loss(policy) == 0.0
    opr.after_update(policy, lambda loss: pytest.fail("a phase"))


class WidePolicy(TablePolicy):
    """Returns a column too many: V as [B, 1], or log π of every action."""

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
        ("value", {"bc_weights": "uniform", "sampling": "uniform"}),
    ],
)
def test_a_policy_that_returns_too_many_columns_is_refused(wide, options):
    opr = regularizer(**options)
    opr.observe(episodes([1.0, 2.0]))
    with pytest.raises(ShapeMismatch, match=rf"{wide} is \[256, \d\] but returns is \[256\]"):
        opr.loss(WidePolicy(wide))


@pytest.mark.parametrize("call", ["loss", "shape"])
@pytest.mark.parametrize(
    ("lacking", "named"),
    [
        (("log_prob",), "no method log_prob; OPR"),
        (("value",), "no method value; OPR"),
        (("log_prob", "value"), "no method log_prob and no method value; OPR"),
    ],
)
def test_a_policy_without_the_two_methods_is_refused_before_anything_is_stored(lacking, named, call):
    methods = {"log_prob": lambda obs, actions: None, "value": lambda obs: None}
    policy = type("Net", (torch.nn.Module,), {name: methods[name] for name in methods if name not in lacking})()
    arguments = [policy] if call == "loss" else [episodes([1.0]), policy]
    with pytest.raises(ConfigError, match=rf"^Net has {named} needs log_prob\(obs, actions\) .* and value\(obs\) "):
        getattr(regularizer(), call)(*arguments)


@pytest.mark.parametrize("wrong", [{"gamma": 1.5}, {"gamma": math.nan}, {"gae_lambda": -0.1}, {"frame_stack": 0}])
def test_constants_out_of_range_are_refused(wrong):
    with pytest.raises(ConfigError, match="must be between 0 and 1, and frame_stack at least 1"):
        OptimisticRegularizer(OPRConfig(), **wrong)


@pytest.mark.parametrize(
    ("config", "shown"),
    [
        ({}, "bc_coef=0.1"),
        ("atari", "bc_coef=0.1"),
        ({"percentile": 90, "bc_coef": 0.3}, "percentile=90, bc_coef=0.3"),
        ({"opr.retention": "fifo"}, "retention='fifo'"),
    ],
)
def test_settings_of_another_type_are_answered_with_the_config_to_write(config, shown):
    kind = type(config).__name__
    with pytest.raises(ConfigError, match=re.escape(f"opr must be an OPRConfig, got {kind}; write OPRConfig({shown})")):
        OptimisticRegularizer(config)


def test_rewards_with_a_gradient_are_detached():
    steps = dataclasses.replace(episodes([1.0, 2.0]), rewards=torch.ones(2, 1, requires_grad=True))
    opr = regularizer()
    opr.observe(steps)
    assert stored_returns(opr) == [1.0, 1.0]


def test_a_bootstrap_value_that_is_not_finite_is_refused():
    steps = make_steps([[1.0]], [[True]], bootstraps=[[math.nan]])
    ended = dataclasses.replace(steps, dones=torch.tensor([[False]]), episode_ends=torch.tensor([[True]]))
    opr = regularizer()
    with pytest.raises(NonFiniteLoss, match="a reward or a bootstrap value that is nan or infinite"):
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
def test_observations_and_actions_keep_their_shape(name, first, then, message):
    opr = regularizer()
    opr.observe(dataclasses.replace(episodes([1.0]), **{name: torch.zeros(1, 1, *first)}))
    with pytest.raises(ShapeMismatch, match=message):
        opr.observe(dataclasses.replace(episodes([1.0]), **{name: torch.zeros(1, 1, *then)}))
    resumed = regularizer()
    resumed.load_state_dict(opr.state_dict(), TablePolicy())
    with pytest.raises(ShapeMismatch, match=message):
        resumed.observe(dataclasses.replace(episodes([1.0]), **{name: torch.zeros(1, 1, *then)}))


def test_the_number_of_environments_may_change_while_no_episode_is_unfinished():
    opr = regularizer()
    opr.observe(make_steps([[1.0, 1.0], [1.0, 1.0]], [[True, False], [True, False]]))
    with pytest.raises(ShapeMismatch, match="steps are of 3 environments but were of 2 before"):
        opr.observe(make_steps([[1.0, 1.0, 1.0]], [[True, True, True]]))
    opr.forget_unfinished()
    opr.observe(make_steps([[2.0, 3.0, 4.0]], [[True, True, True]]))
    assert stored_returns(opr) == [1.0, 1.0, 2.0, 3.0, 4.0]


def frames(*stacks):
    """One environment; an observation is a stack of two frames, each a number."""
    return torch.tensor(stacks, dtype=torch.uint8)[:, None, :, None]


@pytest.mark.parametrize("after", [[0, 3], [3, 3], [1, 3]])
def test_frame_stacks_that_restart_with_a_lost_life_are_refused(after):
    opr = OptimisticRegularizer(OPRConfig(admission="gated"), frame_stack=2)
    ends = {"dones": [[False], [True], [True]], "episode_ends": [[False], [False], [True]]}
    whole = make_steps([[1.0]] * 3, obs=frames([0, 1], [1, 2], [2, 3]), **ends)
    opr.observe(whole)
    (stored,) = opr.memory.episodes
    assert opr.memory.pools["frames"][stored.frames].flatten().tolist() == [0, 1, 2, 3]
    with pytest.raises(ConfigError, match=r"where a life is lost within an episode.*frame_stack = 1"):
        opr.observe(dataclasses.replace(whole, obs=frames([0, 1], [1, 2], after)))


@pytest.mark.parametrize(
    ("settings", "more", "message"),
    [
        ({"capacity_transitions": 2}, {}, "memory has 3 transitions of 3 episodes, and there is room for 2 of"),
        ({"capacity_episodes": 2}, {}, "room for [0-9,]+ of 2; raise capacity_transitions or capacity_episodes"),
        ({}, {"frame_stack": 4}, "a frame_stack other than 4; keep the one it has"),
    ],
)
def test_a_memory_that_does_not_fit_is_refused_before_anything_changes(settings, more, message):
    full = regularizer()
    full.observe(episodes([1.0, 2.0, 3.0]))
    other = OptimisticRegularizer(dataclasses.replace(full.config, **settings), **more)
    with pytest.raises(ConfigError, match=message):
        other.load_state_dict(full.state_dict(), TablePolicy())
    assert (other.updates, len(other.memory.episodes), other.memory.num_transitions) == (0, 0, 0)


def test_a_saved_state_without_a_cloned_reference_is_refused():
    recorded = regularizer(reference="recorded")
    with pytest.raises(ConfigError, match="no cloned reference; keep the `reference` it was saved with"):
        regularizer(reference="cloned", shaping_scale=0.5).load_state_dict(recorded.state_dict(), TablePolicy())


def test_a_state_of_something_else_is_refused():
    with pytest.raises(ConfigError, match="not one of OptimisticRegularizer: it lacks counters, windows, memory"):
        regularizer().load_state_dict({"policy": 1}, TablePolicy())
