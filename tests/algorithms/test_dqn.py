"""DQN and Rainbow: their losses by hand, their schedules, and what each part changes."""

import dataclasses

import gymnasium as gym
import numpy as np
import pytest
import torch

from optimist.algorithms.dqn import DQN, MarginPolicy
from optimist.algorithms.flat_adam import FlatAdam
from optimist.algorithms.rainbow import Rainbow
from optimist.algorithms.rmsprop import CenteredRMSprop
from optimist.algorithms.value_based_config import DQNConfig, RainbowConfig
from optimist.config import EnvConfig, NetworkConfig, RunConfig
from optimist.core.config import OPRConfig
from optimist.core.regularizer import OptimisticRegularizer
from optimist.errors import ConfigError, NonFiniteLoss
from optimist.losses.distributional import project
from optimist.networks.q_network import make_q_network
from optimist.replay.buffer import Transitions
from optimist.rollout.batch import Rollout
from tests.replay.rollouts import make_rollout

OFF = {"double": False, "dueling": False, "noisy": False, "atoms": 1, "n_step": 1, "priority_exponent": 0.0}
SMALL = {"rollout_steps": 4, "minibatch_size": 8, "learning_starts": 0, "replay_capacity": 500}


def make(config, anchor=None, **network):
    torch.manual_seed(0)
    space = gym.spaces.Box(-9.0, 9.0, (2,), np.float32)
    policy = make_q_network(space, gym.spaces.Discrete(3), NetworkConfig(**({"hidden": (8,)} | network)), config)
    kind = Rainbow if isinstance(config, RainbowConfig) else DQN
    return kind(policy, config, anchor, seed=1)


def batch(weights=None) -> Transitions:
    generator = torch.Generator().manual_seed(4)
    return Transitions(
        obs=torch.randn(5, 2, generator=generator),
        actions=torch.tensor([0, 2, 1, 0, 2]),
        returns=torch.tensor([0.0, 1.0, -1.0, 0.5, 2.0]),
        next_obs=torch.randn(5, 2, generator=generator),
        discounts=torch.tensor([0.9, 0.9, 0.0, 0.9, 0.81]),
        positions=torch.arange(5),
        weights=weights,
    )


def shake_target(learner):
    """Online and target network differ, as in the middle of a run."""
    with torch.no_grad():
        learner.target_flat.add_(torch.randn(len(learner.target_flat), generator=torch.Generator().manual_seed(7)))


@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize("weights", [None, torch.tensor([1.0, 0.5, 0.0, 0.2, 1.0])], ids=["plain", "weighted"])
def test_the_loss_of_dqn_row_by_row(double, weights):
    learner, rows = make(DQNConfig(double=double, **SMALL)), batch(weights)
    shake_target(learner)
    q, next_q, next_online = (
        network.q_values(obs).detach() for network, obs in
        ((learner.policy, rows.obs), (learner.target, rows.next_obs), (learner.policy, rows.next_obs))
    )  # fmt: skip
    losses = []
    for i in range(5):
        best = next_online[i].argmax() if double else next_q[i].argmax()
        error = float(rows.returns[i] + rows.discounts[i] * next_q[i, best] - q[i, rows.actions[i]])
        loss = 0.5 * error**2 if abs(error) < 1 else abs(error) - 0.5
        losses.append(loss * (1.0 if weights is None else float(weights[i])))
    terms = learner.losses(rows)
    assert terms.td.item() == pytest.approx(sum(losses) / 5, rel=1e-5)
    assert terms.total.item() == terms.td.item()
    assert terms.mean_q.item() == pytest.approx(float(q.gather(1, rows.actions[:, None]).mean()))


