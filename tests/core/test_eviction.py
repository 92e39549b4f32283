"""The order in which a full memory evicts its episodes."""

import torch

from optimist.core.config import OPRConfig
from optimist.core.eviction import FirstInFirstOut, LowestReturnFirst, StoredEpisode
from optimist.core.regularizer import OptimisticRegularizer
from tests.core.tables import make_episode


def stored(total_reward, group=0, admitted_at=0):
    return StoredEpisode(total_reward, group, admitted_at, False, 1, torch.arange(1), torch.arange(1))


def filled(policy, *episodes):
    for episode in episodes:
        policy.add(episode)
    return policy


def test_the_setting_selects_the_policy():
    for retention, kind in (("fifo", FirstInFirstOut), ("ranked", LowestReturnFirst)):
        assert type(OptimisticRegularizer(OPRConfig(retention=retention)).memory.eviction) is kind


def test_fifo_evicts_by_age_alone_and_for_any_candidate():
    a, b, c = stored(3.0), stored(1.0), stored(2.0)
    fifo = filled(FirstInFirstOut(), a, b, c)
    assert list(fifo.candidates()) == [a, b, c]
    assert fifo.may_evict(a, make_episode(1, -100.0))


def test_ranked_evicts_by_return_and_then_by_age():
    a, b, c, d = stored(3.0), stored(1.0), stored(2.0), stored(1.0)
    assert list(filled(LowestReturnFirst(), a, b, c, d).candidates()) == [b, d, c, a]


def test_ranked_evicts_for_an_equal_return_and_not_for_a_lower_one():
    ranked = LowestReturnFirst()
    assert ranked.may_evict(stored(2.0), make_episode(1, 2.0))
    assert not ranked.may_evict(stored(2.0), make_episode(1, 1.9))


def test_the_largest_group_gives_up_its_lowest_return_first():
    easy = [stored(100.0 + i, group=1) for i in range(3)]
    hard = [stored(-10.0), stored(-5.0)]
    ranked = filled(LowestReturnFirst(), *hard, *easy)
    assert list(ranked.candidates()) == [easy[0], hard[0], easy[1], hard[1], easy[2]]
    assert ranked.may_evict(easy[0], make_episode(1, -50.0, group=0))


def test_groups_of_equal_size_are_ordered_by_number():
    first, second = stored(1.0, group=5), stored(1.0, group=2)
    assert list(filled(LowestReturnFirst(), first, second).candidates()) == [second, first]
    assert list(filled(LowestReturnFirst(), second, first).candidates()) == [second, first]


def test_an_evicted_episode_is_no_longer_a_candidate():
    a, b = stored(1.0), stored(2.0)
    for policy in (filled(FirstInFirstOut(), a, b), filled(LowestReturnFirst(), a, b)):
        policy.remove(a)
        assert list(policy.candidates()) == [b]
