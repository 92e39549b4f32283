"""The source of some functions and of everything they use, as Python that stands by itself with numpy.

The rules of an interface are compiled for training and scoring; an exported agent gets the very same functions, plain.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Iterator
from types import CodeType, ModuleType
from typing import Any

import numpy as np

from optimist.errors import ConfigError


def bundle(names: dict[str, Any]) -> str:
    """Definitions of these names (functions, compiled or not, and constants), those they use first.

    Records become dictionaries of numbers and lists.
    """
    parts: dict[str, str] = {}
    values: dict[str, Any] = {}
    for name, value in names.items():
        _add(name, value, parts, values)
    return "\n".join(parts.values())


def _add(name: str, value: Any, parts: dict[str, str], values: dict[str, Any]) -> None:
    if name in values:
        if values[name] is not value:
            raise ConfigError(f"two rules use different things called {name}; an exported agent needs one")
        return
    values[name] = value
    function = getattr(value, "py_func", value)
    if not inspect.isfunction(function):
        parts[name] = f"{name} = {_literal(name, value)}"
        return
    for used in _names_in(function.__code__):
        if used in function.__globals__ and not isinstance(function.__globals__[used], ModuleType):
            _add(used, function.__globals__[used], parts, values)
    parts[name] = f"\n\n{_source(function)}"


def _names_in(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names_in(constant)


def _source(function: Any) -> str:
    """The function without its decorators."""
    lines = textwrap.dedent(inspect.getsource(function)).splitlines()
    begin = next(number for number, line in enumerate(lines) if line.startswith("def "))
    return "\n".join(lines[begin:])


def _literal(name: str, value: Any) -> str:
    if isinstance(value, np.ndarray) and value.dtype.names:
        return repr({field: value[0][field].tolist() for field in value.dtype.names})
    if isinstance(value, np.ndarray):
        return f"np.array({value.tolist()})"
    if isinstance(value, np.generic):
        return repr(value.item())
    if isinstance(value, int | float | str | tuple):
        return repr(value)
    raise ConfigError(f"{name} is {type(value).__name__}, which an exported agent cannot hold")
