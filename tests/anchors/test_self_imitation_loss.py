"""The loss of self-imitation by hand and compared with a plain loop over the authors' formulas."""

import math

import pytest
import torch

from optimist.anchors.self_imitation import capped_negative_logp, self_imitation
from optimist.config.sil import SILConfig
from optimist.errors import ShapeMismatch

SMALL = SILConfig(min_normalizer=1, entropy_coef=0.01)


def tensors(*rows):
    return [torch.tensor(row, dtype=torch.float64, requires_grad=True) for row in rows]


def by_hand(logp, entropy, values, returns, weights, config):
    """The sums of the authors' code, one step at a time."""
    policy = value = bonus = 0.0
    better = sum(r > v for r, v in zip(returns, values, strict=True))
    for p, h, v, r, w in zip(logp, entropy, values, returns, weights, strict=True):
        advantage = min(max(r - v, 0.0), config.advantage_clip)
        policy += w * advantage * min(-p, config.max_negative_logp)
        value += 0.5 * w * v * max(min(v - r, 0.0), -config.advantage_clip)
        bonus += w * h * (r > v)
    count = max(better, config.min_normalizer)
    return policy / count, value / count, bonus / count


def test_a_return_above_the_value_by_hand():
    # R = 2, V = 1.5, log π = −2, H = 0.7, w = 0.5: policy 0.5·0.5·2 = 0.5; value ½·0.5·1.5·(−0.5) = −0.1875.
    logp, entropy, values, returns, weights = tensors([-2.0], [0.7], [1.5], [2.0], [0.5])
    terms = self_imitation(logp, entropy, values, returns, weights, SMALL)
    assert terms.policy.item() == pytest.approx(0.5)
    assert terms.value.item() == pytest.approx(-0.1875)
    assert terms.entropy.item() == pytest.approx(0.35)
    assert terms.total(SMALL).item() == pytest.approx(0.5 - 0.01 * 0.1875 - 0.01 * 0.35)
    halved = SILConfig(min_normalizer=1, coef=0.5, value_coef=2.0, entropy_coef=0.0)
    assert terms.total(halved).item() == pytest.approx(0.5 * (0.5 - 2.0 * 0.1875))


def test_a_return_below_the_value_gives_no_gradient():
    logp, entropy, values, returns, weights = tensors([-2.0, -1.0], [0.7, 0.7], [1.5, 1.0], [1.0, 1.0], [1.0, 1.0])
    terms = self_imitation(logp, entropy, values, returns, weights, SMALL)
    terms.total(SMALL).backward()
    assert terms.total(SMALL).item() == 0.0
    assert not logp.grad.any()
    assert not values.grad.any()
    assert not entropy.grad.any()
    assert terms.valid.item() == 0.0


def test_the_gradients_are_those_of_the_paper():
    logp, entropy, values, returns, weights = tensors([-2.0, -0.5], [0.7, 0.2], [1.5, 0.0], [2.0, 9.0], [1.0, 0.25])
    self_imitation(logp, entropy, values, returns, weights, SMALL).total(SMALL).backward()
    # Two steps with R > V: everything over 2. Advantages 0.5 and 1, the second clipped.
    assert logp.grad.tolist() == pytest.approx([-0.5 / 2, -0.25 * 1.0 / 2])
    assert values.grad.tolist() == pytest.approx([0.01 * 0.5 * -0.5 / 2, 0.01 * 0.5 * 0.25 * -1.0 / 2])
    assert entropy.grad.tolist() == pytest.approx([-0.01 / 2, -0.01 * 0.25 / 2])


def test_the_value_gradient_is_half_that_of_the_squared_advantage():
    # The authors' 0.5 · clip(V − R): half the gradient of ½ ((R − V)₊)².
    values, returns = torch.tensor([0.3, 0.9], requires_grad=True), torch.tensor([0.8, 0.5])
    zeros, ones = torch.zeros(2), torch.ones(2)
    self_imitation(zeros, zeros, values, returns, ones, SMALL).value.backward()
    squared = torch.tensor([0.3, 0.9], requires_grad=True)
    (0.5 * (returns - squared).clamp_min(0.0).square()).sum().backward()
    assert values.grad.tolist() == pytest.approx((0.5 * squared.grad).tolist())


@pytest.mark.parametrize("normalizer", [1, 3, 64])
def test_a_random_batch_equals_the_plain_loop(normalizer):
    config = SILConfig(min_normalizer=normalizer, max_negative_logp=1.5, advantage_clip=0.7)
    generator = torch.Generator().manual_seed(normalizer)
    rows = [torch.rand(40, generator=generator, dtype=torch.float64) for _ in range(5)]
    rows[0] = -3.0 * rows[0]
    terms = self_imitation(*rows, config)
    expected = by_hand(*(row.tolist() for row in rows), config)
    assert [terms.policy.item(), terms.value.item(), terms.entropy.item()] == pytest.approx(list(expected))


def test_few_steps_with_an_advantage_are_divided_by_the_smallest_normaliser():
    columns = tensors([-1.0, -1.0], [0.0, 0.0], [0.0, 5.0], [1.0, 1.0], [1.0, 1.0])
    assert self_imitation(*columns, SILConfig()).policy.item() == pytest.approx(1.0 / 64)
    assert self_imitation(*columns, SMALL).policy.item() == pytest.approx(1.0)


def test_the_cap_limits_the_value_and_not_the_gradient():
    logp = torch.tensor([-0.5, -5.0, -50.0], requires_grad=True)
    capped = capped_negative_logp(logp, 5.0)
    assert capped.tolist() == [0.5, 5.0, 5.0]
    capped.sum().backward()
    assert logp.grad.tolist() == [-1.0, -1.0, -1.0]


def test_an_improbable_action_gets_its_full_gradient():
    logits = torch.tensor([[0.0, 20.0]], requires_grad=True)
    logp = logits.log_softmax(-1)[:, 0]
    assert -logp.item() > 5.0
    one, zero = torch.ones(1), torch.zeros(1)
    terms = self_imitation(logp, zero, zero, one, one, SMALL)
    terms.policy.backward()
    assert terms.policy.item() == pytest.approx(5.0)
    assert logits.grad[0, 0].item() == pytest.approx(-1.0, abs=1e-6)


def test_shapes_are_checked():
    two, three = torch.zeros(2), torch.zeros(3)
    with pytest.raises(ShapeMismatch, match="returns"):
        self_imitation(two, two, two, three, two, SMALL)


def test_a_batch_without_advantages_gives_no_nan():
    none = torch.zeros(4)
    assert math.isfinite(self_imitation(none, none, none, none, none + 1, SILConfig()).total(SILConfig()).item())
