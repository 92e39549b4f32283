import torch

from optimist.core.config import OPRConfig
from optimist.core.retention import FirstInFirstOut, RankedByReturn, Stored, make_retention
from tests.core.tables import make_episode


def stored(total_reward, group=0, born=0):
    return Stored(total_reward, group, born, False, torch.arange(1), torch.arange(1))


def filled(retention, *episodes):
    for episode in episodes:
        retention.add(episode)
    return retention


def test_the_config_names_the_retention():
    assert isinstance(make_retention(OPRConfig(retention="fifo")), FirstInFirstOut)
    assert isinstance(make_retention(OPRConfig(retention="ranked")), RankedByReturn)


def test_fifo_goes_by_age_alone_and_always_yields():
    a, b, c = stored(3.0), stored(1.0), stored(2.0)
    fifo = filled(FirstInFirstOut(), a, b, c)
    assert list(fifo.leaving()) == [a, b, c]
    assert fifo.yields(a, make_episode(1, -100.0))


def test_ranked_goes_by_return_then_by_age():
    a, b, c, d = stored(3.0), stored(1.0), stored(2.0), stored(1.0)
    assert list(filled(RankedByReturn(), a, b, c, d).leaving()) == [b, d, c, a]


def test_ranked_yields_to_an_equal_not_to_a_worse():
    ranked = RankedByReturn()
    assert ranked.yields(stored(2.0), make_episode(1, 2.0))
    assert not ranked.yields(stored(2.0), make_episode(1, 1.9))


def test_between_groups_the_largest_gives_up_its_lowest_whatever_the_returns():
    easy = [stored(100.0 + i, group=1) for i in range(3)]
    hard = [stored(-10.0), stored(-5.0)]
    ranked = filled(RankedByReturn(), *hard, *easy)
    assert list(ranked.leaving()) == [easy[0], hard[0], easy[1], hard[1], easy[2]]
    assert ranked.yields(easy[0], make_episode(1, -50.0, group=0))


def test_the_order_of_groups_does_not_depend_on_which_came_first():
    first, second = stored(1.0, group=5), stored(1.0, group=2)
    assert list(filled(RankedByReturn(), first, second).leaving()) == [second, first]
    assert list(filled(RankedByReturn(), second, first).leaving()) == [second, first]


def test_what_left_is_not_offered_again():
    a, b = stored(1.0), stored(2.0)
    for retention in (filled(FirstInFirstOut(), a, b), filled(RankedByReturn(), a, b)):
        retention.remove(a)
        assert list(retention.leaving()) == [b]