@pytest.mark.parametrize("double", [False, True])
def test_the_loss_of_rainbow_row_by_row(double):
    config = RainbowConfig(noisy=False, double=double, atoms=5, value_min=-2.0, value_max=2.0, **SMALL)
    learner, rows = make(config), batch(torch.tensor([1.0, 0.5, 0.1, 0.2, 1.0]))
    shake_target(learner)
    logp = learner.policy(rows.obs).log_softmax(-1).detach()
    next_p = learner.target(rows.next_obs).softmax(-1)
    chooser = learner.policy if double else learner.target
    best = chooser.q_values(rows.next_obs).argmax(-1)
    losses = []
    for i in range(5):
        target = project(next_p[i : i + 1, best[i]], rows.returns[i : i + 1], rows.discounts[i : i + 1],
                         torch.linspace(-2.0, 2.0, 5))[0]  # fmt: skip
        losses.append(-float((target * logp[i, rows.actions[i]]).sum()))
    terms = learner.losses(rows)
    assert terms.row_losses.tolist() == pytest.approx(losses, rel=1e-4)
    weighted = [w * loss for w, loss in zip(rows.weights.tolist(), losses, strict=True)]
    assert terms.td.item() == pytest.approx(sum(weighted) / 5, rel=1e-4)


@pytest.mark.parametrize("loss", ["huber", "squared"])
@pytest.mark.parametrize("activation", ["relu", "tanh"])
@pytest.mark.parametrize("hidden", [(), (8,), (8, 6, 4)])
@pytest.mark.parametrize("weights", [None, torch.tensor([1.0, 0.5, 0.0, 0.2, 1.0])], ids=["plain", "weighted"])
def test_the_gradient_written_out_is_autograds(loss, activation, hidden, weights):
    learner = make(DQNConfig(loss=loss, double=True, **SMALL), hidden=hidden, activation=activation)
    shake_target(learner)
    terms = learner.losses(batch(weights))
    learner.flat.grad.zero_()
    terms.total.backward()
    expected = learner.flat.grad.clone()
    learner.flat.grad.fill_(99.0)  # whatever was there is replaced
    written = learner.differentiated(batch(weights), learner.gradient)
    assert torch.allclose(learner.flat.grad, expected, rtol=1e-4, atol=1e-7)
    assert expected.abs().max() > 1e-3
    assert written.total.item() == pytest.approx(terms.total.item(), rel=1e-6)
    assert written.mean_q.item() == pytest.approx(terms.mean_q.item(), rel=1e-6)


def test_an_anchors_gradient_comes_on_top():
    class Pull:
        def loss(self, policy, good=None):
            return 0.5 * learner.flat_sum()

    learner = make(DQNConfig(**SMALL))
    learner.flat_sum = lambda: sum(parameter.sum() for parameter in learner.policy.parameters())
    learner.differentiated(batch(), learner.gradient)
    alone = learner.flat.grad.clone()
    learner.anchor = Pull()
    learner.differentiated(batch(), learner.gradient)
    assert torch.allclose(learner.flat.grad, alone + 0.5, atol=1e-6)


def test_only_plain_networks_have_their_gradient_written_out():
    assert make(RainbowConfig(**(SMALL | OFF))).gradient is not None
    for part in ({"dueling": True}, {"noisy": True}, {"atoms": 11}):
        assert make(RainbowConfig(**(SMALL | OFF | part))).gradient is None


def test_targets_have_no_gradient_and_the_target_network_stays():
    learner = make(DQNConfig(double=True, **SMALL))
    before = learner.target_flat.clone()
    learner.learn(batch())
    assert learner.target_flat.equal(before)
    assert not learner.flat.equal(before)
    assert not learner.targets(batch()).requires_grad


def test_the_target_network_is_copied_by_steps_or_by_gradient_steps():
    learner = make(DQNConfig(target_interval=10, **SMALL))
    learner.learn(batch())
    learner.count_steps(8)
    assert not learner.target_flat.equal(learner.flat)
    learner.count_steps(8)  # 16: past 10
    assert learner.target_flat.equal(learner.flat)
    other = make(DQNConfig(target_interval=2, target_unit="gradient_steps", **SMALL))
    other.learn(batch())
    assert not other.target_flat.equal(other.flat)
    other.learn(batch())
    assert other.target_flat.equal(other.flat)


def test_epsilon_falls_linearly_and_stays():
    config = DQNConfig(epsilon_start=1.0, epsilon_final=0.2, epsilon_steps=100)
    assert [config.epsilon(steps) for steps in (0, 50, 100, 1000)] == pytest.approx([1.0, 0.6, 0.2, 0.2])
    learner = make(dataclasses.replace(config, **SMALL))
    assert learner.policy.epsilon == 1.0
    learner.count_steps(50)
    assert learner.policy.epsilon == pytest.approx(0.6)


