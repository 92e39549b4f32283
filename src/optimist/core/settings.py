"""Settings classes: frozen dataclasses, validated by pydantic, whose errors are a ConfigError of one line.

Ranges are part of a field's type (`AtLeastOne`, `Share`); checks across fields are in a class's `__post_init__`.
"""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import field, is_dataclass
from types import NoneType
from typing import Annotated, Any, Literal, TypeVar, dataclass_transform, get_args, get_origin, get_type_hints

from annotated_types import Interval
from pydantic import BeforeValidator, ConfigDict, Strict, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from optimist.errors import ConfigError, UnknownName, nearest, unknown_name

T = TypeVar("T")


def whole_number(value: Any) -> Any:
    """1e5 as the int 100,000; any other value as it is."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Whole = Annotated[int, BeforeValidator(whole_number)]
AtLeastOne = Annotated[Whole, Interval(ge=1)]
AtLeastZero = Annotated[Whole, Interval(ge=0)]
Positive = Annotated[float, Interval(gt=0)]
NonNegative = Annotated[float, Interval(ge=0)]
Share = Annotated[float, Interval(ge=0, le=1)]
Decay = Annotated[float, Interval(ge=0, lt=1)]
Widths = Annotated[tuple[AtLeastOne, ...], Strict(False)]  # a list is accepted too
Betas = Annotated[tuple[Decay, Decay], Strict(False)]
OrNone = Annotated[T | None, BeforeValidator(lambda value: None if value == NONE else value)]

NONE = "none"
"""None as TOML, which has no null, writes it."""

REMOVED: dict[str, str] = {
    "opr.admission_floor": "remove it; admission = 'gated' admits every return at or above τ (docs/paper.md)",
    "opr.deciding_return": "remove it; admission compares the raw return (docs/paper.md)",
    "opr.thresholds": "remove it; each group named by env.group_key has its own τ (docs/paper.md)",
    "opr.priority_exponent": "remove it; sampling = 'prioritized' uses 0.6",
    "opr.reference = snapshot": "use 'recorded' or 'cloned' (docs/paper.md)",
    "opr.reference_interval": "remove it; a cloned reference is refreshed every 10 updates",
    "opr.reference_epochs": "remove it; a cloned reference passes over M once at each refresh",
    "opr.reference_learning_rate": "remove it; a cloned reference learns at 1e-3",
    "opr.snapshot_decay": "remove it with reference = 'snapshot' (docs/paper.md)",
    "opr.shaping": "set opr.shaping_scale, 0 for no shaping; shaping is multiplicative (docs/paper.md)",
    "opr.augment_ratio": "use opr.augment_rows, 'decoupled' or 'recorded'",
    "opr.augment_weight_cap": "remove it; importance weights are truncated at 1",
    "opr.augment_value": "use opr.augment_rows = 'full' for a value loss of replayed rows",
    "opr.bc_schedule": "remove it; λ_BC is constant (docs/paper.md)",
    "opr.bc_advantage_scale": "remove it; a cloned step has full weight at an advantage of 1",
    "opr.bc_advantage_unit": "remove it; advantages are in units of the learner's reward (docs/paper.md)",
    "opr.bc_filter": "use opr.bc_weights = 'advantage', which gives steps with R ≤ V no weight (docs/paper.md)",
    "algorithm.trace_cap": "remove it; Retrace cuts importance weights at 1",
    "env.store_executed": "use env.forced_actions = 'executed' (true), 'sampled' (false) or 'masked'",
    "env.kwargs.lanes of optimist/Atari-v0": "use env.kwargs.num_workers",
    "env.kwargs.workers of optimist/Atari-v0": "use env.kwargs.worker_type",
    "env.kwargs.horizon_terminates of optimist/KeyDoorTreasure-v0": "set env.truncation = 'end'",
    "env.kwargs.backend of optimist/Atari-v0": "ale-py runs all games; `optimist bench atari` compares it with EnvPool",
}
"""Settings, values and keywords that no longer exist → what to do instead; keys are `opr.name`, `opr.name = value` and
`env.kwargs.name of ID`."""

KINDS = {
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "string_type": "text",
    "tuple_type": "a list",
    "list_type": "a list",
    "dict_type": "a table",
    "dataclass_type": "a table of settings",
    "model_attributes_type": "a table of settings",
}
"""pydantic's type of error → what was expected."""


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(field,))
def settings(path: str) -> Callable[[type[T]], type[T]]:
    """Make a class a frozen, keyword-only dataclass that validates itself; `path` is its name in a config file."""

    def decorate(cls: type[T]) -> type[T]:
        made: Any = dataclass(config=ConfigDict(strict=True, extra="forbid"), frozen=True, kw_only=True)(cls)
        validate = made.__init__

        @functools.wraps(validate)
        def init(self: Any, **values: Any) -> None:
            try:
                validate(self, **values)
            except ValidationError as error:
                raise _config_error(made, path, error) from None

        made.__init__ = init
        return made  # type: ignore[no-any-return]

    return decorate


class RemovedSetting(UnknownName):
    """A setting of an earlier version; the message names its successor."""


def parse_json(cls: Callable[..., T], text: str) -> T:
    """The settings in a JSON document; nested tables become nested settings, lists tuples."""
    try:
        settings: T = _adapter(cls).validate_json(text)
        return settings
    except ValidationError as error:
        raise _config_error(cls, "", error) from None


@functools.cache
def _adapter(cls: Any) -> TypeAdapter[Any]:
    return TypeAdapter(cls)


