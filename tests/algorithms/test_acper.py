"""ACPER: the loss of replayed segments against a plain loop, priorities, and its relation to A2C."""

import copy
import dataclasses

import pytest
import torch

from optimist.algorithms.a2c import A2C
from optimist.algorithms.acper import ACPER
from optimist.config import A2CConfig, ACPERConfig
from optimist.core.config import OPRConfig
from optimist.core.regularizer import OptimisticRegularizer
from optimist.errors import ConfigError
from optimist.replay.segments import Segments
from tests.algorithms.tasks import TableActorCritic, one_step_task, random_rollout

CONFIG = ACPERConfig(rollout_steps=16, learning_rate=1e-2, replay_start=0, replay_segments=4, max_grad_norm=None)


def learner(policy=None, **changes) -> ACPER:
    return ACPER(policy or TableActorCritic(), dataclasses.replace(CONFIG, **changes))


def segments(**changes) -> Segments:
    """Two segments of three steps; the second ends after its first step."""
    columns = {
        "obs": torch.tensor([[0, 3], [1, 4], [2, 5]]),
        "actions": torch.tensor([[0, 1], [1, 2], [2, 0]]),
        "rewards": torch.tensor([[1.0, 2.0], [3.0, -1.0], [9.0, 9.0]]),
        "logp": torch.tensor([[-1.0, -0.2], [-2.0, -4.0], [-1.0, -1.0]]),
        "dones": torch.tensor([[False, True], [False, False], [False, True]]),
        "bootstraps": torch.zeros(3, 2),
        "valid": torch.ones(3, 2, dtype=torch.bool),
        "weights": torch.tensor([1.0, 0.5]),
        "places": torch.tensor([0, 1]),
    }
    return Segments(**(columns | changes))


def test_the_replay_loss_equals_a_plain_loop_over_the_rows():
    acper = learner(gamma=0.9, importance_cap=1.5, trace_cap=1.0, value_coef=0.25, entropy_coef=0.1)
    acper.replay.add(random_rollout(0), torch.zeros(16, 4))
    drawn, policy = segments(), acper.policy
    terms = acper.replay_losses(drawn)
    logits, values = policy.logits.detach().log_softmax(-1), policy.values.detach()
    policy_loss = value_loss = entropy = 0.0
    for b in range(2):
        rows = range(2)  # of the third state only the value is used
        ratio = [(logits[drawn.obs[t, b], drawn.actions[t, b]] - drawn.logp[t, b]).exp() for t in rows]
        value = [values[drawn.obs[t, b]] for t in range(3)]
        after = [0.0 if drawn.dones[t, b] else value[t + 1] for t in rows]
        delta = [drawn.rewards[t, b] + 0.9 * after[t] - value[t] for t in rows]
        rho = [min(ratio[t], 1.0) for t in rows]
        last = value[1] + rho[1] * delta[1]
        carried = 0.0 if drawn.dones[0, b] else 0.9 * rho[0] * rho[1] * delta[1]
        first = value[0] + rho[0] * delta[0] + carried
        advantages = [drawn.rewards[0, b] + 0.9 * (0.0 if drawn.dones[0, b] else last) - value[0], delta[1]]
        for t, target in zip(rows, (first, last), strict=True):
            probability = logits[drawn.obs[t, b]]
            w = drawn.weights[b]
            policy_loss -= w * min(ratio[t], 1.5) * advantages[t] * probability[drawn.actions[t, b]] / 4
            value_loss += 0.25 * w * (value[t] - target) ** 2 / 4
            entropy -= (probability.exp() * probability).sum() / 4
    assert terms.policy.item() == pytest.approx(float(policy_loss), rel=1e-5)
    assert terms.value.item() == pytest.approx(float(value_loss), rel=1e-5)
    assert terms.entropy.item() == pytest.approx(-0.1 * float(entropy), rel=1e-5)


def test_reset_steps_do_not_count_in_the_loss():
    acper = learner()
    acper.replay.add(random_rollout(0), torch.zeros(16, 4))
    dones = torch.tensor([[False, True], [False, True], [False, True]])
    valid = torch.tensor([[True, True], [True, False], [True, True]])
    losses = []
    for reward in (-1.0, 50.0):
        rewards = torch.tensor([[1.0, 2.0], [3.0, reward], [9.0, 9.0]])
        losses.append(acper.replay_losses(segments(dones=dones, valid=valid, rewards=rewards)).total.item())
    assert losses[0] == losses[1]


def test_a_segments_priority_is_its_mean_absolute_advantage():
    acper = learner(priority_exponent=1.0, gamma=0.0)
    acper.replay.add(random_rollout(0), torch.zeros(16, 4))
    acper.replay_losses(segments())
    values = acper.policy.values.detach()
    expected = [(abs(1 - values[0]) + abs(3 - values[1])) / 2, (abs(2 - values[3]) + abs(-1 - values[4])) / 2]
    assert acper.replay.rows.powers[:2].tolist() == pytest.approx([float(p) for p in expected])