def test_priorities_are_the_rows_losses():
    learner = make(RainbowConfig(**(SMALL | {"noisy": False})))
    for seed in range(3):
        obs = torch.randn(4, 2, 2, generator=torch.Generator().manual_seed(seed))
        rollout = make_rollout(obs, torch.ones(4, 2), torch.zeros(4, 2, dtype=torch.bool))
        learner.replay.add(rollout, rollout.rewards)
    (rows,) = learner.minibatches()
    terms = learner.learn(rows)
    expected = (terms.row_losses.double() + 1e-6).sqrt()
    assert torch.allclose(learner.replay.tree.weights[rows.positions], expected)


def test_importance_weights_sharpen_over_the_run():
    """β from 0.25 to 1: the weights w of the same draws become w^2.5 halfway, and w⁴ in the end."""
    settings = {"importance_exponent": 0.25, "importance_exponent_final": 1.0, "learning_starts": 1_000}
    weights = []
    for progress in (0.0, 0.5, 1.0):
        learner = make(RainbowConfig(**(SMALL | settings)))
        rollout = make_rollout(torch.zeros(9, 2, 2), torch.zeros(9, 2), torch.zeros(9, 2, dtype=torch.bool))
        learner.update(dataclasses.replace(rollout, progress=progress))
        ready = learner.replay.num_ready
        learner.replay.set_priorities(torch.arange(ready), torch.arange(1.0, ready + 1))
        weights.append(learner.draw().weights)
    assert weights[0].min() < 0.9
    assert torch.allclose(weights[1], weights[0] ** 2.5)
    assert torch.allclose(weights[2], weights[0] ** 4)


@pytest.mark.parametrize("config", [DQNConfig(), RainbowConfig()], ids=["dqn", "rainbow"])
def test_no_transition_leads_across_a_restart(config):
    learner = make(dataclasses.replace(config, **(SMALL | {"minibatch_size": 200})))
    for game in (0.0, 1.0):
        obs = torch.full((8, 2, 2), game)
        learner.update(make_rollout(obs, torch.zeros(8, 2), torch.zeros(8, 2, dtype=torch.bool)))
        learner.forget_unfinished()
    rows = learner.draw()
    learnt = torch.ones(200, dtype=torch.bool) if rows.weights is None else rows.weights > 0
    assert set(rows.obs[learnt, 0].tolist()) == {0.0, 1.0}  # steps of both games
    assert rows.next_obs[learnt].equal(rows.obs[learnt])


@pytest.mark.parametrize("eps", [1e-8, 1.5e-4])
def test_the_lean_adam_steps_as_torchs(eps):
    ours, theirs = (torch.nn.Parameter(torch.linspace(-1, 1, 50)) for _ in range(2))
    lean = FlatAdam([ours], lr=1e-2, betas=(0.9, 0.99), eps=eps)
    torchs = torch.optim.Adam([theirs], lr=1e-2, betas=(0.9, 0.99), eps=eps)
    for i in range(20):
        gradient = torch.randn(50, generator=torch.Generator().manual_seed(i))
        ours.grad, theirs.grad = gradient.clone(), gradient.clone()
        lean.step()
        torchs.step()
    assert torch.allclose(ours, theirs, rtol=1e-5, atol=1e-7)


def test_the_nature_rmsprop_by_hand():
    parameter = torch.nn.Parameter(torch.tensor([1.0]))
    optimizer = CenteredRMSprop([parameter], lr=0.1, alpha=0.9, eps=0.01)
    expected, mean, square = 1.0, 0.0, 0.0
    for gradient in (2.0, -1.0, 0.5):
        parameter.grad = torch.tensor([gradient])
        optimizer.step()
        mean, square = 0.9 * mean + 0.1 * gradient, 0.9 * square + 0.1 * gradient**2
        expected -= 0.1 * gradient / (square - mean**2 + 0.01) ** 0.5
    assert parameter.item() == pytest.approx(expected, rel=1e-5)


