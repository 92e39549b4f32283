"""Settings and state of games: one record per game, whose fields read as arrays [N] and [N, H]."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cage2.errors import ConfigError, unknown_name
from cage2.rules.scenario import (
    DECOYS,
    HOSTS,
    NO_EXPLOIT,
    NOWHERE,
    NUM_HOSTS,
    PORTS,
    SUBNETS,
    UNKNOWN,
    USER,
    USER0,
    hosts,
)

REDS: Final = ("B_line", "Meander", "Sleep")
B_LINE, MEANDER, SLEEPER = range(3)

NUM_BITS: Final = 4 * NUM_HOSTS
"""Observation bits: activity and status [a0 a1 c0 c1] of each host."""

VIEW: Final = np.dtype([("bits", np.int8, NUM_BITS)])
"""An observation as a record: compiled code copies records faster than arrays."""

# Masks have one bit per host (or port). They are signed, so that Numba computes in int64.
GAME: Final = np.dtype(
    [
        ("random", np.uint64, 2),  # state of the random generator (chance.py)
        ("steps", np.int32),  # steps done
        ("red", np.int8),  # index into REDS
        # red's access
        ("held", np.int16),  # hosts with at least one red session
        ("owned", np.int16),  # hosts with at least one privileged red session
        ("plain", np.int8, NUM_HOSTS),  # user sessions that Remove does not kill; at most 127
        ("flagged", np.int8, NUM_HOSTS),  # user sessions that Remove kills
        ("privileged", np.int8, NUM_HOSTS),  # privileged sessions
        ("malware", np.int16),  # hosts with a suspicious file
        ("restored", np.int16),  # hosts restored in this episode
        ("decoy_ports", np.int16, NUM_HOSTS),  # ports opened by decoys
        ("ot_running", np.bool_),
        ("ot_killable", np.bool_),
        ("ot_active", np.bool_),
        # red's knowledge
        ("known_ports", np.int16, NUM_HOSTS),  # ports red remembers; 0 before its first successful scan
        ("knows_ot", np.bool_),
        ("known_addresses", np.int16),
        ("known_names", np.int16),
        ("known_subnets", np.int8),
        # the red agent's own memory
        ("position", np.int8),  # B_line's k
        ("entry", np.int8),  # B_line's X; NOWHERE before it is drawn
        ("swept", np.int8),
        ("scanned", np.int16),
        ("exploited", np.int16),
        ("escalated", np.int16),
        ("mapped", np.int16),
        # the last step
        ("blue_success", np.int8),
        ("green_target", np.int8),  # host that green scanned, or NOWHERE
        ("red_verb", np.int8),
        ("red_target", np.int8),  # host, or subnet for a sweep
        ("red_exploit", np.int8),  # exploit drawn, or NO_EXPLOIT
        ("red_success", np.int8),
        ("shell_host", np.int8),  # host with a logged reverse connection, or NOWHERE
        # blue's observation
        ("seen", VIEW),
        ("active", np.int8, 2),  # hosts whose activity the next step clears
        ("decoy_list", np.uint64, NUM_HOSTS),  # last 16 decoys as type + 1, newest in the lowest 4 bits
    ],
    align=True,
)

ALL_HOSTS: Final = (1 << NUM_HOSTS) - 1
RANGES: Final = {
    **dict.fromkeys(
        ("held", "owned", "malware", "restored", "scanned", "exploited", "escalated", "mapped"), (0, ALL_HOSTS)
    ),
    "known_addresses": (1, ALL_HOSTS),
    "known_names": (0, ALL_HOSTS),
    **dict.fromkeys(("plain", "flagged", "privileged"), (0, 127)),
    **dict.fromkeys(("decoy_ports", "known_ports"), (0, (1 << len(PORTS)) - 1)),
    **dict.fromkeys(("ot_running", "ot_killable", "ot_active", "knows_ot", "seen"), (0, 1)),
    **dict.fromkeys(("known_subnets", "swept"), (0, (1 << len(SUBNETS)) - 1)),
    **dict.fromkeys(("entry", "green_target", "red_target", "shell_host"), (0, NOWHERE)),
    **dict.fromkeys(("blue_success", "red_success"), (UNKNOWN, 1)),
    "random": (0, 2**64 - 1),
    "steps": (0, 2**31 - 2),
    "red": (0, len(REDS) - 1),
    "position": (0, 14),
    "red_verb": (0, 5),
    "red_exploit": (0, NO_EXPLOIT),
    "active": (0, NUM_HOSTS - 1),
    "decoy_list": (0, 2**64 - 1),
}
"""Field of a game → its smallest and largest value; compiled code uses many of them as indices."""

OUTCOMES: Final = np.dtype(
    [
        ("green_target", np.int8),
        ("red_target", np.int8),
        ("exploit", np.int8),
        ("detected", np.int8),
        ("flagged", np.int8),
    ]
)
"""Recorded random outcomes of one step; `flagged` counts the flagged sessions on red's target after the step."""


