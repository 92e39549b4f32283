"""Bits of the expert interface: one game's memory and mask for a policy, its true state for a critic, and names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import numpy as np

from cage2.expert.actions import (
    ACTION_SLOT,
    EXPERT_ACTION_NAMES,
    KIND_OF,
    LIST_LENGTH,
    NUM_EXPERT_ACTIONS,
    NUM_KINDS,
    NUM_SLOTS,
    SLOT_HOSTS,
    SLOTS,
)
from cage2.expert.memory import HISTORY, happened_since, last_event_at, write_mask
from cage2.rules.compile import rule
from cage2.rules.red_agents import LAST_POSITION
from cage2.rules.scenario import HOSTS, NOWHERE, NUM_HOSTS, USER0, USER1, USER4
from cage2.rules.state import B_LINE, MEANDER

AGES: Final = np.array([1, 2, 3, 5, 9, 16])
"""An age is one bit for each of these: "at most n steps ago"; the last step has age 1."""
FEW_AGES: Final = np.array([1, 3, 9])
"""The same, for events that the history of actions includes."""
COUNTS: Final = np.array([1, 2, 4])
"""A count is one bit for each of these: "at least n"."""
TIMES: Final = np.arange(5, 100, 5)
"""Steps done: one bit for each of these, "at least n"."""
ENDS: Final = np.array([30, 50, 100])
"""Horizons of the challenge. An agent does not know which one applies, and sees the steps left to the next one."""
LEFT: Final = np.array([1, 2, 3, 5, 8, 12])
"""Steps left to the next of `ENDS`: one bit for each of these, "at most n"."""

OTHERS: Final = np.array([h for h in range(NUM_HOSTS) if h not in SLOTS])
"""Hosts that no expert action applies to."""
ENTRY_HOSTS: Final = 5
"""User0–4: the hosts that red attacks first."""

SLOT_BITS: Final = 12 + 3 * len(AGES) + 2 * len(FEW_AGES) + 3 * len(COUNTS)
DECOY_BITS: Final = 4 * int(LIST_LENGTH.sum())
OTHER_BITS: Final = 4 + len(FEW_AGES)
GLOBAL_BITS: Final = len(TIMES) + len(LEFT) + len(AGES) + 3 + ENTRY_HOSTS + NUM_HOSTS
STEP_BITS: Final = NUM_HOSTS + 1 + NUM_KINDS + NUM_SLOTS
NUM_FEATURES: Final = NUM_SLOTS * SLOT_BITS + DECOY_BITS + len(OTHERS) * OTHER_BITS + GLOBAL_BITS + HISTORY * STEP_BITS
NUM_ACTOR_BITS: Final = NUM_FEATURES + NUM_EXPERT_ACTIONS
"""Inputs of a policy: features, then action mask."""

OPTION_BITS: Final = 8
HOST_SETS: Final = 12
NUM_TRUTH: Final = (
    HOST_SETS * NUM_HOSTS + NUM_SLOTS * OPTION_BITS + 2 + 2 + 4 + 3 + 3 + (LAST_POSITION + 1) + (USER4 - USER1 + 1)
)
"""Additional inputs of a critic."""
NUM_EXPERT_BITS: Final = NUM_ACTOR_BITS + NUM_TRUTH

ATTACKERS: Final = 4


@rule
def _write_age(row: Any, at: int, time: int, now: int, ages: Any) -> int:
    for i in range(len(ages)):
        row[at + i] = time > 0 and now - time < ages[i]
    return at + len(ages)


@rule
def _write_count(row: Any, at: int, count: int) -> int:
    for i in range(len(COUNTS)):
        row[at + i] = count >= COUNTS[i]
    return at + len(COUNTS)


@rule
def _write_level(row: Any, at: int, level: int, levels: int) -> int:
    for i in range(levels):
        row[at + i] = level > i
    return at + levels


@rule
def _write_one_of(row: Any, at: int, chosen: int, number: int) -> int:
    for i in range(number):
        row[at + i] = chosen == i
    return at + number


@rule
def _write_slot(memory: Any, bits: Any, slot: int, row: Any, at: int) -> int:
    """Write one defended host: its bits now, its events and blue's actions there, and its decoys."""
    host, now = SLOT_HOSTS[slot], memory.steps
    restored, event, alarm = memory.restored_at[slot], last_event_at(memory, slot), memory.alarm_at[host]
    alarmed = happened_since(alarm, restored)
    for i in range(4):
        row[at + i] = bits[4 * host + i]
    row[at + 4] = memory.scans[host] + memory.alarms[host] > 0
    row[at + 5] = happened_since(event, restored)
    row[at + 6] = alarmed
    row[at + 7] = happened_since(alarm, max(restored, memory.removed_at[slot]))
    row[at + 8] = happened_since(event, max(restored, memory.analysed_at[slot]))
    row[at + 9] = memory.found_at[slot] > 0
    row[at + 10] = restored > 0
    row[at + 11] = alarmed and memory.removed_at[slot] > alarm
    at = _write_age(row, at + 12, alarm if alarmed else 0, now, AGES)
    at = _write_age(row, at, memory.scan_at[host], now, AGES)
    at = _write_age(row, at, memory.analysed_at[slot], now, FEW_AGES)
    at = _write_age(row, at, memory.removed_at[slot], now, FEW_AGES)
    at = _write_age(row, at, restored, now, AGES)
    at = _write_count(row, at, memory.fresh_alarms[slot])
    at = _write_count(row, at, memory.alarms[host])
    at = _write_count(row, at, memory.scans[host])
    at = _write_level(row, at, memory.placed[slot], LIST_LENGTH[slot])
    at = _write_level(row, at, memory.placed_at_first_scan[slot], LIST_LENGTH[slot])
    at = _write_level(row, at, memory.placed_at_last_scan[slot], LIST_LENGTH[slot])
    return _write_level(row, at, memory.most_placed_at_scans[slot], LIST_LENGTH[slot])