def test_a_small_epsilon_for_the_mean_is_the_nature_epsilon_for_the_sum():
    moved = []
    for rows, eps in ((1, 0.01 / 32**2), (32, 0.01)):
        parameter = torch.nn.Parameter(torch.zeros(50))
        optimizer = CenteredRMSprop([parameter], lr=0.1, alpha=0.95, eps=eps)
        for seed in range(20):
            parameter.grad = 1e-3 * rows * torch.randn(50, generator=torch.Generator().manual_seed(seed))
            optimizer.step()
        moved.append(parameter.detach())
    assert torch.allclose(*moved, rtol=1e-4, atol=1e-6)
    assert moved[0].abs().mean() > 0.01


def test_a_steady_gradient_does_not_become_nan():
    parameter = torch.nn.Parameter(torch.zeros(64))
    optimizer = CenteredRMSprop([parameter], lr=1e-4, alpha=0.95, eps=1e-5)
    noise = torch.Generator().manual_seed(0)
    for _ in range(600):  # the spread of these is below what float32 keeps of their squares
        parameter.grad = 10.0 * (1.0 + 1e-4 * torch.randn(64, generator=noise))
        optimizer.step()
    assert parameter.isfinite().all()


def test_a_loss_that_is_no_number_is_told():
    learner = make(DQNConfig(**SMALL))
    terms = learner.losses(dataclasses.replace(batch(), returns=torch.full((5,), float("nan"))))
    with pytest.raises(NonFiniteLoss, match="loss/td became nan"):
        learner.metrics([terms])


def test_cloning_by_margin_and_by_cross_entropy():
    margin = make(DQNConfig(cloning="margin", cloning_margin=0.3, **SMALL), OptimisticRegularizer(OPRConfig()))
    assert isinstance(margin.cloned, MarginPolicy)
    obs, actions = batch().obs, batch().actions
    q = margin.policy.q_values(obs)
    own = q.gather(1, actions[:, None])
    rivals = (q + 0.3).scatter(1, actions[:, None], own).amax(1)
    assert torch.allclose(margin.cloned.log_prob(obs, actions), own.squeeze(1) - rivals)
    assert torch.allclose(margin.cloned.value(obs), margin.policy.value(obs))
    entropy = make(DQNConfig(cloning="cross_entropy", **SMALL))
    assert entropy.cloned is entropy.policy


def test_values_behind_a_time_limit_count_for_a_good_episode_only_as_costs():
    """Two games cut off after one step with reward 1, whose states behind are worth 5 and −2: R = 1 and 1 − 0.9 · 2."""
    learner = make(DQNConfig(gamma=0.9, **SMALL), OptimisticRegularizer(OPRConfig(), gamma=0.9))
    ones = torch.ones(1, 2)
    learner.update(
        Rollout(
            obs=torch.zeros(1, 2, 2),
            actions=torch.zeros(1, 2, dtype=torch.int64),
            rewards=ones,
            logp=torch.zeros(1, 2),
            dones=ones.bool(),
            raw_rewards=ones,
            episode_ends=ones.bool(),
            values=torch.zeros(1, 2),
            next_values=torch.tensor([[5.0, -2.0]]),
            bootstraps=torch.tensor([[5.0, -2.0]]),
        )
    )
    returns = learner.anchor.memory.pools["returns"][:2]
    assert sorted(returns.tolist()) == pytest.approx([1.0 - 0.9 * 2.0, 1.0])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"opr": OPRConfig(augment_share=0.5)}, "augment_share must be 0"),
        ({"opr": OPRConfig(bc_advantage_unit="deviation")}, "bc_advantage_unit must be 'reward'"),
        ({"network": NetworkConfig(action_mask=True)}, "need an actor-critic"),
    ],
)
def test_what_value_based_learners_cannot_do_is_told_early(changes, words):
    with pytest.raises(ConfigError, match=words):
        RunConfig(env=EnvConfig(), algorithm=DQNConfig(), **changes)


@pytest.mark.parametrize(
    ("learner", "field", "value"),
    [
        (DQNConfig, "minibatch_size", 0), (DQNConfig, "epsilon_final", 1.5), (DQNConfig, "temperature", 0.0),
        (DQNConfig, "loss", "absolute"), (RainbowConfig, "n_step", 0), (RainbowConfig, "value_min", 99.0),
        (RainbowConfig, "priority_exponent", -1.0),
    ],
)  # fmt: skip
def test_a_config_names_the_field_that_is_wrong(learner, field, value):
    with pytest.raises(ValueError, match=f"(dqn|rainbow).{field}"):
        learner(**{field: value})
