"""Optimisers of the learners: steps by hand, and equal to those of torch and Stable-Baselines3."""

import pytest
import torch

from optimist.algorithms.optimizers import CenteredRMSprop, FlatAdam, TensorFlowRMSprop


def test_tensorflows_rmsprop_by_hand_and_as_in_stable_baselines3():
    from stable_baselines3.common.sb2_compat.rmsprop_tf_like import RMSpropTFLike

    parameters = [torch.nn.Parameter(torch.ones(7)) for _ in range(2)]
    ours = TensorFlowRMSprop(parameters[:1], lr=0.1, alpha=0.9, eps=1e-3)
    theirs = RMSpropTFLike(parameters[1:], lr=0.1, alpha=0.9, eps=1e-3)
    expected, square = 1.0, 1.0
    for seed in range(10):
        gradient = torch.randn(7, generator=torch.Generator().manual_seed(seed))
        for parameter, optimizer in zip(parameters, (ours, theirs), strict=True):
            parameter.grad = gradient.clone()
            optimizer.step()
        square = 0.9 * square + 0.1 * gradient[0].item() ** 2
        expected -= 0.1 * gradient[0].item() / (square + 1e-3) ** 0.5
    assert parameters[0][0].item() == pytest.approx(expected, rel=1e-5)
    assert torch.allclose(*parameters, rtol=1e-5)


@pytest.mark.parametrize("eps", [1e-8, 1.5e-4])
def test_flat_adam_takes_the_steps_of_torchs_adam(eps):
    ours, theirs = (torch.nn.Parameter(torch.linspace(-1, 1, 50)) for _ in range(2))
    flat = FlatAdam([ours], lr=1e-2, betas=(0.9, 0.99), eps=eps)
    torchs = torch.optim.Adam([theirs], lr=1e-2, betas=(0.9, 0.99), eps=eps)
    for i in range(20):
        gradient = torch.randn(50, generator=torch.Generator().manual_seed(i))
        ours.grad, theirs.grad = gradient.clone(), gradient.clone()
        flat.step()
        torchs.step()
    assert torch.allclose(ours, theirs, rtol=1e-5, atol=1e-7)


def test_centered_rmsprop_by_hand():
    parameter = torch.nn.Parameter(torch.tensor([1.0]))
    optimizer = CenteredRMSprop([parameter], lr=0.1, alpha=0.9, eps=0.01)
    expected, mean, square = 1.0, 0.0, 0.0
    for gradient in (2.0, -1.0, 0.5):
        parameter.grad = torch.tensor([gradient])
        optimizer.step()
        mean, square = 0.9 * mean + 0.1 * gradient, 0.9 * square + 0.1 * gradient**2
        expected -= 0.1 * gradient / (square - mean**2 + 0.01) ** 0.5
    assert parameter.item() == pytest.approx(expected, rel=1e-5)


def test_epsilon_for_the_mean_loss_is_natures_epsilon_over_the_squared_batch_size():
    weights = []
    for rows, eps in ((1, 0.01 / 32**2), (32, 0.01)):
        parameter = torch.nn.Parameter(torch.zeros(50))
        optimizer = CenteredRMSprop([parameter], lr=0.1, alpha=0.95, eps=eps)
        for seed in range(20):
            parameter.grad = 1e-3 * rows * torch.randn(50, generator=torch.Generator().manual_seed(seed))
            optimizer.step()
        weights.append(parameter.detach())
    assert torch.allclose(*weights, rtol=1e-4, atol=1e-6)
    assert weights[0].abs().mean() > 0.01


def test_centered_rmsprop_of_a_nearly_constant_gradient_is_finite():
    parameter = torch.nn.Parameter(torch.zeros(64))
    optimizer = CenteredRMSprop([parameter], lr=1e-4, alpha=0.95, eps=1e-5)
    noise = torch.Generator().manual_seed(0)
    for _ in range(600):  # the spread of these is below what float32 keeps of their squares
        parameter.grad = 10.0 * (1.0 + 1e-4 * torch.randn(64, generator=noise))
        optimizer.step()
    assert parameter.isfinite().all()
