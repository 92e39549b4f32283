"""Write docs/settings.md and docs/settings_learners.md: every setting with its default, its range and its meaning.

python tools/settings_page.py
"""

from __future__ import annotations

import ast
import inspect
import itertools
import textwrap
from collections.abc import Iterator
from dataclasses import MISSING, Field, fields, is_dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from annotated_types import Interval

from optimist.config import EnvConfig, OPRConfig, RunConfig
from optimist.config.actor_critic import A2CConfig, ACPERConfig, CardiffPPOConfig, PPOConfig
from optimist.config.run import NetworkConfig
from optimist.config.sil import SILConfig
from optimist.config.value_based import DQNConfig, RainbowConfig
from optimist.core.settings import field_types

GROUPS: list[tuple[str, str, type]] = [
    ("opr", "OPR", OPRConfig),
    ("", "Run", RunConfig),
    ("env", "Environment", EnvConfig),
    ("network", "Network", NetworkConfig),
    ("sil", "Self-imitation", SILConfig),
]
"""Prefix of the settings, title, class."""
LEARNERS: list[tuple[str, str, type]] = [
    ("algorithm", "PPO", PPOConfig),
    ("algorithm", "A2C", A2CConfig),
    ("algorithm", "ACPER", ACPERConfig),
    ("algorithm", "Cardiff's PPO", CardiffPPOConfig),
    ("algorithm", "DQN", DQNConfig),
    ("algorithm", "Rainbow", RainbowConfig),
]
PARENTS: dict[type, tuple[str, type]] = {ACPERConfig: ("A2C", A2CConfig), RainbowConfig: ("DQN", DQNConfig)}
"""Class → the group above that has its other settings."""
INTRODUCTION = """# Every setting

A setting has one name everywhere: `opr.bc_coef` in a config or sweep file, `--opr.bc-coef` on the command line.
The defaults below are those of the classes; a preset may change them: `optimist train PRESET --help all` shows its own.
The settings of learners are on [their own page](settings_learners.md).

```toml
# mine.toml: optimist train deepsea/opr --config mine.toml
total_steps = 50_000
opr.bc_coef = 0.3
algorithm.learning_rate = 5e-4
```

This page is written by `python tools/settings_page.py`."""
LEARNERS_INTRODUCTION = """# Settings of learners

The other settings, and how to set them, are on [the page of every setting](settings.md). This page is written by
`python tools/settings_page.py`."""


def pages() -> dict[str, str]:
    """The pages by their names in `docs`."""
    parts = {"settings.md": (INTRODUCTION, GROUPS), "settings_learners.md": (LEARNERS_INTRODUCTION, LEARNERS)}
    return {
        name: "\n".join([introduction, *(line for group in groups for line in _section(*group))]) + "\n"
        for name, (introduction, groups) in parts.items()
    }


def _section(prefix: str, title: str, cls: type) -> Iterator[str]:
    yield f"\n## {title}\n"
    learner = next((entry.default for entry in fields(cls) if entry.name == "name"), None)
    if learner:
        yield f'With `algorithm.name = "{learner}"`{_rest(cls)}.\n'
    yield "| setting | default | values | meaning |"
    yield "|---|---|---|---|"
    meanings = _meanings(cls)
    for entry in _own_fields(cls):
        hint = field_types(cls)[entry.name]
        default = _default(entry)
        if is_dataclass(default) or entry.name in ("name", "preset"):
            continue
        cells = [f"`{'.'.join(filter(None, (prefix, entry.name)))}`", f"`{_toml(default)}`", _values(hint)]
        yield f"| {' | '.join([*cells, meanings[entry.name]])} |"


def _rest(cls: type) -> str:
    """Where the settings are that a class shares with another."""
    if cls not in PARENTS:
        return ""
    title = PARENTS[cls][0]
    return f"; the other settings are those of [{title}](#{title.lower()})"


def _own_fields(cls: type) -> list[Field[Any]]:
    """The fields that differ from the other learner's, or all of them."""
    if cls not in PARENTS:
        return list(fields(cls))
    other = {entry.name: (_default(entry), _meanings(PARENTS[cls][1])[entry.name]) for entry in fields(PARENTS[cls][1])}
    meanings = _meanings(cls)
    return [entry for entry in fields(cls) if other.get(entry.name) != (_default(entry), meanings[entry.name])]


def _default(entry: Field[Any]) -> Any:
    return entry.default_factory() if entry.default_factory is not MISSING else entry.default


def _meanings(cls: type) -> dict[str, str]:
    """The text below each field of a class and of its bases, on one line."""
    found: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if is_dataclass(base):
            body = ast.parse(textwrap.dedent(inspect.getsource(base))).body[0].body  # type: ignore[attr-defined]
            for field, text in itertools.pairwise(body):
                if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr):
                    found[field.target.id] = " ".join(ast.literal_eval(text.value).split())  # type: ignore[union-attr]
    return {name: text.replace("|", "\\|") for name, text in found.items()}


def _values(hint: Any) -> str:
    """What a setting may be, in words."""
    members = list(_members(hint))
    if len(members) > 1 + (NoneType in members):
        words = [_values(member) for member in members if member is not NoneType]
        return ", or ".join([*words, "`none`"] if NoneType in members else words)
    parts = list(_parts(hint))
    choices = [choice for part in parts if get_origin(part) is Literal for choice in get_args(part)]
    ranges = [_range(part) for part in parts if isinstance(part, Interval)]
    kinds = {dict: "table", bool: "true, false", int: "whole number", float: "number", str: "text"}
    named = next((text for kind, text in kinds.items() if kind in parts or kind in map(get_origin, parts)), "")
    if choices:
        text = ", ".join(f"`{_toml(choice)}`" for choice in choices)
    elif any(get_origin(part) is tuple for part in parts):
        text = "list of numbers" + "".join(f" {each}" for each in ranges[:1])
    else:
        text = " ".join([named, *ranges[:1]])
    return f"{text}, or `none`" if NoneType in parts else text


def _members(hint: Any) -> Iterator[Any]:
    """The members of a union, or the type itself."""
    inner = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    if get_origin(inner) in (Union, UnionType):
        for member in get_args(inner):
            yield from _members(member)
    else:
        yield hint


def _parts(hint: Any) -> Iterator[Any]:
    yield hint
    for part in (*get_args(hint), *getattr(hint, "__metadata__", ())):
        yield from _parts(part)


def _range(allowed: Interval) -> str:
    bounds = {"≥": allowed.ge, ">": allowed.gt, "≤": allowed.le, "<": allowed.lt}
    return ", ".join(f"{sign} {bound:,}" for sign, bound in bounds.items() if bound is not None)


def _toml(value: Any) -> str:
    """A value as in a config file."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, int):
        return f"{value:_}" if abs(value) >= 10_000 else str(value)
    if value == "":
        return '""'
    return str(value)


if __name__ == "__main__":
    for name, text in pages().items():
        (Path(__file__).parents[1] / "docs" / name).write_text(text, "utf-8")
