"""ACPER: the loss of segments against a plain loop, the average policy, priorities, resume."""

import copy
import dataclasses

import gymnasium as gym
import pytest
import torch

from optimist.algorithms.acper import ACPER
from optimist.config import ACPERConfig, NetworkConfig, RunConfig
from optimist.core.config import OPRConfig
from optimist.core.regularizer import OptimisticRegularizer
from optimist.errors import ConfigError
from optimist.networks.actor_critic import QActorCritic
from optimist.replay.segments import Segments
from tests.algorithms.tasks import one_step_task, random_rollout

CONFIG = ACPERConfig(rollout_steps=16, learning_rate=1e-2, replay_start=0, replay_segments=4, max_grad_norm=None)
STATES, ACTIONS = gym.spaces.Discrete(6), gym.spaces.Discrete(3)


def network(seed: int = 0) -> QActorCritic:
    torch.manual_seed(seed)
    return ACPER.make_network(STATES, ACTIONS, NetworkConfig(hidden=(8,), initialization="default"), CONFIG)


def learner(policy=None, **changes) -> ACPER:
    return ACPER(policy or network(), dataclasses.replace(CONFIG, **changes))


def segments(**changes) -> Segments:
    """Two segments of three steps; the second ends after its first step."""
    generator = torch.Generator().manual_seed(5)
    columns = {
        "obs": torch.tensor([[0, 3], [1, 4], [2, 5]]),
        "actions": torch.tensor([[0, 1], [1, 2], [2, 0]]),
        "rewards": torch.tensor([[1.0, 2.0], [3.0, -1.0], [9.0, 9.0]]),
        "behavior": torch.rand(3, 2, 3, generator=generator).softmax(-1),
        "dones": torch.tensor([[False, True], [False, False], [False, True]]),
        "bootstraps": torch.zeros(3, 2),
        "valid": torch.ones(3, 2, dtype=torch.bool),
        "chosen": torch.ones(3, 2, dtype=torch.bool),
        "weights": torch.tensor([1.0, 0.5]),
        "places": torch.tensor([0, 1]),
    }
    return Segments(**(columns | changes))


def stored(**changes) -> ACPER:
    """A learner whose replay holds a rollout, so that priorities can be set."""
    acper = learner(**changes)
    rollout = random_rollout(0)
    acper.replay.add(acper.segments_of(rollout, rollout.rewards))
    return acper


def test_v_is_the_mean_of_q_and_its_loss_trains_the_critic_alone():
    policy = network()
    logp, q = policy.all_actions(torch.arange(6))
    expected = (logp.exp() * q).sum(-1)
    assert policy.value(torch.arange(6)).detach().equal(expected.detach())
    taken, entropy, values = policy.evaluate(torch.arange(6), torch.tensor([0, 1, 2] * 2))
    assert values.detach().equal(expected.detach())
    assert taken[4].item() == logp[4, 1].item()
    assert entropy[0].item() == pytest.approx(-(logp[0].exp() * logp[0]).sum().item())
    values.sum().backward()
    assert not any(weight.grad is not None and weight.grad.any() for weight in policy.actor.parameters())
    assert any(weight.grad.any() for weight in policy.critic.parameters())


def test_the_losses_equal_a_plain_loop_over_the_rows():
    acper = stored(gamma=0.9, importance_cap=0.9, value_coef=0.25, entropy_coef=0.1, trust_region=1e9)
    drawn = segments()
    terms = acper.losses_on(drawn)
    logp, q = (column.detach() for column in acper.policy.all_actions(torch.arange(6)))
    policy_loss = value_loss = 0.0
    for b in range(2):
        state, action = drawn.obs[:, b], drawn.actions[:, b]
        pi, mu = logp[state].exp(), drawn.behavior[:, b]
        value = [float((pi[t] * q[state[t]]).sum()) for t in range(3)]
        taken = [float(q[state[t], action[t]]) for t in range(2)]  # of the third state only the value is used
        last = float(drawn.rewards[1, b]) + 0.9 * value[2]
        ratio = [float(pi[t, action[t]] / mu[t, action[t]]) for t in range(2)]
        after = 0.0 if drawn.dones[0, b] else value[1] + min(1.0, ratio[1]) * (last - taken[1])
        q_ret = [float(drawn.rewards[0, b]) + 0.9 * after, last]
        for t in range(2):
            g = torch.zeros(3)
            for a in range(3):
                rho = float(pi[t, a] / mu[t, a])
                g[a] += max(0.0, 1.0 - 0.9 / rho) * (float(q[state[t], a]) - value[t])
                g[a] -= 0.1 * (float(logp[state[t], a]) + 1.0)  # of the entropy
            g[action[t]] += min(0.9, ratio[t]) * (q_ret[t] - value[t]) / float(pi[t, action[t]])
            policy_loss -= float(drawn.weights[b] * (g * pi[t]).sum()) / 4
            value_loss += 0.25 * float(drawn.weights[b]) * (taken[t] - q_ret[t]) ** 2 / 4
    assert terms.policy.item() == pytest.approx(policy_loss, rel=1e-4)
    assert terms.value.item() == pytest.approx(value_loss, rel=1e-4)
    assert terms.entropy.item() == 0.0


def test_fresh_steps_all_count_and_have_ratio_one():
    acper, rollout = learner(), random_rollout(1)
    terms = acper.losses_on(acper.segments_of(rollout, rollout.rewards), rollout.next_values[-1])
    assert terms.kl.item() == pytest.approx(0.0, abs=1e-6)
    assert acper._shares["acper/truncated"] == 0.0


