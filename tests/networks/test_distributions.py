import math

import gymnasium as gym
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from optimist.errors import ConfigError
from optimist.networks.distributions import Categorical, DiagonalGaussian, MultiCategorical, make_action_head

LOGITS = torch.tensor([[0.0, math.log(3.0)], [math.log(9.0), 0.0]])  # π = (1/4, 3/4) and (9/10, 1/10)


def test_categorical_by_hand():
    head = Categorical(2)
    actions = torch.tensor([1, 1])
    torch.testing.assert_close(head.log_prob(LOGITS, actions), torch.tensor([math.log(0.75), math.log(0.1)]))
    logp, entropy = head.log_prob_and_entropy(LOGITS, actions)
    assert logp.equal(head.log_prob(LOGITS, actions))
    by_hand = [-(0.25 * math.log(0.25) + 0.75 * math.log(0.75)), -(0.9 * math.log(0.9) + 0.1 * math.log(0.1))]
    torch.testing.assert_close(entropy, torch.tensor(by_hand))
    assert head.mode(LOGITS).tolist() == [1, 0]


def test_categorical_samples_follow_the_probabilities():
    samples = Categorical(2).sample(LOGITS.repeat_interleave(20_000, 0), torch.Generator().manual_seed(0))
    assert samples[:20_000].float().mean().item() == pytest.approx(0.75, abs=0.01)
    assert samples[20_000:].float().mean().item() == pytest.approx(0.1, abs=0.01)


def test_samples_among_many_follow_the_probabilities():
    probabilities = torch.tensor([0.05, 0.5, 0.15, 0.3])
    samples = Categorical(4).sample(probabilities.log().expand(40_000, 4), torch.Generator().manual_seed(0))
    torch.testing.assert_close(samples.bincount() / 40_000, probabilities, atol=0.01, rtol=0)


def test_multi_categorical_is_its_parts_side_by_side():
    head, parts = MultiCategorical([2, 3]), [Categorical(2), Categorical(3)]
    params = torch.randn(5, 5, generator=torch.Generator().manual_seed(1))
    actions = torch.tensor([[0, 2], [1, 1], [0, 0], [1, 2], [0, 1]])
    both = [
        part.log_prob_and_entropy(p, a) for part, p, a in zip(parts, params.split([2, 3], 1), actions.T, strict=True)
    ]
    logp, entropy = head.log_prob_and_entropy(params, actions)
    torch.testing.assert_close(logp, both[0][0] + both[1][0])
    torch.testing.assert_close(entropy, both[0][1] + both[1][1])
    torch.testing.assert_close(head.log_prob(params, actions), logp)
    assert head.mode(params).equal(torch.stack([params[:, :2].argmax(1), params[:, 2:].argmax(1)], 1))
    assert head.num_params == 5


def test_multi_categorical_samples_are_in_range_and_independent():
    head = MultiCategorical([2, 3])
    samples = head.sample(torch.zeros(30_000, 5), torch.Generator().manual_seed(0))
    counts = torch.zeros(2, 3)
    for a, b in samples.tolist():
        counts[a, b] += 1
    torch.testing.assert_close(counts / 30_000, torch.full((2, 3), 1 / 6), atol=0.01, rtol=0)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 4), st.floats(-2, 1), st.integers(0, 1000))
def test_gaussian_equals_torchs_own(size, log_std, seed):
    head = DiagonalGaussian(size, log_std)
    generator = torch.Generator().manual_seed(seed)
    mean, actions = torch.randn(6, size, generator=generator), torch.randn(6, size, generator=generator)
    reference = torch.distributions.Normal(mean, head.log_std.exp())
    logp, entropy = head.log_prob_and_entropy(mean, actions)
    torch.testing.assert_close(logp, reference.log_prob(actions).sum(-1), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(entropy, reference.entropy().sum(-1), rtol=1e-4, atol=1e-4)
    assert head.mode(mean).equal(mean)


def test_gaussian_samples_have_the_mean_and_the_spread():
    head = DiagonalGaussian(2, math.log(0.5))
    samples = head.sample(torch.tensor([[1.0, -3.0]]).expand(20_000, 2), torch.Generator().manual_seed(0)).detach()
    torch.testing.assert_close(samples.mean(0), torch.tensor([1.0, -3.0]), atol=0.02, rtol=0)
    torch.testing.assert_close(samples.std(0), torch.tensor([0.5, 0.5]), atol=0.02, rtol=0)


@pytest.mark.parametrize("head", [Categorical(3), MultiCategorical([2, 2]), DiagonalGaussian(2, 0.0)])
def test_sampling_uses_the_given_generator_alone(head):
    params, state = torch.randn(4, head.num_params), torch.get_rng_state()
    one, same, other = (head.sample(params, torch.Generator().manual_seed(seed)) for seed in (1, 1, 2))
    assert one.equal(same)
    assert head.sample(torch.randn(500, head.num_params), torch.Generator().manual_seed(3)).unique(dim=0).shape[0] > 1
    assert other.shape == one.shape
    torch.set_rng_state(state)
    head.sample(params, torch.Generator().manual_seed(1))
    assert torch.get_rng_state().equal(state)


def test_the_space_selects_the_head():
    discrete = make_action_head(gym.spaces.Discrete(4), 0.0)
    multi = make_action_head(gym.spaces.MultiDiscrete([2, 3]), 0.0)
    box = make_action_head(gym.spaces.Box(-1, 1, (3,)), -0.5)
    assert (type(discrete), discrete.num_params) == (Categorical, 4)
    assert (type(multi), multi.sizes) == (MultiCategorical, [2, 3])
    assert (type(box), box.log_std.tolist()) == (DiagonalGaussian, [-0.5, -0.5, -0.5])


@pytest.mark.parametrize(
    "space",
    [
        gym.spaces.Discrete(4, start=1),
        gym.spaces.MultiBinary(3),
        gym.spaces.Discrete(3, start=-1),
        gym.spaces.Box(-1, 1, (2, 2)),
        gym.spaces.Box(0, 5, (2,), np.int64),
        gym.spaces.MultiDiscrete([2, 2], start=[0, 1]),
        gym.spaces.Tuple([gym.spaces.Discrete(2)]),
        gym.spaces.MultiDiscrete(np.array([[2, 2], [3, 3]])),
        gym.spaces.Dict({"a": gym.spaces.Discrete(2)}),
    ],
)
def test_a_space_without_a_policy_is_an_error(space):
    expected = r"expected Discrete or MultiDiscrete from 0, or a Box \[n\] of floats"
    with pytest.raises(ConfigError, match=rf"no policy for the action space (.|\n)*; {expected}"):
        make_action_head(space, 0.0)