def test_reset_steps_do_not_count_in_the_priority():
    acper = learner(priority_exponent=1.0, gamma=0.0)
    acper.replay.add(random_rollout(0), torch.zeros(16, 4))
    acper.replay_losses(segments(valid=torch.tensor([[True, True], [True, False], [True, True]])))
    assert acper.replay.rows.powers[1].item() == pytest.approx(abs(2 - acper.policy.values[3].item()))


def test_a_bootstrap_value_counts_as_a_reward_one_step_later():
    rollout = random_rollout(0)
    bootstrap = 5.0 * rollout.dones
    found = []
    for rewards, bootstraps in ((rollout.rewards, bootstrap), (rollout.rewards + 0.5 * bootstrap, None)):
        acper = learner(gamma=0.5)
        acper.replay.add(dataclasses.replace(rollout, bootstraps=bootstraps), rewards)
        terms = acper.replay_losses(acper.replay.draw(8, acper.generator))
        found.append((terms.policy.item(), terms.value.item()))
    assert found[0] == pytest.approx(found[1])


def test_an_action_with_almost_zero_recorded_probability_gives_finite_losses():
    acper = learner()
    acper.replay.add(random_rollout(0), torch.zeros(16, 4))
    terms = acper.replay_losses(segments(logp=torch.full((3, 2), -500.0)))
    assert all(torch.isfinite(getattr(terms, name)) for name in ("policy", "value", "kl"))
    assert acper._truncated == 1.0


def test_without_replay_it_is_a2c_bit_for_bit():
    shared = {"rollout_steps": 16, "learning_rate": 1e-2, "max_grad_norm": 0.5}
    a2c = A2C(TableActorCritic(), A2CConfig(**shared))
    acper = ACPER(TableActorCritic(), ACPERConfig(**shared, replay_updates=0))
    replaying = ACPER(TableActorCritic(), ACPERConfig(**shared, replay_start=0))
    for seed in range(5):
        metrics = [each.update(random_rollout(seed)) for each in (a2c, acper, replaying)]
        assert metrics[0] == metrics[1]
        assert "loss/replay" in metrics[2]
    assert acper.flat.equal(a2c.flat)
    assert not replaying.flat.equal(a2c.flat)


def test_replay_starts_after_replay_start_steps():
    acper = learner(replay_start=100)
    assert "loss/replay" not in acper.update(random_rollout(0))  # 64 steps
    assert acper.update(random_rollout(1))["acper/replay_steps"] == 128
    assert "loss/replay" in acper.update(random_rollout(2))


def test_opr_adds_its_loss_to_replayed_segments():
    anchor = OptimisticRegularizer(OPRConfig(bc_batch_size=8, bc_weights="uniform"))
    acper = ACPER(TableActorCritic(), CONFIG, anchor)
    for seed in range(3):
        metrics = acper.update(random_rollout(seed))
    assert metrics["opr/memory_episodes"] > 0
    terms = acper.replay_losses(acper.replay.draw(4, acper.generator))
    assert terms.anchor.item() > 0.0


def test_a_restored_learner_continues_like_the_saved_one():
    one, other = learner(), learner(TableActorCritic(seed=5))
    for seed in range(3):
        one.update(random_rollout(seed))
    other.load_state_dict(copy.deepcopy(one.state_dict()))
    for seed in range(3, 6):
        assert one.update(random_rollout(seed)) == other.update(random_rollout(seed))
    assert one.flat.equal(other.flat)


@pytest.mark.parametrize("space", ["discrete", "multi-discrete", "gaussian"])
def test_every_kind_of_action_is_learned(space):
    for seed in range(2):
        policy, collector = one_step_task(space, 4, seed)
        acper = ACPER(policy, ACPERConfig(rollout_steps=4, learning_rate=5e-3, replay_start=64, replay_updates=2))
        returns = []
        for _ in range(100):
            acper.update(collector.collect())
            returns += [episode.raw_return for episode in collector.finished]
        assert sum(returns[-200:]) / 200 > 0.75, (space, seed)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"rollout_steps": 1}, r"algorithm\.rollout_steps"),
        ({"importance_cap": 0.0}, r"algorithm\.importance_cap"),
        ({"replay_segments": 0}, r"algorithm\.replay_segments"),
        ({"replay_updates": -1}, r"algorithm\.replay_updates"),
        ({"rmsprop_alpha": 1.0}, r"algorithm\.rmsprop_alpha"),
        ({"gamma": 1.5}, r"algorithm\.gamma"),
    ],
)
def test_a_value_out_of_range_is_an_error_with_its_name(changes, named):
    with pytest.raises(ConfigError, match=named):
        ACPERConfig(**changes)