def test_a_narrow_trust_region_restrains_the_gradient():
    shares = {}
    for bound in (1e-6, 1e9):
        acper = stored(trust_region=bound)
        acper.losses_on(segments())
        shares[bound] = float(acper._shares["acper/restrained"])
    assert shares[1e9] == 0.0
    assert shares[1e-6] > 0.0


def test_the_average_policy_follows_slowly():
    acper, rollout = learner(average_decay=0.75), random_rollout(0)
    before = acper.flat.detach().clone()
    acper.learn(acper.segments_of(rollout, rollout.rewards), rollout.next_values[-1])
    torch.testing.assert_close(acper.average_flat, (0.75 * before + 0.25 * acper.flat).detach())


def test_reset_steps_count_neither_in_the_loss_nor_in_the_priority():
    dones = torch.tensor([[False, True], [False, True], [False, True]])
    valid = torch.tensor([[True, True], [True, False], [True, True]])
    found = []
    for reward in (-1.0, 50.0):
        acper = stored(priority_exponent=1.0)
        rewards = torch.tensor([[1.0, 2.0], [3.0, reward], [9.0, 9.0]])
        terms = acper.losses_on(segments(dones=dones, valid=valid, chosen=valid, rewards=rewards))
        found.append((terms.total.item(), acper.replay.rows.powers[:2].tolist()))
    assert found[0] == found[1]


def test_a_forced_action_has_no_policy_loss_and_keeps_its_value_loss():
    terms = {name: stored().losses_on(segments(chosen=torch.full((3, 2), name))) for name in (True, False)}
    assert terms[False].policy.item() == 0.0
    assert terms[True].policy.item() != 0.0
    assert terms[False].value.item() == terms[True].value.item() > 0.0


def test_a_bootstrap_value_counts_as_a_reward_one_step_later():
    rollout = random_rollout(0)
    bootstrap = 5.0 * rollout.dones
    found = []
    for rewards, bootstraps in ((rollout.rewards, bootstrap), (rollout.rewards + 0.5 * bootstrap, None)):
        acper = learner(gamma=0.5)
        fresh = acper.segments_of(dataclasses.replace(rollout, bootstraps=bootstraps), rewards)
        terms = acper.losses_on(fresh, rollout.next_values[-1])
        found.append((terms.policy.item(), terms.value.item()))
    assert found[0] == pytest.approx(found[1])


def test_an_action_with_almost_zero_recorded_probability_gives_finite_losses():
    acper = stored()
    behavior = torch.zeros(3, 2, 3)
    behavior[..., 2] = 1.0
    terms = acper.losses_on(segments(behavior=behavior, actions=torch.zeros(3, 2, dtype=torch.int64)))
    assert all(torch.isfinite(getattr(terms, name)) for name in ("policy", "value", "kl"))
    assert acper._shares["acper/truncated"] == 1.0


def test_replay_starts_after_replay_start_steps():
    acper = learner(replay_start=100)
    assert "loss/replay" not in acper.update(random_rollout(0))  # 64 steps
    assert acper.update(random_rollout(1))["acper/replay_steps"] == 128
    assert "loss/replay" in acper.update(random_rollout(2))


def test_opr_adds_its_loss_to_every_step():
    anchor = OptimisticRegularizer(OPRConfig(bc_batch_size=8, bc_weights="uniform"))
    acper = ACPER(network(), CONFIG, anchor)
    for seed in range(3):
        metrics = acper.update(random_rollout(seed))
    assert metrics["opr/memory_episodes"] > 0
    assert acper.losses_on(acper.replay.draw(4, acper.generator)).anchor.item() > 0.0


def test_a_restored_learner_continues_like_the_saved_one():
    one, other = learner(), learner(network(seed=5))
    for seed in range(3):
        one.update(random_rollout(seed))
    other.load_state_dict(copy.deepcopy(one.state_dict()))
    for seed in range(3, 6):
        assert one.update(random_rollout(seed)) == other.update(random_rollout(seed))


def test_the_better_action_is_learned():
    for seed in range(2):
        policy, collector = one_step_task("discrete", 4, seed, q_critic=True)
        acper = ACPER(policy, ACPERConfig(rollout_steps=4, learning_rate=5e-3, replay_start=64, replay_updates=2))
        returns = []
        for _ in range(100):
            acper.update(collector.collect())
            returns += [episode.raw_return for episode in collector.finished]
        assert sum(returns[-200:]) / 200 > 0.75, seed


def test_what_acper_does_not_support_is_one_line():
    with pytest.raises(ConfigError, match="acper needs Discrete actions, got Box"):
        ACPER.make_network(STATES, gym.spaces.Box(-1.0, 1.0, (2,)), NetworkConfig(), CONFIG)
    with pytest.raises(ConfigError, match="augment_share must be 0 for acper"):
        RunConfig(algorithm=CONFIG, opr=OPRConfig(augment_share=0.5))


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"rollout_steps": 1}, r"algorithm\.rollout_steps"),
        ({"importance_cap": 0.0}, r"algorithm\.importance_cap"),
        ({"trust_region": 0.0}, r"algorithm\.trust_region"),
        ({"trace_cap": 1.0}, r"algorithm\.trace_cap"),
        ({"replay_segments": 0}, r"algorithm\.replay_segments"),
        ({"replay_updates": -1}, r"algorithm\.replay_updates"),
        ({"rmsprop_alpha": 1.0}, r"algorithm\.rmsprop_alpha"),
        ({"gamma": 1.5}, r"algorithm\.gamma"),
    ],
)
def test_a_value_out_of_range_is_an_error_with_its_name(changes, named):
    with pytest.raises(ConfigError, match=named):
        ACPERConfig(**changes)
