"""PPO: losses by hand, replayed rows, early stopping, schedules, cloning phases, and errors."""

import copy
import dataclasses
import math

import pytest
import torch

from optimist.algorithms.ppo import PPO
from optimist.config import PPOConfig
from optimist.core.config import OPRConfig
from optimist.core.regularizer import OptimisticRegularizer
from optimist.core.steps import Batch
from optimist.errors import NonFiniteLoss
from tests.algorithms.tasks import TableActorCritic, one_step_task, random_rollout
from tests.core.tables import make_steps

PLAIN = PPOConfig(normalize_advantages="off", value_coef=0.5, entropy_coef=0.1, clip_eps=0.2)
LN2 = math.log(2.0)


def even_policy():
    """π = 1/2 for each of two actions, V = 1, in both of two states."""
    policy = TableActorCritic(num_states=2, num_actions=2)
    with torch.no_grad():
        policy.logits.zero_()
        policy.values.fill_(1.0)
    return policy


def hand_batch(**changes):
    # ratios 2 and 0.5; advantages 1 and −1; returns 3 and 0
    columns = {
        "obs": torch.tensor([0, 1]),
        "actions": torch.tensor([0, 1]),
        "logp_old": torch.tensor([-2 * LN2, 0.0]),
        "advantages": torch.tensor([1.0, -1.0]),
        "returns": torch.tensor([3.0, 0.0]),
        "values_old": torch.tensor([0.0, 1.0]),
    }
    return Batch(**(columns | changes))


def test_every_term_of_the_loss_by_hand():
    terms = PPO(even_policy(), PLAIN).losses(hand_batch())
    assert terms.policy.item() == pytest.approx(-(1.2 - 0.8) / 2)  # ρ clipped to 1.2 and to 0.8
    assert terms.value.item() == pytest.approx(0.5 * (4.0 + 1.0) / 2)
    assert terms.entropy.item() == pytest.approx(-0.1 * LN2)
    assert terms.anchor.item() == 0.0
    assert terms.kl.item() == pytest.approx(((2 - 1 - LN2) + (0.5 - 1 + LN2)) / 2)
    assert terms.total.item() == pytest.approx(-0.2 + 1.25 - 0.1 * LN2)


def test_the_total_loss_adds_the_weighted_cloning_loss_by_hand():
    # M holds one step: action 1 in state 0, where π = 1/4: L_BC = ln 4
    policy = even_policy()
    with torch.no_grad():
        policy.logits[0] = torch.tensor([math.log(3.0), 0.0])
    opr = OptimisticRegularizer(OPRConfig(bc_coef=0.3, bc_weights="uniform", sampling="uniform", percentile=0.0))
    opr.observe(make_steps([[1.0]], [[1]], actions=[[1]]))
    (good,) = opr.sample([4], policy)
    plain, terms = PPO(policy, PLAIN).losses(hand_batch()), PPO(policy, PLAIN, opr).losses(hand_batch(), good)
    assert terms.anchor.item() == pytest.approx(0.3 * math.log(4.0))
    assert terms.total.item() == pytest.approx(plain.total.item() + 0.3 * math.log(4.0))
    logp = policy.log_prob(good.obs, good.actions)
    assert opr.loss_on(good, logp, policy.value(good.obs)).item() == pytest.approx(terms.anchor.item())


def test_value_clipping_by_hand():
    # V = 1, V_old = 0 and 1, clip 0.5: V_clip = 0.5 and 1 → max(4, 6.25) and 1
    terms = PPO(even_policy(), dataclasses.replace(PLAIN, value_clip=0.5)).losses(hand_batch())
    assert terms.value.item() == pytest.approx(0.5 * (6.25 + 1.0) / 2)


