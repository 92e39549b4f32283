"""Recorded episodes of the original game: read, checked, and turned into arrays."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from optimist.envs.cage2.actions import NUM_ACTIONS, RED_VERBS, SWEEP
from optimist.envs.cage2.network import EXPLOITS, HOSTS, NO_EXPLOIT, NOWHERE, NUM_HOSTS, SUBNETS
from optimist.envs.cage2.state import GIVEN, NUM_BITS
from optimist.errors import OptimistError

EPISODE_FIELDS: Final = ("red", "green", "rules", "horizon", "obs0", "return", "steps")
STEP_FIELDS: Final = ("b", "bs", "g", "r", "lvl", "nu", "np", "nr", "mal", "dec", "ot", "obs", "rew")
DIGITS: Final = {"lvl": NUM_HOSTS, "nu": NUM_HOSTS, "np": NUM_HOSTS, "nr": NUM_HOSTS, "mal": NUM_HOSTS, "obs": NUM_BITS}


class TraceError(OptimistError):
    """A file of recorded episodes is damaged or lacks a field."""


@dataclass(frozen=True)
class Trace:
    """One recorded episode: arrays over its T steps, as far as replay and comparison need them."""

    red: str
    green: str
    rules: str
    table: str
    actions: NDArray[np.int64]  # [T]
    given: NDArray[np.void]  # [T] outcomes (state.GIVEN)
    rewards: NDArray[np.float64]  # [T]
    digits: dict[str, NDArray[np.int8]]  # field → [T, 13 or 52]
    first_observation: NDArray[np.int8]  # [52]
    total: float
    blue_names: list[str]  # such as "DecoyTomcat User2"
    blue_success: list[int | None]
    red_actions: list[list[Any]]  # [verb, target, detail, success]
    decoys: list[dict[str, list[str]]]
    ot_running: list[int]

    def __len__(self) -> int:
        return len(self.actions)


def read_traces(path: str | Path) -> Iterator[Trace]:
    """The episodes of a gzipped JSON-lines file, one after the other."""
    number = 0
    try:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):  # noqa: B007 (named in errors)
                yield parse_episode(json.loads(line))
    except FileNotFoundError:
        raise TraceError(f"no file {path}; expected recorded episodes (*.jsonl.gz)") from None
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        other = number == 0 and isinstance(error, gzip.BadGzipFile)
        advice = "expected recorded episodes (*.jsonl.gz)" if other else "copy the file again"
        raise TraceError(f"{path} cannot be read after episode {number}: {error}; {advice}") from None
    except json.JSONDecodeError as error:
        raise TraceError(f"{path}, line {number}: not JSON ({error}); expected one episode per line") from None
    except TraceError as error:
        raise TraceError(f"{path}, line {number}: {error}") from None


def _require(record: Any, fields: tuple[str, ...], what: str) -> None:
    if not isinstance(record, dict):
        raise TraceError(f"{what} is a {type(record).__name__}, expected an object")
    missing = [field for field in fields if field not in record]
    if missing:
        raise TraceError(f"{what} lacks {', '.join(repr(field) for field in missing)}")


def parse_episode(record: Any) -> Trace:
    """One episode from its JSON object; raises `TraceError` where a field is missing or malformed."""
    _require(record, EPISODE_FIELDS, "the episode")
    steps = record["steps"]
    if not isinstance(steps, list) or not steps:
        raise TraceError("'steps' is empty, expected at least one step")
    for t, step in enumerate(steps):
        _require(step, STEP_FIELDS, f"step {t}")
    try:
        return Trace(
            red=record["red"],
            green=record["green"],
            rules=record["rules"],
            table=record.get("table", "official"),
            actions=_actions(steps),
            given=np.array([_outcomes(step) for step in steps], GIVEN),
            rewards=np.array([step["rew"] for step in steps], np.float64),
            digits={field: _digits([step[field] for step in steps], width) for field, width in DIGITS.items()},
            first_observation=_digits([record["obs0"]], NUM_BITS)[0],
            total=float(record["return"]),
            blue_names=[" ".join(filter(None, step["b"][:2])) for step in steps],
            blue_success=[step["bs"] for step in steps],
            red_actions=[step["r"] for step in steps],
            decoys=[step["dec"] for step in steps],
            ot_running=[step["ot"] for step in steps],
        )
    except (TypeError, ValueError, IndexError, KeyError) as error:
        raise TraceError(f"a field is malformed: {error}") from None


def _actions(steps: list[dict[str, Any]]) -> NDArray[np.int64]:
    actions = np.array([step["b"][2] for step in steps], np.int64)
    if actions.min() < 0 or actions.max() >= NUM_ACTIONS:
        raise ValueError(f"blue action {actions[(actions < 0) | (actions >= NUM_ACTIONS)][0]} outside 0..144")
    return actions


def _digits(texts: list[str], width: int) -> NDArray[np.int8]:
    """Strings of digits as rows [T, width]."""
    rows = np.frombuffer("".join(texts).encode("ascii"), np.int8) - ord("0")
    return rows.reshape(len(texts), width)


def _outcomes(step: dict[str, Any]) -> tuple[int, int, int, int, int]:
    """What chance decided in a step (state.GIVEN): green's target, red's target, exploit, detection, escalation."""
    verb, target, detail, _ = step["r"]
    if verb not in RED_VERBS:
        raise ValueError(f"unknown red action {verb!r}")
    place = NOWHERE if target is None else (SUBNETS if verb == RED_VERBS[SWEEP] else HOSTS).index(target)
    on_host = place < NUM_HOSTS and verb != RED_VERBS[SWEEP]
    return (
        NOWHERE if step["g"][1] is None else HOSTS.index(step["g"][1]),
        place,
        EXPLOITS.index(detail) if detail in EXPLOITS else NO_EXPLOIT,
        step.get("det", 0),
        int(step["nr"][place]) if on_host else 0,
    )
