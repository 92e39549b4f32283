"""Settings classes: what their fields accept, and how each wrong value is named."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, field, fields, replace
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

from optimist.core import settings as module
from optimist.core.settings import AtLeastOne, Betas, OrNone, Positive, Share, Widths, parse_json, settings
from optimist.errors import ConfigError, UnknownName


@settings("inner")
class Inner:
    name: Literal["inner"] = "inner"
    a: AtLeastOne = 1

    def __post_init__(self) -> None:
        if self.a == 13:
            raise ConfigError("inner.a must not be 13")


@settings("inner")
class Other:
    name: Literal["other"] = "other"
    b: int = 1


@settings("of")
class Outer:
    whole: int = 1
    real: float = 0.5
    positive: Positive = 1.0
    share: Share = 0.5
    maybe: OrNone[int] = None
    often: OrNone[Positive] = None
    switch: bool = False
    word: str = ""
    choice: Literal["one", "other"] = "one"
    lag: Literal[0, 1] = 0
    widths: Widths = (1, 2)
    betas: Betas = (0.9, 0.999)
    inner: Annotated[Inner | Other, Field(discriminator="name")] = field(default_factory=Inner)
    anything: dict[str, Any] = field(default_factory=dict)


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"real": 1, "often": 2, "maybe": 3},
        {"often": None, "maybe": None, "switch": True},
        {"widths": [], "betas": [0, 0.5]},
        {"anything": {"game": "Pong"}, "inner": Inner(a=2), "choice": "other", "lag": 1},
    ],
)
def test_values_of_the_declared_types_are_accepted(values):
    made = Outer(**values)
    assert replace(Outer(), **values) == made == pickle.loads(pickle.dumps(made))
    assert {type(made.real), type(made.widths), type(made.betas)} == {float, tuple}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"whole": 1.0}, r"of\.whole must be a whole number, got 1\.0"),
        ({"whole": True}, r"of\.whole must be a whole number, got True"),
        ({"whole": None}, r"of\.whole must be a whole number, got None"),
        ({"real": "0.5"}, r"of\.real must be a number, got '0\.5'"),
        ({"real": True}, r"of\.real must be a number, got True"),
        ({"positive": 0}, r"of\.positive must be above 0, got 0"),
        ({"positive": float("nan")}, r"of\.positive must be above 0, got nan"),
        ({"share": 140}, r"of\.share must be between 0 and 1, got 140"),
        ({"maybe": 2.5}, r"of\.maybe must be a whole number or none, got 2\.5"),
        ({"often": "no"}, r"of\.often must be a number or none, got 'no'"),
        ({"often": -1}, r"of\.often must be above 0 or none, got -1"),
        ({"switch": "yes"}, r"of\.switch must be true or false, got 'yes'"),
        ({"switch": 1}, r"of\.switch must be true or false, got 1"),
        ({"word": 3}, r"of\.word must be text, got 3"),
        ({"lag": 2}, r"of\.lag must be 0 or 1, got 2"),
        ({"widths": 64}, r"of\.widths must be a list, got 64"),
        ({"widths": (64, "64")}, r"of\.widths must be a whole number, got '64'"),
        ({"widths": (64, 0)}, r"of\.widths must be at least 1, got 0"),
        ({"betas": (0.9,)}, r"of\.betas must be a list of 2, got \(0\.9,\)"),
        ({"betas": [0.9, 0.9, 0.9]}, r"of\.betas must be a list of 2, got \[0\.9, 0\.9, 0\.9\]"),
        ({"betas": (0.9, 1.0)}, r"of\.betas must be at least 0 and below 1, got 1\.0"),
        ({"inner": True}, r"of\.inner must be a table of settings, got True"),
        ({"anything": 1}, r"of\.anything must be a table, got 1"),
        ({"choice": "\ud800"}, r"of\.choice: Input should be a valid string, .*unicode.*"),
    ],
)
def test_wrong_values_are_named_with_what_was_expected(values, message):
    with pytest.raises(ConfigError, match=f"^{message}$"):
        Outer(**values)


@pytest.mark.parametrize("value", ["on", None, 1, ["one"]])
def test_a_word_that_is_no_choice_gets_a_suggestion_or_the_choices(value):
    with pytest.raises(UnknownName, match=r"no of\.choice called .*; (did you mean|known: one, other)"):
        Outer(choice=value)


def test_an_unknown_keyword_gets_a_suggestion():
    with pytest.raises(UnknownName, match=r"^no setting 'of\.wole'; did you mean 'of\.whole'\?$"):
        Outer(wole=3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"inner": {"name": "inner", "a": 0}}', "inner.a must be at least 1, got 0"),
        ('{"inner": {"name": "inner", "a": 13}}', "inner.a must not be 13"),
        ('{"inner": {"name": "inner", "aa": 0}}', "no setting 'inner.aa'; did you mean 'inner.a'?"),
        ('{"inner": {"name": "iner"}}', "no inner called 'iner'; did you mean 'inner'?"),
        ('{"inner": []}', "inner must be a table, got []"),
        ('{"wole": 1}', "no setting 'wole'; did you mean 'whole'?"),
    ],
)
def test_nested_settings_are_named_with_their_path(text, message):
    with pytest.raises(ConfigError) as caught:
        parse_json(Outer, text)
    assert str(caught.value) == message


def test_nested_settings_are_built_from_tables_and_tuples_from_lists():
    text = '{"inner": {"name": "other", "b": 5}, "widths": [3], "often": "none", "positive": Infinity}'
    assert parse_json(Outer, text) == Outer(inner=Other(b=5), widths=(3,), often=None, positive=float("inf"))


def test_a_removed_setting_or_value_is_answered_with_what_to_do_instead(monkeypatch):
    monkeypatch.setitem(module.REMOVED, "of.gone", "set of.whole instead")
    monkeypatch.setitem(module.REMOVED, "of.choice = both", "it scored worse (docs/paper.md)")
    with pytest.raises(UnknownName, match=r"^of\.gone no longer exists: set of\.whole instead$"):
        Outer(gone=3)
    with pytest.raises(UnknownName, match=r"^of\.choice = both no longer exists: it scored worse \(docs/paper\.md\)$"):
        Outer(choice="both")


def test_settings_are_frozen_and_compare_by_value():
    with pytest.raises(FrozenInstanceError):
        Outer().whole = 2
    assert Outer(whole=2) == Outer(whole=2) != Outer()
    assert [known.name for known in fields(Inner)] == ["name", "a"]