def test_advantages_are_standardised_over_the_minibatch_or_the_batch_or_not_at_all():
    policy = even_policy()
    batch = hand_batch(logp_old=torch.full((2,), -LN2), advantages=torch.tensor([5.0, 1.0]))  # ρ = 1: −mean(A)
    uneven = dataclasses.replace(batch, statistics_of=torch.tensor([0.0, 2.0]))  # mean 1, deviation √2
    for word, given, expected in (
        ("off", batch, -3.0),
        ("minibatch", batch, 0.0),
        ("batch", uneven, -(4.0 + 0.0) / math.sqrt(2.0) / 2),
    ):
        config = dataclasses.replace(PLAIN, normalize_advantages=word)
        assert PPO(policy, config).losses(given).policy.item() == pytest.approx(expected, abs=1e-6), word


def test_replayed_rows_count_in_the_policy_loss_alone():
    # a third, replayed row: state 0, ρ = 1, A = 10, weight 0.25, no value loss
    replayed = {
        "obs": torch.tensor([0, 1, 0]),
        "actions": torch.tensor([0, 1, 1]),
        "logp_old": torch.tensor([-2 * LN2, 0.0, -LN2]),
        "advantages": torch.tensor([1.0, -1.0, 10.0]),
        "returns": torch.tensor([3.0, 0.0, 99.0]),
        "values_old": torch.tensor([0.0, 1.0, 0.0]),
        "weights": torch.tensor([1.0, 1.0, 0.25]),
        "value_weights": torch.tensor([1.0, 1.0, 0.0]),
        "num_fresh": 2,
    }
    policy = even_policy()
    with torch.no_grad():
        policy.logits[0] = torch.tensor([0.0, 0.0])
    alone, joined = PPO(policy, PLAIN).losses(hand_batch()), PPO(policy, PLAIN).losses(Batch(**replayed))
    assert joined.policy.item() == pytest.approx(-(1.2 - 0.8 + 2.5) / 3)
    assert joined.value.item() == pytest.approx(alone.value.item())  # the third row has no effect
    assert joined.entropy.equal(alone.entropy)
    assert joined.kl.equal(alone.kl)


def test_replayed_rows_do_not_count_in_the_advantage_statistics():
    config = dataclasses.replace(PLAIN, normalize_advantages="minibatch", clip_eps=100.0)
    columns = {
        name: torch.cat([getattr(hand_batch(), name)] * 2) for name in ("obs", "actions", "returns", "values_old")
    }
    fresh, logp = torch.tensor([1.0, 3.0]), torch.full((4,), -LN2)
    batch = Batch(**columns, logp_old=logp, advantages=torch.cat([fresh, torch.tensor([1000.0, 2.0])]), num_fresh=2)
    standard = (batch.advantages - 2.0) / math.sqrt(2.0)
    assert PPO(even_policy(), config).losses(batch).policy.item() == pytest.approx(-standard.mean().item(), rel=1e-5)


def test_logged_entropy_and_kl_are_of_fresh_rows():
    policy = TableActorCritic()
    opr = OptimisticRegularizer(OPRConfig(augment_share=1.0, bc_coef=0.0, percentile=0.0))
    learner = PPO(policy, dataclasses.replace(PLAIN, epochs=1, minibatch_size=999), opr)
    plain = PPO(TableActorCritic(), dataclasses.replace(PLAIN, epochs=1, minibatch_size=999))
    first, same = learner.update(random_rollout(0)), plain.update(random_rollout(0))
    assert opr.memory.episodes
    assert first["policy/entropy"] == same["policy/entropy"]
    assert first["policy/kl"] == same["policy/kl"]
    assert first["loss/policy"] != same["loss/policy"]


class Counting(PPO):
    steps = 0

    def step(self, loss):
        self.steps += 1
        super().step(loss)


def count_steps(**changes):
    learner = Counting(TableActorCritic(), PPOConfig(**({"epochs": 4, "minibatch_size": 16} | changes)))
    learner.update(random_rollout(1))
    return learner.steps


def test_an_update_takes_epochs_times_minibatches_steps():
    assert count_steps() == 16  # 64 rows, minibatches of 16, 4 passes
    assert count_steps(minibatch_size=60, epochs=3) == 6
    assert count_steps(minibatch_size=1000, epochs=3) == 3


