"""The state of many games: one record a game, whose fields read as arrays [N] and [N, H]."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from optimist.envs.cage2.actions import UNKNOWN
from optimist.envs.cage2.network import DECOYS, HOSTS, NO_EXPLOIT, NOWHERE, NUM_HOSTS, USER, USER0, hosts
from optimist.errors import ConfigError

REDS: Final = ("B_line", "Meander", "Sleep")
B_LINE, MEANDER, SLEEPER = range(3)

NUM_BITS: Final = 4 * NUM_HOSTS
"""Observation bits: [a0 a1 c0 c1] for each host, activity and status."""

VIEW: Final = np.dtype([("bits", np.int8, NUM_BITS)])
"""An observation as a record, which is copied at once where an array is copied byte by byte."""

# Masks hold one bit a host (or port) and are signed so that numba keeps to int64 in all arithmetic.
GAME: Final = np.dtype(
    [
        ("random", np.uint64, 2),  # the dice (chance.py)
        ("steps", np.int32),  # steps played
        ("red", np.int8),  # index into REDS
        # what red holds
        ("held", np.int16),  # hosts with at least one red session
        ("owned", np.int16),  # hosts with at least one privileged red session
        ("plain", np.int8, NUM_HOSTS),  # unprivileged sessions that Remove cannot see; counts stop at 127
        ("flagged", np.int8, NUM_HOSTS),  # unprivileged sessions that Remove kills
        ("privileged", np.int8, NUM_HOSTS),  # privileged sessions
        ("malware", np.int16),  # hosts with a suspicious file
        ("restored", np.int16),  # hosts restored in this episode
        ("decoy_ports", np.int16, NUM_HOSTS),  # ports opened by decoys
        ("ot_running", np.bool_),
        ("ot_killable", np.bool_),
        ("ot_active", np.bool_),
        # what red knows
        ("known_ports", np.int16, NUM_HOSTS),  # ports red remembers; 0 until its first successful look
        ("knows_ot", np.bool_),
        ("known_addresses", np.int16),
        ("known_names", np.int16),
        ("known_subnets", np.int8),
        # the red agent's own memory
        ("position", np.int8),  # B_line's k
        ("entry", np.int8),  # B_line's X, NOWHERE until drawn
        ("swept", np.int8),
        ("scanned", np.int16),
        ("exploited", np.int16),
        ("escalated", np.int16),
        ("mapped", np.int16),
        # the last step
        ("blue_success", np.int8),
        ("green_target", np.int8),  # the host green scanned, or NOWHERE
        ("red_verb", np.int8),
        ("red_target", np.int8),  # a host, or a subnet for a sweep
        ("red_exploit", np.int8),  # the exploit drawn, or NO_EXPLOIT
        ("red_success", np.int8),
        ("shell_host", np.int8),  # where a reverse connection was logged, or NOWHERE
        # what blue sees
        ("seen", VIEW),  # the observation
        ("active", np.int8, 2),  # the hosts whose activity is to be cleared at the next step
        ("decoy_list", np.uint64, NUM_HOSTS),  # the last 16 decoys, newest in the lowest 4 bits, as type + 1
    ],
    align=True,
)

GIVEN: Final = np.dtype(
    [
        ("green_target", np.int8),
        ("red_target", np.int8),
        ("exploit", np.int8),
        ("detected", np.int8),
        ("flagged", np.int8),
    ]
)
"""The outcomes of one step as recorded; `flagged` counts what is left flagged on red's target after the step."""


class Settings(NamedTuple):
    """What the rules of a game depend on, as the kernels take it."""

    competition: bool
    """Rule set `competition`: red's port memory accumulates, Haraka breaks after a Restore."""
    cardiff_table: bool
    """The slightly different table of the Cardiff agent."""
    green: bool
    """A noisy green agent; otherwise it sleeps."""
    horizon: int
    """Steps after which a game is truncated."""
    b_line_below: float
    """A draw in [0, 1) below this gives B_line ..."""
    meander_below: float
    """... else below this Meander, else Sleep."""


def _fresh_game() -> NDArray[np.void]:
    """One game before its first step: red sits on User0, privileged; nothing else has happened."""
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
    """So many games before their first step, with dice that still want a seed."""
    return np.repeat(FRESH_GAME, number)


def members(mask: NDArray[np.signedinteger[Any]]) -> NDArray[np.bool_]:
    """A mask per game [N] as booleans [N, H]."""
    return (mask[:, None] >> np.arange(NUM_HOSTS) & 1).astype(np.bool_)


def decoys_of(games: NDArray[np.void], game: int) -> dict[str, list[str]]:
    """The decoys of one game by host name, in order of placement (the last 16 of each host)."""
    found: dict[str, list[str]] = {}
    for host, packed in enumerate(games["decoy_list"][game].tolist()):
        names = [DECOYS[(packed >> shift & 15) - 1].name for shift in range(60, -1, -4) if packed >> shift & 15]
        if names:
            found[HOSTS[host]] = names
    return found


def true_state(games: NDArray[np.void]) -> dict[str, NDArray[Any]]:
    """What blue cannot see, as fresh arrays: [N, H] for hosts, [N] for the rest."""
    held, owned = members(games["held"]), members(games["owned"])
    return {
        "access": held.astype(np.int8) + owned,  # 0 none, 1 user, 2 privileged
        "unprivileged": games["plain"] + games["flagged"],
        "removable": games["flagged"].copy(),
        "privileged": games["privileged"].copy(),
        "malware": members(games["malware"]),
        "restored": members(games["restored"]),
        "decoy_ports": games["decoy_ports"].copy(),
        "known_ports": games["known_ports"].copy(),
        "ot_running": games["ot_running"].copy(),
        "ot_killable": games["ot_killable"].copy(),
        "red": games["red"].copy(),
        "red_verb": games["red_verb"].copy(),
        "red_target": games["red_target"].copy(),
        "red_exploit": games["red_exploit"].copy(),
        "red_success": games["red_success"].copy(),
        "shell_host": games["shell_host"].copy(),
        "steps": games["steps"].copy(),
    }


def to_arrays(records: NDArray[np.void]) -> dict[str, NDArray[Any]]:
    """Each field of the records as a plain array of its own."""
    return {name: _plain(records[name]).copy() for name in _names(records)}


def from_arrays(records: NDArray[np.void], arrays: Mapping[str, Any]) -> None:
    """Fills records from what `to_arrays` gave, all of it or nothing."""
    check_arrays(records, arrays)
    for name in _names(records):
        _plain(records[name])[...] = np.asarray(arrays[name])


def check_arrays(records: NDArray[np.void], arrays: Mapping[str, Any]) -> None:
    """Refuses arrays that do not fit the records."""
    if set(arrays) != set(_names(records)):
        raise ConfigError(f"the saved games have the fields {sorted(arrays)}, expected {sorted(_names(records))}")
    for name in _names(records):
        field, saved = _plain(records[name]), np.asarray(arrays[name])
        if saved.shape != field.shape:
            raise ConfigError(f"the saved games' {name} is {list(saved.shape)}, expected {list(field.shape)}")


def _names(records: NDArray[np.void]) -> tuple[str, ...]:
    return records.dtype.names or ()


def _plain(field: NDArray[Any]) -> NDArray[Any]:
    """A field as an array of numbers; a record within the record holds but one array."""
    return field[field.dtype.names[0]] if field.dtype.names else field
