"""Recorded episodes of the original game: reading, checks, and conversion to arrays."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import os
import stat
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from cage2.errors import TraceError
from cage2.rules.scenario import (
    DECOYS,
    EXPLOITS,
    HOSTS,
    NO_EXPLOIT,
    NOWHERE,
    NUM_ACTIONS,
    NUM_HOSTS,
    RED_VERBS,
    SUBNETS,
    SWEEP,
    UNKNOWN,
)
from cage2.rules.state import NUM_BITS, OUTCOMES

EPISODE_FIELDS: Final = ("red", "green", "rules", "horizon", "obs0", "return", "steps")
STEP_FIELDS: Final = ("b", "bs", "g", "r", "lvl", "nu", "np", "nr", "mal", "dec", "ot", "obs", "rew")
DIGITS: Final = {
    "lvl": (NUM_HOSTS, 2),
    "nu": (NUM_HOSTS, 9),
    "np": (NUM_HOSTS, 9),
    "nr": (NUM_HOSTS, 9),
    "mal": (NUM_HOSTS, 1),
    "obs": (NUM_BITS, 1),
}
"""Field → number of digits, largest digit."""
GREEN_SLEEP, GREEN_SCAN = "Sleep", "GreenPortScan"


@dataclass(frozen=True)
class Trace:
    """One recorded episode as arrays over its T steps."""

    red: str
    green: str
    rules: str
    table: str
    actions: NDArray[np.int64]  # [T]
    outcomes: NDArray[np.void]  # [T] random outcomes (state.OUTCOMES)
    rewards: NDArray[np.float64]  # [T]
    digits: dict[str, NDArray[np.int8]]  # field → [T, 13 or 52]
    first_observation: NDArray[np.int8]  # [52]
    total: float
    blue_names: list[str]  # such as "DecoyTomcat User2"
    blue_success: NDArray[np.int64]  # [T]
    red_actions: NDArray[np.int64]  # [T, 4]: verb, target, exploit, success
    decoys: NDArray[np.uint64]  # [T, H] packed as in the state
    ot_running: NDArray[np.bool_]  # [T]

    def __len__(self) -> int:
        return len(self.actions)


LINE_BYTES: Final = 2**20
"""Longest line that is read; an episode of 100 steps has about 30,000 bytes."""
FILE_BYTES: Final = 2**30
"""Largest file that is read, decompressed."""
RECORDED: Final = Path(__file__).with_name("data") / "traces.jsonl.xz"
"""All recorded episodes: 1,386 with 79,800 steps."""


def read_traces(path: str | Path = RECORDED) -> Iterator[Trace]:
    """Read the episodes of a JSON-lines file compressed by gzip or xz."""
    number = 0
    opened = lzma.open if Path(path).suffix == ".xz" else gzip.open
    try:
        with open_regular(path) as file, opened(file, "rb") as lines:
            for number, line in enumerate(_lines(lines), 1):  # noqa: B007 (named in errors)
                yield parse_episode(json.loads(line))
    except RecursionError:
        raise TraceError(f"{path}, line {number}: nested too deeply; expected one episode per line") from None
    except IsADirectoryError:
        raise TraceError(f"{path} is a folder; expected a file of recorded episodes (*.jsonl.gz)") from None
    except FileNotFoundError:
        raise TraceError(f"no file {path}; expected recorded episodes (*.jsonl.gz)") from None
    except (OSError, EOFError, zlib.error, lzma.LZMAError, UnicodeDecodeError) as error:
        no_gzip = number == 0 and isinstance(error, gzip.BadGzipFile)
        advice = "expected recorded episodes (*.jsonl.gz)" if no_gzip else "copy the file again"
        raise TraceError(f"{path} cannot be read after episode {number}: {error}; {advice}") from None
    except json.JSONDecodeError as error:
        raise TraceError(f"{path}, line {number}: not JSON ({error}); expected one episode per line") from None
    except TraceError as error:
        raise TraceError(f"{path}, line {number}: {error}") from None


def open_regular(path: str | Path) -> io.BufferedReader:
    """Open a regular file, or a link to one; a FIFO or a device raises instead of being waited for."""
    mode = os.stat(path).st_mode
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(path)
    if not stat.S_ISREG(mode):
        raise TraceError(f"{path} is no regular file; expected a file of recorded episodes (*.jsonl.gz)")
    return Path(path).open("rb")


def _lines(file: gzip.GzipFile | lzma.LZMAFile) -> Iterator[bytes]:
    """The lines of a decompressed file; raise where one is longer than any episode, or all are too many."""
    total = 0
    while line := file.readline(LINE_BYTES + 1):
        total += len(line)
        if len(line) > LINE_BYTES or total > FILE_BYTES:
            what, limit = ("a line", LINE_BYTES) if len(line) > LINE_BYTES else ("the file", FILE_BYTES)
            raise TraceError(f"{what} has more than {limit:,} bytes; expected one episode per line")
        yield line


def _require(record: Any, fields: tuple[str, ...], what: str) -> None:
    if not isinstance(record, dict):
        raise TraceError(f"{what} is a {type(record).__name__}; expected an object")
    missing = [field for field in fields if field not in record]
    if missing:
        raise TraceError(f"{what} has no {', '.join(repr(field) for field in missing)}")


def parse_episode(record: Any) -> Trace:
    """Convert one episode from JSON; raises `TraceError` if a field is missing or malformed."""
    _require(record, EPISODE_FIELDS, "the episode")
    steps = record["steps"]
    if not isinstance(steps, list) or not steps:
        raise TraceError("'steps' is empty; expected at least one step")
    if len(steps) != record["horizon"]:
        raise TraceError(f"the episode has {len(steps)} steps; expected its horizon, {record['horizon']}")
    for t, step in enumerate(steps):
        _require(step, STEP_FIELDS, f"step {t}")
    try:
        return Trace(
            red=record["red"],
            green=record["green"],
            rules=record["rules"],
            table=record.get("table", "official"),
            actions=_actions(steps),
            outcomes=np.array([_outcomes(step, record["green"]) for step in steps], OUTCOMES),
            rewards=np.array([step["rew"] for step in steps], np.float64),
            digits={field: _digits([step[field] for step in steps], *bounds) for field, bounds in DIGITS.items()},
            first_observation=_digits([record["obs0"]], *DIGITS["obs"])[0],
            total=float(record["return"]),
            blue_names=[" ".join(filter(None, step["b"][:2])) for step in steps],
            blue_success=np.array([_success(step["bs"]) for step in steps], np.int64),
            red_actions=np.array([_red_action(step["r"]) for step in steps], np.int64),
            decoys=np.array([_packed_decoys(step["dec"]) for step in steps], np.uint64),
            ot_running=np.array([_bit(step["ot"]) for step in steps], np.bool_),
        )
    except (TypeError, ValueError, IndexError, KeyError, AttributeError, OverflowError) as error:
        raise TraceError(f"a field is malformed: {error}") from None


def _actions(steps: list[dict[str, Any]]) -> NDArray[np.int64]:
    actions = np.array([step["b"][2] for step in steps], np.int64)
    if actions.min() < 0 or actions.max() >= NUM_ACTIONS:
        raise ValueError(f"blue action {actions[(actions < 0) | (actions >= NUM_ACTIONS)][0]} outside 0..144")
    return actions


def _digits(texts: list[str], width: int, largest: int) -> NDArray[np.int8]:
    """Convert strings of digits to rows [T, width]."""
    rows = (np.frombuffer("".join(texts).encode("ascii"), np.int8) - ord("0")).reshape(len(texts), width)
    outside = ((rows < 0) | (rows > largest)).any(axis=1)
    if outside.any():
        raise ValueError(f"expected digits from 0 to {largest}, got {texts[int(outside.argmax())]!r}")
    return rows


def _bit(value: Any) -> bool:
    if value not in (0, 1):
        raise ValueError(f"expected 0 or 1, got {value!r}")
    return bool(value)


def _success(value: int | None) -> int:
    return UNKNOWN if value is None else int(_bit(value))


def _outcomes(step: dict[str, Any], green: str) -> tuple[int, int, int, int, int]:
    """Random outcomes of a step (state.OUTCOMES): green's target, red's target, exploit, detection, escalation."""
    verb, target, exploit, _ = _red_action(step["r"])
    on_host = target < NUM_HOSTS and verb != SWEEP
    return (
        _green_target(step["g"], green),
        target,
        exploit,
        _bit(step.get("det", 0)),
        int(step["nr"][target]) if on_host else 0,
    )


def _green_target(recorded: list[Any], green: str) -> int:
    verb, target = recorded[:2]
    if green == GREEN_SLEEP and verb != GREEN_SLEEP:
        raise ValueError(f"green sleeps in this episode, but its action is {verb}")
    if verb != (GREEN_SLEEP if target is None else GREEN_SCAN):
        raise ValueError(f"green's {verb!r} of {target!r} is neither {GREEN_SLEEP} nor {GREEN_SCAN} of a host")
    return NOWHERE if target is None else HOSTS.index(target)


def _red_action(recorded: list[Any]) -> tuple[int, int, int, int]:
    """Red's action as indices: verb, target, exploit, success."""
    verb, target, detail, success = recorded
    if verb not in RED_VERBS:
        raise ValueError(f"unknown red action {verb!r}")
    names = SUBNETS if verb == RED_VERBS[SWEEP] else HOSTS
    index = NOWHERE if target is None else names.index(target)
    exploit = EXPLOITS.index(detail) if detail in EXPLOITS else NO_EXPLOIT
    return RED_VERBS.index(verb), index, exploit, _success(success)


def _packed_decoys(by_host: dict[str, list[str]]) -> list[int]:
    """Pack the decoys [H] as in the state: the last 16 of each host, newest in the lowest bits."""
    names = [decoy.name for decoy in DECOYS]
    packed = [0] * NUM_HOSTS
    for host, placed in by_host.items():
        value = 0
        for name in placed[-16:]:
            value = value << 4 | names.index(name.removeprefix("Decoy")) + 1
        packed[HOSTS.index(host)] = value
    return packed
