from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import pytest

from optimist.core.fields import check_fields
from optimist.errors import ConfigError, UnknownName


@dataclass
class Inner:
    a: int = 1


@dataclass
class Outer:
    whole: int = 1
    real: float = 0.5
    maybe: int | None = None
    often: float | None = None
    switch: bool = False
    word: str = ""
    choice: Literal["one", "other"] = "one"
    widths: tuple[int, ...] = (1, 2)
    betas: tuple[float, float] = (0.9, 0.999)
    inner: Inner = field(default_factory=Inner)
    anything: dict[str, Any] = field(default_factory=dict)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"real": 1, "often": 2, "maybe": 3},
        {"often": None, "maybe": None, "switch": True},
        {"widths": [], "betas": [0, 1]},
        {"anything": {"game": "Pong"}, "inner": Inner(a=2), "choice": "other"},
    ],
)
def test_what_is_declared_is_taken(fields):
    check_fields(Outer(**fields), "of.")


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"whole": 1.0}, r"of\.whole must be a whole number, got 1\.0"),
        ({"whole": True}, r"of\.whole must be a whole number, got True"),
        ({"whole": None}, r"of\.whole must be a whole number, got None"),
        ({"real": "0.5"}, r"of\.real must be a number, got '0\.5'"),
        ({"real": True}, r"of\.real must be a number, got True"),
        ({"maybe": 2.5}, r"of\.maybe must be a whole number or None, got 2\.5"),
        ({"often": "no"}, r"of\.often must be a number or None, got 'no'"),
        ({"switch": "yes"}, r"of\.switch must be True or False, got 'yes'"),
        ({"switch": 1}, r"of\.switch must be True or False, got 1"),
        ({"word": 3}, r"of\.word must be a word, got 3"),
        ({"widths": 64}, r"of\.widths must be a list of any length, each a whole number, got 64"),
        ({"widths": (64, "64")}, r"of\.widths must be a list of any length, each a whole number, got \(64, '64'\)"),
        ({"betas": (0.9,)}, r"of\.betas must be a list of 2, each a number, got \(0\.9,\)"),
        ({"inner": True}, r"of\.inner must be Inner\(…\), got True"),
    ],
)
def test_what_is_not_is_named(fields, told):
    with pytest.raises(ConfigError, match=f"^{told}$"):
        check_fields(Outer(**fields), "of.")


@pytest.mark.parametrize("value", ["on", None, 1, ["one"]])
def test_a_word_that_is_none_of_the_few_gets_a_suggestion(value):
    with pytest.raises(UnknownName, match=r"no of\.choice called"):
        check_fields(Outer(choice=value), "of.")
