import dataclasses
import math

import pytest
import torch

from optimist.core.advantages import gae
from optimist.core.augmentation import GoodJoiner, replayed_batch, shaped_replay
from optimist.core.config import OPRConfig
from optimist.core.memory import GoodEpisodeMemory
from optimist.core.reference import Recorded
from tests.core.tables import TablePolicy, make_episode
from tests.core.test_batch import make_batch

GAMMA, LAMBDA = 0.9, 0.8


def config(**changes):
    return OPRConfig(shaping_scale=0.0, augment_share=0.5, **changes)


def good_rows(logp=None, **columns):
    """One stored episode of three steps in states 0, 1, 2, its actions 0, 1, 2."""
    memory = GoodEpisodeMemory(100, 10, gamma=GAMMA)
    columns = {
        "frames": torch.arange(3),
        "actions": torch.arange(3),
        "rewards": torch.tensor([1.0, 0.0, 2.0]),
    } | columns
    memory.add(make_episode(3, logp=torch.full((3,), -1.0) if logp is None else logp, **columns))
    return memory.sample_episodes(3, torch.Generator().manual_seed(0))


def replayed(policy, good, cfg):
    return replayed_batch(policy, good, Recorded(), cfg, GAMMA, LAMBDA)


def test_decoupled_weights_are_the_truncated_ratio_of_now_to_then():
    policy = TablePolicy()
    now = policy.log_prob(torch.arange(3), torch.arange(3)).detach()
    good = good_rows(logp=now - torch.tensor([math.log(0.25), 0.0, math.log(4.0)]))  # ratios 0.25, 1 and 4
    batch = replayed(policy, good, config(augment_weight_cap=2.0))
    torch.testing.assert_close(batch.weights, torch.tensor([0.25, 1.0, 2.0]))
    assert batch.logp_old.equal(now)


def test_recorded_clips_around_the_recorded_probability_with_full_weight():
    good = good_rows(logp=torch.tensor([-0.1, -2.0, -5.0]))
    batch = replayed(TablePolicy(), good, config(augment_ratio="recorded"))
    assert batch.logp_old.tolist() == pytest.approx([-0.1, -2.0, -5.0])
    assert batch.weights.tolist() == [1.0, 1.0, 1.0]


def test_advantages_are_gae_on_the_stored_episode_under_the_current_value():
    policy, good = TablePolicy(), good_rows(bootstraps=torch.tensor([0.0, 0.0, 7.0]))
    batch = replayed(policy, good, config())
    values = policy.values.detach()[:3]
    following = torch.tensor([values[1], values[2], 7.0])
    expected, returns = gae(good.rewards, values, following, good.dones, GAMMA, LAMBDA)
    torch.testing.assert_close(batch.advantages, expected)
    torch.testing.assert_close(batch.returns, returns)
    assert batch.values_old.equal(values)


def test_several_episodes_do_not_leak_into_each_other():
    memory = GoodEpisodeMemory(100, 10, gamma=GAMMA)
    memory.add(make_episode(1, frames=torch.tensor([0]), actions=torch.tensor([0]), rewards=torch.tensor([1.0])))
    good = memory.sample_episodes(4, torch.Generator().manual_seed(0))
    policy = TablePolicy()
    batch = replayed(policy, good, config())
    torch.testing.assert_close(batch.advantages, (1.0 - policy.values.detach()[0]).expand(4))


def test_the_value_loss_of_replayed_rows_is_off_or_only_upward():
    policy, good = TablePolicy(), good_rows()
    with torch.no_grad():
        policy.values[:3] = good.returns + torch.tensor([-1.0, 0.0, 1.0])  # below, at and above what followed
    assert replayed(policy, good, config()).value_weights.tolist() == [0.0, 0.0, 0.0]
    upward = replayed(policy, good, config(augment_value="upward"))
    assert upward.value_weights.tolist() == [1.0, 0.0, 0.0]
    assert upward.returns.equal(good.returns)


def test_nothing_of_a_replayed_row_carries_a_gradient():
    batch = replayed(TablePolicy(), good_rows(), config(augment_value="upward"))
    columns = (batch.logp_old, batch.advantages, batch.returns, batch.values_old, batch.weights, batch.value_weights)
    assert not any(column.requires_grad for column in columns)


