"""DQN and Rainbow: losses by hand, schedules, the target network, and errors."""

import dataclasses

import gymnasium as gym
import numpy as np
import pytest
import torch

from optimist.algorithms.dqn import DQN, MarginPolicy
from optimist.algorithms.rainbow import Rainbow
from optimist.config import EnvConfig, NetworkConfig, RunConfig
from optimist.config.value_based import DQNConfig, RainbowConfig
from optimist.core.anchor import Anchor
from optimist.core.config import OPRConfig
from optimist.core.memory import GoodRows
from optimist.core.regularizer import OptimisticRegularizer
from optimist.core.steps import Rollout
from optimist.errors import ConfigError, NonFiniteLoss
from optimist.losses.q_learning import project
from optimist.networks.q_network import make_q_network
from optimist.replay.transitions import Transitions
from tests.replay.rollouts import make_rollout

OFF = {"double": False, "dueling": False, "noisy": False, "atoms": 1, "n_step": 1, "priority_exponent": 0.0}
SMALL = {"rollout_steps": 4, "minibatch_size": 8, "learning_starts": 0, "replay_capacity": 500}


def make(config, anchor=None, **network):
    torch.manual_seed(0)
    space = gym.spaces.Box(-9.0, 9.0, (2,), np.float32)
    policy = make_q_network(space, gym.spaces.Discrete(3), NetworkConfig(**({"hidden": (8,)} | network)), config)
    learner_class = Rainbow if isinstance(config, RainbowConfig) else DQN
    return learner_class(policy, config, anchor, seed=1)


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


def good_rows(size=4) -> GoodRows:
    """Rows of M in random states."""
    zeros, ones = torch.zeros(size, dtype=torch.int64), torch.ones(size)
    obs = torch.randn(size, 2, generator=torch.Generator().manual_seed(3))
    return GoodRows(obs=obs, actions=zeros, returns=ones, rows=torch.arange(size))


def perturb_target(learner):
    """Make the target network differ from the online network, as in the middle of a run."""
    with torch.no_grad():
        learner.target_flat.add_(torch.randn(len(learner.target_flat), generator=torch.Generator().manual_seed(7)))


@pytest.mark.parametrize("double", [False, True])
@pytest.mark.parametrize("weights", [None, torch.tensor([1.0, 0.5, 0.0, 0.2, 1.0])], ids=["plain", "weighted"])
def test_the_loss_of_dqn_row_by_row(double, weights):
    learner, rows = make(DQNConfig(double=double, **SMALL)), batch(weights)
    perturb_target(learner)
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
    perturb_target(learner)
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
def test_the_explicit_gradient_equals_autograds(loss, activation, hidden, weights):
    learner = make(DQNConfig(loss=loss, double=True, **SMALL), hidden=hidden, activation=activation)
    perturb_target(learner)
    terms = learner.losses(batch(weights))
    learner.flat.grad.zero_()
    terms.total.backward()
    expected = learner.flat.grad.clone()
    learner.flat.grad.fill_(99.0)  # replaced, not added to
    written = learner.differentiate(batch(weights), learner.gradient)
    assert torch.allclose(learner.flat.grad, expected, rtol=1e-4, atol=1e-7)
    assert expected.abs().max() > 1e-3
    assert written.total.item() == pytest.approx(terms.total.item(), rel=1e-6)
    assert written.mean_q.item() == pytest.approx(terms.mean_q.item(), rel=1e-6)


def test_the_gradient_of_the_anchor_is_added():
    class SumOfLogits(Anchor):
        def loss_on(self, good, logp, values):
            return 0.5 * (logp.sum() + 3.0)

    learner, good = make(DQNConfig(cloning="cross_entropy", **SMALL)), good_rows()
    learner.differentiate(batch(), learner.gradient, good)
    alone = learner.flat.grad.clone()
    learner.anchor = SumOfLogits()
    terms = learner.differentiate(batch(), learner.gradient, good)
    both = learner.flat.grad.clone()
    learner.flat.grad.zero_()
    (0.5 * learner.policy.log_prob(good.obs, good.actions).sum()).backward()
    assert learner.flat.grad.abs().max() > 1e-3
    assert torch.allclose(both, alone + learner.flat.grad, atol=1e-6)
    assert terms.total.item() == pytest.approx(terms.td.item() + terms.anchor.item())


def test_only_plain_networks_have_an_explicit_gradient():
    assert make(RainbowConfig(**(SMALL | OFF))).gradient is not None
    for part in ({"dueling": True}, {"noisy": True}, {"atoms": 11}):
        assert make(RainbowConfig(**(SMALL | OFF | part))).gradient is None


def test_targets_have_no_gradient_and_the_target_network_is_unchanged():
    learner = make(DQNConfig(double=True, **SMALL))
    before = learner.target_flat.clone()
    learner.learn(batch(), None)
    assert learner.target_flat.equal(before)
    assert not learner.flat.equal(before)
    assert not learner.targets(batch()).requires_grad


def test_the_target_network_is_copied_by_steps_or_by_gradient_steps():
    learner = make(DQNConfig(target_interval=10, **SMALL))
    learner.learn(batch(), None)
    learner.count_steps(8)
    assert not learner.target_flat.equal(learner.flat)
    learner.count_steps(8)  # 16: past 10
    assert learner.target_flat.equal(learner.flat)
    other = make(DQNConfig(target_interval=2, target_unit="gradient_steps", **SMALL))
    for equal in (False, True):
        other.learn(batch(), None)
        other.count_gradient_step()
        assert other.target_flat.equal(other.flat) == equal


def test_epsilon_falls_linearly_to_its_final_value():
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
    terms = learner.learn(rows, None)
    expected = (terms.row_losses.double() + 1e-6).sqrt()
    assert torch.allclose(learner.replay.tree.weights[rows.positions], expected)


def test_the_exponent_of_importance_weights_grows_over_the_run():
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
def test_no_transition_spans_a_restart(config):
    learner = make(dataclasses.replace(config, **(SMALL | {"minibatch_size": 200})))
    for state in (0.0, 1.0):
        obs = torch.full((8, 2, 2), state)
        learner.update(make_rollout(obs, torch.zeros(8, 2), torch.zeros(8, 2, dtype=torch.bool)))
        learner.forget_unfinished()
    rows = learner.draw()
    drawn = torch.ones(200, dtype=torch.bool) if rows.weights is None else rows.weights > 0
    assert set(rows.obs[drawn, 0].tolist()) == {0.0, 1.0}  # steps before and after the restart
    assert rows.next_obs[drawn].equal(rows.obs[drawn])


def test_a_nan_loss_is_an_error_with_its_name():
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


def test_positive_bootstrap_values_do_not_count_in_the_returns_of_good_episodes():
    """Two episodes truncated after one step of reward 1, with bootstrap values 5 and −2: R = 1 and 1 − 0.9 · 2."""
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
        ({"network": NetworkConfig(action_mask=True)}, "need an actor-critic"),
    ],
)
def test_settings_that_value_based_learners_do_not_support_are_refused(changes, words):
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
def test_a_value_out_of_range_is_an_error_with_its_name(learner, field, value):
    with pytest.raises(ValueError, match=rf"algorithm\.{field}"):
        learner(**{field: value})