class Settings(NamedTuple):
    """Settings of the rules, as the kernels take them."""

    competition: bool
    """Rule set `competition`: red's memory of ports accumulates, and HarakaRCE fails after a Restore."""
    cardiff_table: bool
    """Blue's table as in the Cardiff agent."""
    green: bool
    """Whether the green agent acts; otherwise it sleeps."""
    horizon: int
    """Steps per episode."""
    b_line_below: float
    """Probability of B_line."""
    meander_below: float
    """Probability of B_line or Meander; the rest is Sleep."""


def _fresh_game() -> NDArray[np.void]:
    """One game before its first step: red has a privileged session on User0, and nothing else."""
    game = np.zeros(1, GAME)
    game["privileged"][0, USER0] = 1
    for field in ("held", "owned", "known_addresses", "known_names"):
        game[field] = hosts(USER0)
    game["known_subnets"] = 1 << USER
    game["ot_running"] = game["ot_killable"] = game["ot_active"] = True
    for field in ("entry", "green_target", "red_target", "shell_host"):
        game[field] = NOWHERE
    game["red_exploit"] = NO_EXPLOIT
    game["blue_success"] = UNKNOWN
    return game


FRESH_GAME: Final = _fresh_game()


def new_games(number: int) -> NDArray[np.void]:
    """Games before their first step, not seeded."""
    return np.repeat(FRESH_GAME, number)


def members(mask: NDArray[np.signedinteger[Any]]) -> NDArray[np.bool_]:
    """Masks [N] as booleans [N, H]."""
    return (mask[:, None] >> np.arange(NUM_HOSTS) & 1).astype(np.bool_)


def decoys_of(games: NDArray[np.void], game: int) -> dict[str, list[str]]:
    """Host name → its last 16 decoys, in order of placement."""
    found: dict[str, list[str]] = {}
    for host, packed in enumerate(games["decoy_list"][game].tolist()):
        names = [DECOYS[(packed >> shift & 15) - 1].name for shift in range(60, -1, -4) if packed >> shift & 15]
        if names:
            found[HOSTS[host]] = names
    return found


COPIED_FIELDS: Final = (
    *("privileged", "decoy_ports", "known_ports", "ot_running", "ot_killable", "red"),
    *("red_verb", "red_target", "red_exploit", "red_success", "shell_host", "steps"),
)


def true_state(games: NDArray[np.void]) -> dict[str, NDArray[Any]]:
    """State that blue cannot see, as new arrays: [N, H] for hosts, [N] for the rest."""
    held, owned = members(games["held"]), members(games["owned"])
    return {
        "access": held.astype(np.int8) + owned,  # 0 none, 1 user, 2 privileged
        "unprivileged": games["plain"] + games["flagged"],
        "removable": games["flagged"].copy(),
        "malware": members(games["malware"]),
        "restored": members(games["restored"]),
        **{name: games[name].copy() for name in COPIED_FIELDS},
    }


Ranges = Mapping[str, tuple[int, int]]


def to_arrays(records: NDArray[np.void]) -> dict[str, NDArray[Any]]:
    """Copy each field of the records into an array."""
    return {name: field.copy() for name, field in _fields(records).items()}


