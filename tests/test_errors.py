"""Names that nobody knows: the most alike is suggested, or none."""

import pytest

from optimist.errors import nearest, unknown_name

FLAGS = ["--config", "--algorithm.gamma", "--env.kwargs.size", "--size", "--seed", "--table", "--episodes"]


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("--sead", "--seed"),
        ("--gamma", "--algorithm.gamma"),  # the last part is enough
        ("--algorithm.gama", "--algorithm.gamma"),
        ("--sise", "--size"),  # of two that are equally alike the shorter
        ("--long", None),
        ("--games", None),
        ("--x", None),
    ],
)
def test_only_what_is_alike_is_near_and_dashes_make_nothing_alike(name, near):
    assert nearest(name, FLAGS) == near
    assert nearest(name, []) is None


def test_without_a_near_name_the_known_ones_or_what_the_caller_says():
    assert str(unknown_name("fruit", "appel", ["pear", "apple"])) == "no fruit 'appel'; did you mean 'apple'?"
    assert str(unknown_name("fruit", "kiwi", ["pear", "apple"])) == "no fruit 'kiwi'; known: apple, pear"
    assert str(unknown_name("fruit", "kiwi", ["pear", "apple"], "see the tree")) == "no fruit 'kiwi'; see the tree"