def test_target_kl_stops_the_epochs_after_the_first_step():
    assert count_steps(target_kl=1e-9, learning_rate=0.1) == 1
    assert 1 < count_steps(target_kl=0.2, learning_rate=0.05) < 16
    assert count_steps(target_kl=1e9, learning_rate=0.1) == 16


@pytest.mark.parametrize(("factor", "steps"), [(0.99, 1), (1.01, 2)])
def test_target_kl_stops_before_the_first_minibatch_beyond_1_5_times_the_target(factor, steps):
    """The KL of the second minibatch after the first step, by hand; just below and just above it as 1.5 · target."""
    config = PPOConfig(epochs=1, minibatch_size=32, learning_rate=0.05)
    learner, kls = Counting(TableActorCritic(), config), []

    def compare(minibatch, good):
        logp = learner.policy.log_prob(minibatch.obs, minibatch.actions).detach()
        log_ratio = logp - minibatch.logp_old
        kls.append((log_ratio.exp() - 1 - log_ratio).mean().item())
        return learn(minibatch, good)

    learn, learner.learn = learner.learn, compare
    learner.update(random_rollout(1))
    assert len(kls) == 2
    other = Counting(TableActorCritic(), dataclasses.replace(config, target_kl=factor * kls[1] / 1.5))
    other.update(random_rollout(1))
    assert other.steps == steps


def test_target_kl_counts_fresh_rows_only():
    replaying = OptimisticRegularizer(
        OPRConfig(augment_share=4.0, augment_rows="recorded", bc_coef=0.0, percentile=0.0)
    )
    learner = PPO(TableActorCritic(), PPOConfig(), replaying)
    batch = random_rollout(0).flatten(torch.zeros(16, 4), torch.zeros(16, 4))
    learner.anchor.observe(random_rollout(0))
    joined = learner.anchor.join(batch, learner.anchor.replay(batch, learner.policy))
    assert len(joined) == 5 * len(batch)
    assert learner.kl(joined) == learner.kl(batch) > 0.0


def test_the_learning_rate_is_linear_or_constant():
    for schedule, expected in (("linear", [0.4, 0.3, 0.1]), ("constant", [0.4, 0.4, 0.4])):
        learner = PPO(TableActorCritic(), PPOConfig(learning_rate=0.4, learning_rate_schedule=schedule))
        found = []
        for progress in (0.0, 0.25, 0.75):
            learner.update(random_rollout(0, progress=progress))
            found.append(learner.optimizer.param_groups[0]["lr"])
        assert found == pytest.approx(expected)


def test_the_entropy_coefficient_is_linear_or_constant():
    for final, expected in ((0.0, [0.4, 0.3, 0.1]), (0.8, [0.4, 0.5, 0.7]), (None, [0.4, 0.4, 0.4])):
        learner = PPO(TableActorCritic(), PPOConfig(entropy_coef=0.4, entropy_coef_final=final))
        found = []
        for progress in (0.0, 0.25, 0.75):
            metrics = learner.update(random_rollout(0, progress=progress))
            found.append(-metrics["loss/entropy"] / metrics["policy/entropy"])
        assert found == pytest.approx(expected, rel=1e-4)


def test_the_gradient_norm_is_clipped_or_not():
    def gradient_norm(limit):
        policy = TableActorCritic()
        learner = PPO(policy, PPOConfig(max_grad_norm=limit))
        learner.step(1000.0 * policy.values.sum())
        return torch.cat([p.grad.flatten() for p in policy.parameters() if p.grad is not None]).norm().item()

    assert gradient_norm(0.5) == pytest.approx(0.5, rel=1e-4)
    assert gradient_norm(None) == pytest.approx(1000.0 * math.sqrt(6), rel=1e-4)


