import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from optimist.core.advantages import discounted_returns, gae
from optimist.errors import ShapeMismatch


def column(*numbers):
    return torch.tensor(numbers)[:, None]


def test_gae_by_hand():
    # γ = 0.5, λ = 0.5; δ₂ = 3 + 0.5·4 − 1 = 4, δ₁ = 2 + 0.5·1 − 2 = 0.5, δ₀ = 1 + 0.5·2 − 1 = 1
    # A₂ = 4, A₁ = 0.5 + 0.25·4 = 1.5, A₀ = 1 + 0.25·1.5 = 1.375
    rewards, values, following = column(1.0, 2.0, 3.0), column(1.0, 2.0, 1.0), column(2.0, 1.0, 4.0)
    ends = column(False, False, False)
    advantages, returns = gae(rewards, values, following, ends, 0.5, 0.5)
    assert advantages.flatten().tolist() == [1.375, 1.5, 4.0]
    assert returns.flatten().tolist() == [2.375, 3.5, 5.0]


def test_an_end_cuts_the_sum_and_takes_the_next_value_it_is_given():
    # A₁ as above without A₂; A₀ = 1 + 0.5·0 − 1 = 0 after a real end, 1 + 0.5·10 − 1 = 5 with a bootstrap of 10
    rewards, values, ends = column(1.0, 2.0), column(1.0, 2.0), column(True, False)
    ended, _ = gae(rewards, values, column(0.0, 4.0), ends, 0.5, 0.5)
    cut_off, _ = gae(rewards, values, column(10.0, 4.0), ends, 0.5, 0.5)
    assert ended.flatten().tolist() == [0.0, 2.0]
    assert cut_off.flatten().tolist() == [5.0, 2.0]


def test_lambda_1_gives_the_discounted_return_less_the_value():
    generator = torch.Generator().manual_seed(0)
    rewards, values = torch.randn(20, 1, generator=generator), torch.randn(20, 1, generator=generator)
    following = torch.cat([values[1:], torch.tensor([[0.7]])])
    ends = torch.arange(20)[:, None] == 19
    advantages, _ = gae(rewards, values, following, ends, 0.9, 1.0)
    bootstraps = torch.where(ends, following, torch.zeros_like(values))
    expected = discounted_returns(rewards[:, 0], ends[:, 0], bootstraps[:, 0], 0.9) - values[:, 0]
    torch.testing.assert_close(advantages[:, 0], expected)


def test_lambda_0_gives_the_one_step_error():
    rewards, values, following = column(1.0, 2.0), column(1.0, 2.0), column(2.0, 4.0)
    assert gae(rewards, values, following, column(False, False), 0.5, 0.0)[0].flatten().tolist() == [1.0, 2.0]


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 12), st.integers(1, 4), st.floats(0, 1), st.floats(0, 1), st.integers(0, 2**31), st.floats(0, 1))
def test_gae_equals_a_plain_loop(num_steps, num_envs, gamma, gae_lambda, seed, end_rate):
    generator = torch.Generator().manual_seed(seed)
    shape = (num_steps, num_envs)
    rewards, values, following = (torch.randn(shape, generator=generator, dtype=torch.float64) for _ in range(3))
    ends = torch.rand(shape, generator=generator) < end_rate
    advantages, returns = gae(rewards, values, following, ends, gamma, gae_lambda)
    for n in range(num_envs):
        for t in range(num_steps):
            expected, factor = 0.0, 1.0
            for k in range(t, num_steps):  # the definition: Σ (γλ)^(k−t) δₖ up to the first end
                delta = rewards[k, n] + gamma * following[k, n] - values[k, n]
                expected += factor * delta.item()
                factor *= gamma * gae_lambda
                if ends[k, n]:
                    break
            assert advantages[t, n].item() == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert returns.equal(advantages + values)


def test_discounted_returns_by_hand():
    # R₂ = 3 + 0.5·8 = 7, R₁ = 2 (an end without bootstrap), R₀ = 1 + 0.5·2 = 2
    rewards, ends = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([False, True, True])
    assert discounted_returns(rewards, ends, torch.tensor([0.0, 0.0, 8.0]), 0.5).tolist() == [2.0, 2.0, 7.0]


def test_the_last_row_takes_its_bootstrap_even_where_no_end_is_marked():
    rewards, ends = torch.tensor([1.0, 3.0]), torch.tensor([False, False])
    assert discounted_returns(rewards, ends, torch.tensor([100.0, 8.0]), 0.5).tolist() == [4.5, 7.0]


def test_shapes_must_match():
    flat, matrix = torch.zeros(3), torch.zeros(3, 1)
    with pytest.raises(ShapeMismatch):
        gae(matrix, matrix, matrix, flat.bool(), 0.9, 0.9)
    with pytest.raises(ShapeMismatch):
        discounted_returns(flat, flat.bool(), matrix, 0.9)
