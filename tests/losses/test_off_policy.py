import pytest
import torch

from optimist.core.advantages import gae
from optimist.errors import ShapeMismatch
from optimist.losses.off_policy import truncated_traces


def random_steps(seed: int, num_steps: int = 7, num_envs: int = 3):
    generator = torch.Generator().manual_seed(seed)
    shape = (num_steps, num_envs)
    rewards, values, behind = (torch.randn(shape, generator=generator, dtype=torch.float64) for _ in range(3))
    ends = torch.rand(shape, generator=generator) < 0.25
    following = values.roll(-1, 0)
    following[-1] = behind[-1]
    next_values = torch.where(ends, behind, following)
    ratios = (0.7 * torch.randn(shape, generator=generator, dtype=torch.float64)).exp()
    return rewards, values, next_values, ends, ratios


def by_definition(rewards, values, next_values, ends, ratios, gamma, trace_lambda, cap):
    """v as the sum over later steps of discounted, weighted errors; one product at a time."""
    num_steps, num_envs = rewards.shape
    targets, advantages = torch.empty_like(values), torch.empty_like(values)
    for n in range(num_envs):
        for s in range(num_steps):
            total, factor = float(values[s, n]), 1.0
            for t in range(s, num_steps):
                rho = min(float(ratios[t, n]), cap)
                error = float(rewards[t, n] + gamma * next_values[t, n] - values[t, n])
                total += factor * rho * error
                factor *= gamma * trace_lambda * rho
                if ends[t, n]:
                    break
            targets[s, n] = total
        for s in range(num_steps):
            cut = ends[s, n] or s == num_steps - 1
            following = next_values[s, n] if cut else targets[s + 1, n]
            advantages[s, n] = rewards[s, n] + gamma * following - values[s, n]
    return targets, advantages


def test_two_steps_by_hand():
    # γ = 0.5, λ = 1, cap 1. Ratios 2 → 1 and 0.5. δ = (1 + 0.5·2 − 0, 3 + 0 − 2) = (2, 1); v₁ = 2 + 0.5·1 = 2.5;
    # v₀ = 0 + 2 + 0.5·1·0.5 = 2.25; advantages 1 + 0.5·2.5 − 0 = 2.25 and 3 − 2 = 1.
    columns = [torch.tensor(column).view(2, 1) for column in ([1.0, 3.0], [0.0, 2.0], [2.0, 0.0])]
    ends, ratios = torch.tensor([[False], [True]]), torch.tensor([[2.0], [0.5]])
    targets, advantages = truncated_traces(*columns, ends, ratios, 0.5, 1.0, 1.0)
    assert targets.flatten().tolist() == [2.25, 2.5]
    assert advantages.flatten().tolist() == [2.25, 1.0]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("trace_lambda", "cap"), [(1.0, 1.0), (0.9, 1.0), (1.0, 1.7), (0.0, 10.0)])
def test_random_steps_equal_the_definition(seed, trace_lambda, cap):
    steps = random_steps(seed)
    fast, plain = (f(*steps, 0.9, trace_lambda, cap) for f in (truncated_traces, by_definition))
    for mine, expected in zip(fast, plain, strict=True):
        torch.testing.assert_close(mine, expected)


@pytest.mark.parametrize("trace_lambda", [1.0, 0.8])
def test_on_the_policys_own_steps_the_targets_are_lambda_returns(trace_lambda):
    rewards, values, next_values, ends, ratios = random_steps(9)
    own = torch.ones_like(ratios)
    targets, advantages = truncated_traces(rewards, values, next_values, ends, own, 0.9, trace_lambda, 1.0)
    gae_advantages, gae_returns = gae(rewards, values, next_values, ends, 0.9, trace_lambda)
    torch.testing.assert_close(targets, gae_returns)
    if trace_lambda == 1.0:
        torch.testing.assert_close(advantages, gae_advantages)


def test_a_step_the_policy_would_never_take_moves_no_target():
    rewards, values, next_values, ends, ratios = random_steps(3)
    ratios[2] = 0.0
    targets, _ = truncated_traces(rewards, values, next_values, ends, ratios, 0.9, 1.0, 1.0)
    assert targets[2].equal(values[2])
    changed = rewards.clone()
    changed[3:] += 100.0
    later, _ = truncated_traces(changed, values, next_values, ends, ratios, 0.9, 1.0, 1.0)
    assert later[:3].equal(targets[:3])


def test_shapes_are_checked():
    rewards, values, next_values, ends, ratios = random_steps(0)
    with pytest.raises(ShapeMismatch, match="ratios"):
        truncated_traces(rewards, values, next_values, ends, ratios[:-1], 0.9, 1.0, 1.0)