@rule
def _write_global(memory: Any, row: Any, at: int) -> int:
    """Write time, the last event, the attacker, and the first host it touched."""
    now = memory.steps
    for i in range(len(TIMES)):
        row[at + i] = now >= TIMES[i]
    at += len(TIMES)
    left = 1 << 20
    for end in ENDS:
        if now < end:
            left = min(left, end - now)
    for i in range(len(LEFT)):
        row[at + i] = left <= LEFT[i]
    at = _write_age(row, at + len(LEFT), memory.event_at, now, AGES)
    for i in range(1, ATTACKERS):
        row[at + i - 1] = memory.attacker == i
    at = _write_one_of(row, at + ATTACKERS - 1, memory.first_host - USER0, ENTRY_HOSTS)
    return _write_level(row, at, memory.num_touched, NUM_HOSTS)


@rule
def write_features(memory: Any, bits: Any, row: Any) -> None:
    """Write the memory of a game and its 52 bits as features: row [NUM_FEATURES]."""
    at = 0
    for slot in range(NUM_SLOTS):
        at = _write_slot(memory, bits, slot, row, at)
    for host in OTHERS:
        for i in range(2):
            row[at + i] = bits[4 * host + i]
        row[at + 2] = memory.scans[host] > 0
        row[at + 3] = memory.alarms[host] > 0
        at = _write_age(row, at + 4, max(memory.scan_at[host], memory.alarm_at[host]), memory.steps, FEW_AGES)
    at = _write_global(memory, row, at)
    for i in range(HISTORY):
        action = memory.actions[i]
        at = _write_one_of(row, at, memory.event_hosts[i], NUM_HOSTS)
        row[at] = memory.event_alarms[i]
        at = _write_one_of(row, at + 1, KIND_OF[action] if action >= 0 else -1, NUM_KINDS)
        at = _write_one_of(row, at, ACTION_SLOT[action] if action > 0 else -1, NUM_SLOTS)


@rule
def write_actor_bits(memory: Any, bits: Any, masked: bool, row: Any) -> None:
    """Write the policy's inputs: features, then the mask, or ones if not `masked`."""
    write_features(memory, bits, row)
    if masked:
        write_mask(memory, row[NUM_FEATURES:])
    else:
        for action in range(NUM_EXPERT_ACTIONS):
            row[NUM_FEATURES + action] = 1


@rule
def _write_hosts(row: Any, at: int, members: int) -> int:
    for host in range(NUM_HOSTS):
        row[at + host] = (members >> host) & 1
    return at + NUM_HOSTS