def test_a_cloning_phase_changes_the_policy_and_not_the_critic():
    options = {"bc_coef": 0.0, "percentile": 0.0, "bc_weights": "uniform", "sampling": "uniform"}
    opr = OptimisticRegularizer(OPRConfig(**options, bc_phase_interval=1, bc_phase_epochs=2))
    policy, steps = TableActorCritic(), []
    learner = PPO(policy, PPOConfig(learning_rate=1e-2, max_grad_norm=None), opr)
    phase = opr.after_update

    def compare_with_adam(host, step):
        # torch's own Adam on the actor's parameter alone, with the learner's moments; the critic has no gradient
        actor, critic = policy.logits.detach().clone().requires_grad_(), policy.values.detach().clone()
        state, split = learner.optimizer.state[learner.flat], policy.logits.numel()
        adam = torch.optim.Adam([actor], lr=1e-2, eps=learner.config.adam_eps)
        moments = {name: state[name][:split].view_as(actor).clone() for name in ("exp_avg", "exp_avg_sq")}
        adam.state[actor] = {"step": state["step"].clone(), **moments}
        critics_moment = state["exp_avg"][split:].clone()

        def both(loss):
            step(loss)
            actor.grad = policy.logits.grad.clone()
            adam.step()
            steps.append(1)

        phase(host, both)
        torch.testing.assert_close(policy.logits.detach(), actor.detach())
        assert policy.values.equal(critic)
        assert state["exp_avg"][split:].equal(critics_moment)

    opr.after_update = compare_with_adam
    for seed in range(3):
        learner.update(random_rollout(seed))
    assert len(steps) >= 6


def test_adam_has_the_configs_constants():
    learner = PPO(TableActorCritic(), PPOConfig(learning_rate=0.002, adam_betas=(0.8, 0.99), adam_eps=1e-3))
    group = learner.optimizer.param_groups[0]
    assert (group["lr"], group["betas"], group["eps"]) == (0.002, (0.8, 0.99), 1e-3)


def test_a_nan_loss_is_an_error_with_its_name():
    rollout = random_rollout(0)
    rollout.rewards[3, 1] = math.nan
    with pytest.raises(NonFiniteLoss, match="loss/policy became nan"):
        PPO(TableActorCritic(), PPOConfig()).update(rollout)


def test_an_infinite_loss_is_an_error():
    rollout = random_rollout(0)
    rollout.rewards[3, 1] = math.inf
    with pytest.raises(NonFiniteLoss, match="became"):
        PPO(TableActorCritic(), PPOConfig(normalize_advantages="off")).update(rollout)


def test_a_rollout_of_reset_steps_alone_changes_nothing():
    policy = TableActorCritic()
    before = policy.logits.detach().clone()
    learner = PPO(policy, PPOConfig())
    assert learner.update(random_rollout(0, 1, 2, valid=torch.zeros(1, 2, dtype=torch.bool))) == {}
    assert policy.logits.equal(before)


def test_a_restored_learner_continues_like_the_saved_one():
    config = PPOConfig(minibatch_size=16, learning_rate=1e-2)
    learner = PPO(TableActorCritic(), config, OptimisticRegularizer(OPRConfig()), seed=5)
    for seed in range(3):
        learner.update(random_rollout(seed))
    other = PPO(TableActorCritic(seed=9), config, OptimisticRegularizer(OPRConfig()), seed=6)
    other.load_state_dict(copy.deepcopy(learner.state_dict()))
    for seed in range(3, 6):
        assert other.update(random_rollout(seed)) == learner.update(random_rollout(seed))
    assert other.policy.logits.equal(learner.policy.logits)


@pytest.mark.parametrize("space", ["discrete", "multi-discrete", "gaussian"])
@pytest.mark.parametrize("anchored", [False, True])
def test_every_kind_of_action_is_learned(space, anchored):
    policy, collector = one_step_task(space, num_steps=16)
    opr = (
        OptimisticRegularizer(OPRConfig(shaping_scale=0.5, reference="cloned", augment_share=0.25, bc_batch_size=64))
        if anchored
        else None
    )
    learner = PPO(policy, PPOConfig(learning_rate=1e-2, minibatch_size=64, entropy_coef=0.0), opr)
    means = []
    for update in range(20):
        rollout = collector.collect(progress=update / 20)
        learner.update(rollout)
        means.append(rollout.raw_rewards.mean().item())
    assert means[0] < 0.6
    assert means[-1] > 0.8
