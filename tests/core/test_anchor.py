import torch

from optimist.core.anchor import Anchor, NoAnchor
from optimist.core.config import OPRConfig
from optimist.core.regularizer import OptimisticRegularizer
from tests.core.tables import TablePolicy, make_steps
from tests.core.test_batch import make_batch


def test_both_anchors_keep_the_protocol():
    assert isinstance(NoAnchor(), Anchor)
    assert isinstance(OptimisticRegularizer(OPRConfig()), Anchor)


def test_no_anchor_hands_back_what_it_was_given():
    anchor, policy = NoAnchor(), TablePolicy()
    steps, batch, losses = make_steps([[1.0]], [[1]]), make_batch(3), []
    anchor.observe(steps)
    assert anchor.shape(steps, policy) is steps.rewards
    assert anchor.augment(batch, policy) is batch
    assert anchor.loss(policy, None).item() == 0.0
    anchor.after_update(policy, losses.append)
    anchor.forget_unfinished()
    assert (losses, anchor.metrics(), anchor.state_dict()) == ([], {}, {})
    anchor.load_state_dict({}, policy)


def test_no_anchor_has_no_gradient():
    assert not torch.as_tensor(NoAnchor().loss(TablePolicy())).requires_grad
