"""Source code of functions and classes with everything they use, as Python that needs NumPy only.

The expert interface is compiled for training; an exported agent has the same functions as plain Python.
"""

from __future__ import annotations

import inspect
import sys
import textwrap
from collections.abc import Iterator
from types import CodeType, ModuleType
from typing import Any

import numpy as np

from cage2.errors import ConfigError


def source_of(*exported: Any) -> str:
    """Definitions of these functions (compiled or not) and classes, after those of all they use.

    Structured arrays become dictionaries of numbers and lists.
    """
    definitions: dict[str, str] = {}
    values: dict[str, Any] = {}
    for value in exported:
        _add(value.__name__, value, definitions, values)
    return "\n".join(definitions.values())


def _add(name: str, value: Any, definitions: dict[str, str], values: dict[str, Any]) -> None:
    if name in values:
        if values[name] is not value:
            raise ConfigError(f"two functions use different objects named {name}; rename one of them")
        return
    values[name] = value
    value = getattr(value, "py_func", value)
    if isinstance(value, ModuleType):
        definitions[name] = f"import {value.__name__} as {name}"
    elif not (inspect.isfunction(value) or inspect.isclass(value)):
        definitions[name] = f"{name} = {_literal(name, value)}"
    elif value.__module__.partition(".")[0] in sys.stdlib_module_names:
        definitions[name] = f"from {value.__module__} import {name}"
    else:
        scope = vars(sys.modules[value.__module__])
        for used in _names_in(value):
            if used in scope:
                _add(used, scope[used], definitions, values)
        lines = textwrap.dedent(inspect.getsource(value)).splitlines()
        first = next(i for i, line in enumerate(lines) if line.startswith(("def ", "class ")))  # without decorators
        definitions[name] = "\n\n" + "\n".join(lines[first:])


def _names_in(value: Any) -> Iterator[str]:
    """The names in the code of a function, or in the methods and bases of a class."""
    if inspect.isclass(value):
        yield from (base.__name__ for base in value.__bases__)
        for method in filter(inspect.isfunction, vars(value).values()):
            yield from _names_in(method)
        return
    code: CodeType = getattr(value, "__code__", value)
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names_in(constant)


def _literal(name: str, value: Any) -> str:
    if isinstance(value, np.ndarray) and value.dtype.names:
        return repr({field: value[0][field].tolist() for field in value.dtype.names})
    if isinstance(value, np.ndarray):
        return f"np.array({value.tolist()})"
    if isinstance(value, np.generic):
        return repr(value.item())
    if isinstance(value, int | float | str | tuple):
        return repr(value)
    raise ConfigError(f"{name} is {type(value).__name__}; expected a function, number, string, tuple or array")
