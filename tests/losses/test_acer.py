"""ACER's objective by hand: Retrace, truncation with bias correction, trust region."""

import pytest
import torch

from optimist.core.advantages import gae
from optimist.errors import ShapeMismatch
from optimist.losses.acer import policy_objective, retrace, within_trust_region


def random_steps(seed: int, num_steps: int = 7, num_envs: int = 3):
    generator = torch.Generator().manual_seed(seed)
    shape = (num_steps, num_envs)
    rewards, taken, next_values = (torch.randn(shape, generator=generator, dtype=torch.float64) for _ in range(3))
    ends = torch.rand(shape, generator=generator) < 0.25
    ratios = (0.7 * torch.randn(shape, generator=generator, dtype=torch.float64)).exp()
    return rewards, taken, next_values, ends, ratios


def test_retrace_of_two_steps_by_hand():
    # γ = 0.5, λ = 1. Last row: 3 + 0.5·4 = 5. First: 1 + 0.5·[2 + min(1, 0.5)·(5 − 1)] = 3, and with a ratio of 2,
    # cut at 1: 1 + 0.5·[2 + 1·4] = 4. The first row's own ratio does not count.
    rewards, taken, following = (torch.tensor(column).view(2, 1) for column in ([1.0, 3.0], [7.0, 1.0], [2.0, 4.0]))
    ends = torch.zeros(2, 1, dtype=torch.bool)
    for ratio, expected in ((0.5, [3.0, 5.0]), (2.0, [4.0, 5.0])):
        ratios = torch.tensor([[9.0], [ratio]])
        assert retrace(rewards, taken, following, ends, ratios, 0.5, 1.0).flatten().tolist() == expected
    ends[0] = True
    assert retrace(rewards, taken, following, ends, ratios, 0.5, 1.0).flatten().tolist() == [2.0, 5.0]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("trace_lambda", [1.0, 0.9, 0.0])
def test_retrace_of_random_steps_equals_the_recursion(seed, trace_lambda):
    rewards, taken, next_values, ends, ratios = random_steps(seed)
    expected = torch.empty_like(taken)
    for n in range(taken.shape[1]):
        for t in reversed(range(len(taken))):
            following = next_values[t, n]
            if t + 1 < len(taken) and not ends[t, n]:
                following = following + trace_lambda * min(1.0, float(ratios[t + 1, n])) * (
                    expected[t + 1, n] - taken[t + 1, n]
                )
            expected[t, n] = rewards[t, n] + 0.9 * following
    torch.testing.assert_close(retrace(rewards, taken, next_values, ends, ratios, 0.9, trace_lambda), expected)


def test_retrace_of_on_policy_steps_with_q_equal_to_v_gives_lambda_returns():
    rewards, values, bootstraps, ends, ratios = random_steps(9)
    following = values.roll(-1, 0)
    following[-1] = bootstraps[-1]
    next_values = torch.where(ends, bootstraps, following)
    found = retrace(rewards, values, next_values, ends, torch.ones_like(ratios), 0.9, 0.8)
    torch.testing.assert_close(found, gae(rewards, values, next_values, ends, 0.9, 0.8)[1])


def test_shapes_of_retrace_must_match():
    rewards, taken, next_values, ends, ratios = random_steps(0)
    with pytest.raises(ShapeMismatch, match="ratios"):
        retrace(rewards, taken, next_values, ends, ratios[:-1], 0.9, 1.0)


def gradient_of(probabilities, behavior, action, q, q_ret, cap):
    leaf = torch.tensor([probabilities], dtype=torch.float64, requires_grad=True)
    others = (torch.tensor([column], dtype=torch.float64) for column in (behavior, q))
    behavior, q = others
    policy_objective(leaf, behavior, torch.tensor([action]), q, torch.tensor([q_ret]), cap).sum().backward()
    return leaf.grad[0].tolist()


def test_the_policy_gradient_without_truncation_by_hand():
    # π = (½, ½), μ = (¼, ¾), so ρ = (2, ⅔) below c = 10. V = ½·4 + ½·0 = 2, and g₀ = 2·(5 − 2)/½ = 12.
    assert gradient_of([0.5, 0.5], [0.25, 0.75], 0, [4.0, 0.0], 5.0, 10.0) == pytest.approx([12.0, 0.0])


def test_truncation_and_its_bias_correction_by_hand():
    # The same with c = 1: truncated 1·(5 − 2)/½ = 6; corrections [1 − 1/2]·(4 − 2) = 1 and, where ρ < 1, 0.
    assert gradient_of([0.5, 0.5], [0.25, 0.75], 0, [4.0, 0.0], 5.0, 1.0) == pytest.approx([7.0, 0.0])
    # Action 1 was taken: min(1, ⅔)·(1 − 2)/½ = −4/3, and the correction of action 0 stays.
    assert gradient_of([0.5, 0.5], [0.25, 0.75], 1, [4.0, 0.0], 1.0, 1.0) == pytest.approx([1.0, -4 / 3])


def test_with_the_true_q_the_corrected_gradient_is_unbiased():
    # Averaged over actions of μ, with Q_ret = Q, it is Σ_a (Q(a) − V), the policy gradient over π, for any cap.
    policy, behavior, q = [0.6, 0.3, 0.1], [0.05, 0.5, 0.45], [1.0, -2.0, 3.0]
    value = sum(p * each for p, each in zip(policy, q, strict=True))
    for cap in (0.5, 2.0, 100.0):
        grads = [gradient_of(policy, behavior, action, q, q[action], cap) for action in range(3)]
        mean = [sum(m * grad[b] for m, grad in zip(behavior, grads, strict=True)) for b in range(3)]
        assert mean == pytest.approx([each - value for each in q])


def test_a_gradient_within_the_trust_region_is_unchanged_and_others_are_projected_by_hand():
    # π_avg = π = (½, ½): k = (−1, −1). g = (3, −1): kᵀg = −2 < δ, unchanged.
    half = torch.tensor([[0.5, 0.5]])
    unchanged = torch.tensor([[3.0, -1.0]])
    assert within_trust_region(unchanged, half, half, 1.0).equal(unchanged)
    # g = (−3, −1): kᵀg = 4, (4 − 1)/2 = 1.5, g* = g + 1.5·(1, 1) = (−1.5, 0.5), with kᵀg* = δ = 1.
    assert within_trust_region(torch.tensor([[-3.0, -1.0]]), half, half, 1.0).tolist() == [[-1.5, 0.5]]


def test_actions_of_almost_no_probability_give_finite_gradients():
    grad = gradient_of([1.0, 0.0], [0.0, 1.0], 0, [1e3, -1e3], 5.0, 10.0)
    assert all(abs(number) < 1e12 for number in grad)
    found = within_trust_region(torch.tensor([grad]), torch.tensor([[1.0, 0.0]]), torch.tensor([[0.5, 0.5]]), 1.0)
    assert found.isfinite().all()
