"""What a loop of one's own may hand over by mistake, and what it means to switch the method off."""

import math

import pytest

from optimist.core.config import OPRConfig
from optimist.core.regularizer import OptimisticRegularizer
from optimist.errors import ConfigError, NonFiniteLoss, ShapeMismatch
from tests.core.tables import TablePolicy
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