def from_arrays(records: NDArray[np.void], arrays: Mapping[str, Any], ranges: Ranges) -> None:
    """Fill records from the arrays of `to_arrays`; raises before anything is changed."""
    check_arrays(records, arrays, ranges)
    for name, field in _fields(records).items():
        field[...] = np.asarray(arrays[name])


def check_arrays(records: NDArray[np.void], arrays: Mapping[str, Any], ranges: Ranges) -> None:
    """Raise if the arrays do not match the fields of the records, or a value is out of its field's range."""
    fields = _fields(records)
    if not isinstance(arrays, Mapping) or set(arrays) != set(fields):
        raise ConfigError(f"saved games have the fields {sorted(arrays)}; expected {sorted(fields)}")
    for name, field in fields.items():
        if np.shape(arrays[name]) != field.shape:
            saved = list(np.shape(arrays[name]))
            raise ConfigError(f"saved games have {name} of shape {saved}; expected {list(field.shape)}")
        values, (low, high) = np.asarray(arrays[name]), ranges[name]
        if values.dtype.kind not in "iub" or int(values.min()) < low or int(values.max()) > high:
            found = f"{values.min()} to {values.max()}"
            raise ConfigError(f"saved games have {name} of {found}, {values.dtype}; expected integers {low} to {high}")


def _fields(records: NDArray[np.void]) -> dict[str, NDArray[Any]]:
    """Views of the fields as arrays of numbers; a nested record has one array."""
    fields = {name: records[name] for name in records.dtype.names or ()}
    return {name: field[field.dtype.names[0]] if field.dtype.names else field for name, field in fields.items()}


RED_NAMES: Final = (*REDS, "mixed")
GREEN_NAMES: Final = ("Sleep", "GreenAgent")
RULES: Final = ("final", "competition")
TABLES: Final = ("official", "cardiff")
DEFAULT_WEIGHTS: Final = (0.5, 0.5, 0.0)
"""Of `mixed`: half B_line, half Meander."""


def make_settings(
    red: str,
    green: str = "Sleep",
    rules: str = "final",
    table: str = "official",
    horizon: int = 100,
    red_weights: Mapping[str, float] | Sequence[float] | None = None,
) -> Settings:
    """Check the names and return the settings; `red_weights`, by name or in the order of `REDS`, is for `mixed`."""
    for kind, name, known in (
        ("red agent", red, RED_NAMES),
        ("green agent", green, GREEN_NAMES),
        ("rule set", rules, RULES),
        ("table", table, TABLES),
    ):
        if name not in known:
            raise unknown_name(kind, str(name), known)
    if red_weights is not None and red != "mixed":
        raise ConfigError(f"red_weights needs red='mixed', got red='{red}'")
    weights = _probabilities(red, red_weights)
    return Settings(
        competition=rules == "competition",
        cardiff_table=table == "cardiff",
        green=green == "GreenAgent",
        horizon=check_horizon(horizon),
        b_line_below=weights[B_LINE],
        meander_below=weights[B_LINE] + weights[MEANDER] if weights[-1] > 0 else 1.0,
    )


def check_horizon(horizon: int) -> int:
    """Return the horizon as an int; raises if it is not a number of steps."""
    if isinstance(horizon, bool) or not isinstance(horizon, int | np.integer) or not 0 < horizon < 2**31:
        raise ConfigError(f"horizon must be a whole number of steps above 0 and below 2**31, got {horizon!r}")
    return int(horizon)


def _probabilities(red: str, weights: Mapping[str, float] | Sequence[float] | None) -> list[float]:
    """Probability of each of `REDS` in an episode."""
    if red != "mixed":
        return [float(red == name) for name in REDS]
    if isinstance(weights, Mapping):
        for name in weights:
            if name not in REDS:
                raise unknown_name("red agent", str(name), REDS)
        weights = [weights.get(name, 0.0) for name in REDS]
    numbers = [float(weight) for weight in (DEFAULT_WEIGHTS if weights is None else weights)]
    if len(numbers) != len(REDS) or min(numbers) < 0 or not 0 < sum(numbers) < float("inf"):
        raise ConfigError(
            f"red_weights must be {len(REDS)} numbers (B_line, Meander, Sleep), none below 0, not all 0; got {numbers}"
        )
    return [number / sum(numbers) for number in numbers]