@functools.cache
def field_types(cls: Any) -> dict[str, Any]:
    """The declared type of each field, ranges included."""
    return get_type_hints(cls, include_extras=True)


@functools.cache
def meanings(cls: Any) -> dict[str, str]:
    """The text below each field in the source of a settings class and of its bases, on one line."""
    found: dict[str, str] = {}
    bases: list[Any] = [base for base in reversed(cls.__mro__) if is_dataclass(base)]
    for base in bases:
        source = ast.parse(textwrap.dedent(inspect.getsource(base)))
        for entry, text in itertools.pairwise(
            next(part for part in source.body if isinstance(part, ast.ClassDef)).body
        ):
            if isinstance(entry, ast.AnnAssign) and isinstance(entry.target, ast.Name) and isinstance(text, ast.Expr):
                found[entry.target.id] = " ".join(ast.literal_eval(text.value).split())
    return found


def allowed_range(hint: Any) -> str:
    """The range in a field's type, as `between 0 and 100`; none for a type without."""
    return next((_range(part) for part in hint_parts(hint) if isinstance(part, Interval)), "")


def refuse_removed(name: str, value: object) -> None:
    """Raise if a setting, or this value of it, no longer exists."""
    for key in (name, f"{name} = {value}"):
        if key in REMOVED:
            raise RemovedSetting(f"{key} no longer exists: {REMOVED[key]}")


def _config_error(cls: Any, path: str, invalid: ValidationError) -> ConfigError:
    """The first of pydantic's errors as one of ours."""
    error = invalid.errors(include_url=False)[0]
    kind, value, context = error["type"], error["input"], error.get("ctx", {})
    if isinstance(context.get("error"), ConfigError):  # raised by a __post_init__
        return context["error"]  # type: ignore[no-any-return]
    owner, name, hint = _locate(cls, path, error["loc"])
    refuse_removed(name, value)
    if kind == "unexpected_keyword_argument":
        prefix = name.removesuffix(str(error["loc"][-1]))
        known = [prefix + other for other in field_types(owner)]
        inner = [] if nearest(name, known) else _inner_settings(owner, prefix)
        return unknown_name("setting", name, inner if nearest(name, inner) else known)
    if kind == "union_tag_invalid":
        return unknown_name(f"{name} called", context["tag"], _learners(hint))
    if kind == "literal_error" and any(isinstance(choice, str) for choice in _choices(hint)):
        return unknown_name(f"{name} called", str(value), map(str, _choices(hint)))
    expected = _expected(kind, hint, context)
    return ConfigError(
        f"{name} must be {expected}, got {value!r}" if expected else f"{name}: {error['msg']}".lstrip(": ")
    )


def _locate(cls: Any, path: str, location: tuple[int | str, ...]) -> tuple[Any, str, Any]:
    """The class, full name and declared type of the field that pydantic's location leads to."""
    names = [path] if path else []
    owner: Any = cls
    hint: Any = cls
    for part in location:
        if is_dataclass(hint):
            owner = hint
            hint = field_types(owner).get(str(part))
            names.append(str(part))
        elif get_origin(hint) is dict:
            names.append(str(part))
            hint = get_args(hint)[1]
        elif part in _learners(hint):
            hint = _learners(hint)[str(part)]
    return owner, ".".join(names), hint


def _learners(hint: Any) -> Mapping[str, Any]:
    """The classes of a union, by their `name`."""
    kinds: list[Any] = [part for part in hint_parts(hint) if isinstance(part, type) and is_dataclass(part)]
    return {get_args(field_types(kind)["name"])[0]: kind for kind in kinds}


def _inner_settings(owner: Any, prefix: str) -> list[str]:
    """The settings one table deeper, such as `opr.percentile`."""
    return [
        f"{prefix}{table}.{name}"
        for table, hint in field_types(owner).items()
        for kind in hint_parts(hint)
        if isinstance(kind, type) and is_dataclass(kind)
        for name in field_types(kind)
    ]


def _choices(hint: Any) -> list[Any]:
    return [choice for part in hint_parts(hint) if get_origin(part) is Literal for choice in get_args(part)]


def hint_parts(hint: Any) -> list[Any]:
    """The type and everything in it: members of a union, elements of a tuple, ranges."""
    return [hint, *(part for item in get_args(hint) for part in hint_parts(item))]


def _expected(kind: str, hint: Any, context: Mapping[str, Any]) -> str:
    """The value that was expected, in words; none for an error that is not about a type or range, such as encoding."""
    parts = hint_parts(hint)
    if kind in KINDS:
        expected = KINDS[kind]
    elif kind == "dataclass_exact_type":
        expected = f"{context['class_name']}(…)"
    elif kind == "literal_error":
        expected = " or ".join(map(str, _choices(hint)))
    elif kind in ("missing", "too_long"):  # elements of a tuple
        (elements,) = (get_args(part) for part in parts if get_origin(part) is tuple)
        expected = f"a list of {len(elements)}"
    else:
        expected = allowed_range(hint)
    return f"{expected} or none" if expected and NoneType in parts else expected


def _range(allowed: Interval) -> str:
    if allowed.ge is not None and allowed.le is not None:
        return f"between {allowed.ge} and {allowed.le}"
    bounds = {"at least": allowed.ge, "above": allowed.gt, "at most": allowed.le, "below": allowed.lt}
    return " and ".join(f"{words} {bound}" for words, bound in bounds.items() if bound is not None)
