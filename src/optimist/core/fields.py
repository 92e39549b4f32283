"""What a config's fields hold, checked against what they are declared to hold."""

from __future__ import annotations

from dataclasses import is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from optimist.errors import ConfigError, unknown_name

NAMES = {int: "a whole number", float: "a number", bool: "True or False", str: "a word", NoneType: "None"}


def check_fields(config: Any, path: str) -> None:
    """Raise, naming it, if a field holds something else than it is declared to hold."""
    for name, hint in _hints(type(config)).items():  # type: ignore[arg-type]
        value = getattr(config, name)
        kinds = get_args(hint) if isinstance(hint, UnionType) else (hint,)
        if any(_fits(value, kind) for kind in kinds):
            continue
        if get_origin(hint) is Literal:
            raise unknown_name(f"{path}{name} called", str(value), get_args(hint))
        raise ConfigError(f"{path}{name} must be {' or '.join(map(_named, kinds))}, got {value!r}")


@cache  # a sweep of a thousand runs asks ten thousand times
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _fits(value: object, kind: Any) -> bool:
    origin = get_origin(kind)
    if origin is Literal:
        return value in get_args(kind)
    if origin is tuple:
        each, *others = get_args(kind)
        as_many = others == [...] or (isinstance(value, tuple | list) and len(value) == 1 + len(others))
        return isinstance(value, tuple | list) and as_many and all(_fits(item, each) for item in value)
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if kind is int:
        return type(value) is int
    return isinstance(value, origin or kind)


def _named(kind: Any) -> str:
    if get_origin(kind) is tuple:
        each, *others = get_args(kind)
        return f"a list of {'any length' if others == [...] else 1 + len(others)}, each {_named(each)}"
    if is_dataclass(kind):
        return f"{kind.__name__}(…)"  # type: ignore[union-attr]
    return NAMES.get(kind, str(kind))