@rule
def write_truth(game: Any, row: Any) -> None:
    """Write red's access, knowledge and memory: row [NUM_TRUTH]."""
    at = _write_hosts(row, 0, game.held)
    at = _write_hosts(row, at, game.owned)
    at = _write_hosts(row, at, game.malware)
    at = _write_hosts(row, at, game.restored)
    at = _write_hosts(row, at, game.scanned)
    at = _write_hosts(row, at, game.exploited)
    at = _write_hosts(row, at, game.escalated)
    at = _write_hosts(row, at, game.mapped)
    at = _write_hosts(row, at, game.known_addresses)
    at = _write_hosts(row, at, game.known_names)
    for host in range(NUM_HOSTS):
        row[at + host] = game.plain[host] > 0
        row[at + NUM_HOSTS + host] = game.flagged[host] > 0
    at += 2 * NUM_HOSTS
    for slot in range(NUM_SLOTS):
        for option in range(OPTION_BITS):
            row[at + option] = (game.known_ports[SLOT_HOSTS[slot]] >> option) & 1
        at += OPTION_BITS
    row[at] = game.red == B_LINE
    row[at + 1] = game.red == MEANDER
    row[at + 2] = game.red_success == 1
    row[at + 3] = game.red_success == 0
    row[at + 4] = game.ot_running
    row[at + 5] = game.ot_killable
    row[at + 6] = game.ot_active
    row[at + 7] = game.knows_ot
    for subnet in range(3):
        row[at + 8 + subnet] = (game.known_subnets >> subnet) & 1
        row[at + 11 + subnet] = (game.swept >> subnet) & 1
    at = _write_one_of(row, at + 14, game.position, LAST_POSITION + 1)
    _write_one_of(row, at, game.entry - USER1 if game.entry != NOWHERE else -1, USER4 - USER1 + 1)


@rule
def write_row(game: Any, memory: Any, masked: bool, row: Any) -> None:
    """Write the observation of a game: the policy's inputs, then the true state."""
    write_actor_bits(memory, game.seen.bits, masked, row)
    write_truth(game, row[NUM_ACTOR_BITS:])


_SLOT_STATES = (
    *("active", "exploited", "status 0", "status 1"),
    *("touched", "touched since Restore", "alarm since Restore", "alarm since Remove or Restore"),
    *("to be analysed", "file found", "restored", "removed since alarm"),
)
_DECOY_TIMES = ("now", "at first scan", "at last scan", "at any scan")


def _at_most(what: str, ages: Iterable[int]) -> list[str]:
    return [f"{what} ≤ {age}" for age in ages]


def _at_least(what: str, counts: Iterable[int]) -> list[str]:
    return [f"{what} ≥ {count}" for count in counts]


def _slot_names(slot: int) -> list[str]:
    names = list(_SLOT_STATES)
    names += _at_most("age of alarm", AGES) + _at_most("age of scan", AGES)
    names += _at_most("age of Analyse", FEW_AGES) + _at_most("age of Remove", FEW_AGES)
    names += _at_most("age of Restore", AGES)
    for what in ("alarms since Restore", "alarms", "scans"):
        names += _at_least(what, COUNTS)
    for when in _DECOY_TIMES:
        names += _at_least(f"decoys {when}", range(1, LIST_LENGTH[slot] + 1))
    return [f"{HOSTS[SLOTS[slot]]}: {name}" for name in names]


def _other_names(host: int) -> list[str]:
    names = ["active", "exploited", "scanned", "alarmed", *_at_most("age of event", FEW_AGES)]
    return [f"{HOSTS[host]}: {name}" for name in names]


def _step_names(ago: int) -> list[str]:
    names = [f"event on {host}" for host in HOSTS] + ["event was an alarm"]
    names += [f"blue: {kind}" for kind in ("Sleep", "Analyse", "Remove", "Restore", "Decoy")]
    names += [f"blue on {HOSTS[SLOTS[slot]]}" for slot in range(NUM_SLOTS)]
    return [f"{ago + 1} steps ago: {name}" for name in names]


def feature_names() -> list[str]:
    """Names of the `NUM_ACTOR_BITS` inputs of a policy, in their order."""
    names = [name for slot in range(NUM_SLOTS) for name in _slot_names(slot)]
    names += [name for host in OTHERS for name in _other_names(int(host))]
    names += _at_least("steps", TIMES) + _at_most("steps left", LEFT) + _at_most("age of last event", AGES)
    names += ["attacker: unknown", "attacker: B_line", "attacker: Meander"]
    names += [f"first host {HOSTS[USER0 + i]}" for i in range(ENTRY_HOSTS)]
    names += _at_least("hosts touched", range(1, len(HOSTS) + 1))
    names += [name for ago in range(HISTORY) for name in _step_names(ago)]
    return names + [f"allowed: {action}" for action in EXPERT_ACTION_NAMES]