def test_replayed_rewards_are_shaped_even_under_the_recorded_reading():
    # π_good = 2/3, π_θ = 1/3: Δ = ln 2 → 2 tanh(ln 2 / 2) = 2/3, bounded by δ = 0.5; α = 0.5: r (1 + 0.25)
    policy, good = TablePolicy(num_states=3, num_actions=3), good_rows(logp=torch.full((3,), math.log(2 / 3)))
    with torch.no_grad():
        policy.logits.zero_()  # π_θ = 1/3 everywhere
    shaped = OPRConfig(shaping="multiplicative", shaping_scale=0.5, shaping_bound=0.5)
    logp = policy.log_prob(good.obs, good.actions).detach()
    torch.testing.assert_close(shaped_replay(good, logp, Recorded(), shaped), torch.tensor([1.25, 0.0, 2.5]))
    wide = dataclasses.replace(shaped, shaping_bound=10.0, shaping="additive")
    torch.testing.assert_close(
        shaped_replay(good, logp, Recorded(), wide), good.rewards + 0.5 * 2 / 3, rtol=1e-5, atol=1e-6
    )


def test_a_reference_defined_everywhere_replaces_the_recorded_probability():
    class Fixed:
        def log_prob(self, obs, actions):
            return torch.full((len(obs),), 0.0)

    good = good_rows()
    shaped = OPRConfig(shaping="additive", shaping_scale=1.0, shaping_bound=10.0)
    logp = torch.full((3,), -math.log(3.0))  # Δ = ln 3 → 1
    torch.testing.assert_close(shaped_replay(good, logp, Fixed(), shaped), good.rewards + 1.0)


def test_no_shaping_leaves_the_stored_rewards():
    good = good_rows()
    assert shaped_replay(good, torch.zeros(3), Recorded(), config()) is good.rewards


def joined(share, minibatch, *, bc_coef=0.1, bc_batch_size=4):
    memory = GoodEpisodeMemory(100, 10)
    memory.add(make_episode(3, frames=torch.arange(3.0)[:, None], actions=torch.arange(3) + 100))
    cfg = OPRConfig(augment_share=share, bc_coef=bc_coef, bc_batch_size=bc_batch_size)
    rows = dataclasses.replace(
        make_batch(5), weights=torch.full((5,), 0.25), value_weights=torch.zeros(5), actions=torch.arange(5) + 50
    )
    return GoodJoiner(memory, cfg, torch.Generator().manual_seed(0), rows if share else None).join(minibatch)


def test_replayed_rows_stand_behind_the_fresh_ones_which_stay_as_they_were():
    fresh = make_batch(6, statistics_of=torch.arange(9.0))
    batch = joined(0.5, fresh)
    assert (len(batch), batch.num_fresh) == (9, 6)
    for name in ("obs", "actions", "logp_old", "advantages", "returns", "values_old"):
        assert batch.of_fresh(getattr(batch, name)).equal(getattr(fresh, name))
    assert (batch.actions[6:] >= 50).all()
    assert batch.weights.tolist() == [1.0] * 6 + [0.25] * 3
    assert batch.value_weights.tolist() == [1.0] * 6 + [0.0] * 3
    assert batch.statistics_of is fresh.statistics_of


def test_weights_a_host_gave_its_rows_are_kept():
    own = torch.arange(4.0)
    batch = joined(0.5, make_batch(4, weights=own, value_weights=own * 2))
    assert batch.weights.tolist() == [0.0, 1.0, 2.0, 3.0, 0.25, 0.25]
    assert batch.value_weights.tolist() == [0.0, 2.0, 4.0, 6.0, 0.0, 0.0]


@pytest.mark.parametrize(("share", "size", "rows"), [(0.25, 8, 2), (0.25, 2, 0), (1.0, 8, 8), (2.0, 3, 6), (0.0, 8, 0)])
def test_the_share_is_of_the_fresh_rows(share, size, rows):
    assert len(joined(share, make_batch(size))) == size + rows


def test_rows_to_clone_come_along_only_where_there_is_a_cloning_loss():
    assert len(joined(0.5, make_batch(4)).good) == 4
    assert set(joined(0.0, make_batch(4)).good.actions.tolist()) <= {100, 101, 102}
    assert joined(0.5, make_batch(4), bc_coef=0.0).good is None
