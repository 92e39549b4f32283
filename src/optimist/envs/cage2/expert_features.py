"""The memory of one game as bits for a network, and the true state as bits for its critic."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from optimist.envs.cage2.compiled import rule
from optimist.envs.cage2.expert_actions import (
    ACTION_SLOT,
    KIND_OF,
    LIST_LENGTH,
    NUM_EXPERT_ACTIONS,
    NUM_KINDS,
    NUM_SLOTS,
    SLOT_HOSTS,
    SLOTS,
)
from optimist.envs.cage2.expert_memory import HISTORY, happened_since, last_event_at
from optimist.envs.cage2.network import NOWHERE, NUM_HOSTS, USER0, USER1, USER4, hosts
from optimist.envs.cage2.red import TOP
from optimist.envs.cage2.state import B_LINE, MEANDER

AGES: Final = np.array([1, 2, 3, 5, 9, 16])
"""An age is a row of bits "at most so many steps ago"; 1 is the step just played."""
FEW_AGES: Final = np.array([1, 3, 9])
"""The same for what the last actions tell already."""
COUNTS: Final = np.array([1, 2, 4])
"""A count is a row of bits "at least so many"."""
TIMES: Final = np.arange(5, 100, 5)
"""Steps played, as a row of bits "at least so many"."""
ENDS: Final = np.array([30, 50, 100])
"""The challenge is scored over these numbers of steps, and nobody says which: the next of them is what is near."""
LEFT: Final = np.array([1, 2, 3, 5, 8, 12])
"""Steps left to the next of `ENDS`, as a row of bits "at most so many"."""

OTHERS: Final = np.array([h for h in range(NUM_HOSTS) if h not in SLOTS])
"""Hosts that are only watched."""
ENTRY_HOSTS: Final = 5
"""User0–4, where red begins."""

SLOT_BITS: Final = 12 + 3 * len(AGES) + 2 * len(FEW_AGES) + 3 * len(COUNTS)
DECOY_BITS: Final = 4 * int(LIST_LENGTH.sum())
OTHER_BITS: Final = 4 + len(FEW_AGES)
GLOBAL_BITS: Final = len(TIMES) + len(LEFT) + len(AGES) + 3 + ENTRY_HOSTS + NUM_HOSTS
STEP_BITS: Final = NUM_HOSTS + 1 + NUM_KINDS + NUM_SLOTS
NUM_FEATURES: Final = NUM_SLOTS * SLOT_BITS + DECOY_BITS + len(OTHERS) * OTHER_BITS + GLOBAL_BITS + HISTORY * STEP_BITS
NUM_ACTOR_BITS: Final = NUM_FEATURES + NUM_EXPERT_ACTIONS
"""What a policy sees: the features, then the mask of actions."""

OPTION_BITS: Final = 8
HOST_SETS: Final = 12
NUM_TRUTH: Final = HOST_SETS * NUM_HOSTS + NUM_SLOTS * OPTION_BITS + 2 + 2 + 4 + 3 + 3 + (TOP + 1) + (USER4 - USER1 + 1)
"""What only the critic sees."""
NUM_EXPERT_BITS: Final = NUM_ACTOR_BITS + NUM_TRUTH

ATTACKERS: Final = 4
_ALL_HOSTS: Final = hosts(*range(NUM_HOSTS))


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
    """One defended host: what it shows now, what happened to it, when and how often, and its decoys."""
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
    """Time, the last event, who attacks, and where it began."""
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
    """All that is remembered of a game and the 52 bits it shows now: row [NUM_FEATURES]."""
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
def _write_hosts(row: Any, at: int, members: int) -> int:
    for host in range(NUM_HOSTS):
        row[at + host] = (members >> host) & 1
    return at + NUM_HOSTS


@rule
def write_truth(game: Any, row: Any) -> None:
    """What red holds, knows and is about to do: row [NUM_TRUTH]."""
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
    at = _write_one_of(row, at + 14, game.position, TOP + 1)
    _write_one_of(row, at, game.entry - USER1 if game.entry != NOWHERE else -1, USER4 - USER1 + 1)
