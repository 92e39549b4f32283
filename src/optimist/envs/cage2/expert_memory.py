"""What the expert interface remembers of one game: from the 52 bits, blue's own actions and time, nothing else.

Times are numbers of steps, counted from 1 and 0 for never. Blue acts before red within a step, so what happened at the
same time as a Restore happened after it. The functions are compiled into the environment and into the defender alike.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from optimist.envs.cage2.compiled import rule
from optimist.envs.cage2.expert_actions import (
    ACTION_SLOT,
    DECOY_FLAT,
    DO_ANALYSE,
    DO_DECOY,
    DO_REMOVE,
    DO_RESTORE,
    FIRST_ANALYSE,
    FIRST_DECOY,
    FIRST_REMOVE,
    FIRST_RESTORE,
    KIND_OF,
    LIST_LENGTH,
    NO_ACTION,
    NUM_EXPERT_ACTIONS,
    NUM_SLOTS,
    PLAIN_FLAT,
    SLOT_HOSTS,
    SLOT_OF,
)
from optimist.envs.cage2.network import NOWHERE, NUM_HOSTS, USER0

QUIET, AWAKE, LOOKS_B_LINE, LOOKS_MEANDER = range(4)
"""Who attacks: nobody so far; somebody; B_line; Meander. With a noisy green agent this is a guess."""
STEPS_TO_TELL: Final = 3
"""Both sweep, then scan a user host; then B_line exploits it while Meander scans another."""
HISTORY: Final = 6
"""Steps whose event and action are remembered as such."""
MOST: Final = 100
"""Counts stop here."""

EXPERT_MEMORY: Final = np.dtype(
    [
        ("steps", np.int32),
        ("attacker", np.int8),
        ("first_host", np.int8),  # the first host that showed activity, B_line's X; NOWHERE before
        ("event_at", np.int32),  # the last step in which any host showed activity
        ("num_touched", np.int8),  # hosts that have shown activity
        # per host
        ("scans", np.int8, NUM_HOSTS),  # times it showed Scan
        ("alarms", np.int8, NUM_HOSTS),  # times it showed Exploit
        ("scan_at", np.int32, NUM_HOSTS),
        ("alarm_at", np.int32, NUM_HOSTS),
        # per slot
        ("fresh_alarms", np.int8, NUM_SLOTS),  # alarms since the last Restore
        ("analysed_at", np.int32, NUM_SLOTS),
        ("removed_at", np.int32, NUM_SLOTS),
        ("restored_at", np.int32, NUM_SLOTS),
        ("found_at", np.int32, NUM_SLOTS),  # when Analyse found a file that is still there
        ("placed", np.int8, NUM_SLOTS),  # decoys now
        ("placed_at_first_scan", np.int8, NUM_SLOTS),
        ("placed_at_last_scan", np.int8, NUM_SLOTS),
        ("most_placed_at_scans", np.int8, NUM_SLOTS),
        # the last steps, newest first
        ("event_hosts", np.int8, HISTORY),  # NOWHERE for none
        ("event_alarms", np.int8, HISTORY),  # whether it was an alarm
        ("actions", np.int8, HISTORY),  # NO_ACTION before the first
    ],
    align=True,
)


def _fresh_memory() -> Any:
    memory = np.zeros(1, EXPERT_MEMORY)
    memory["first_host"] = NOWHERE
    memory["event_hosts"] = NOWHERE
    memory["actions"] = NO_ACTION
    return memory


FRESH_EXPERT_MEMORY: Final = _fresh_memory()


@rule
def take_action(memory: Any, action: int) -> int:
    """The flat action to play, remembered as blue's next one; a decoy beyond the end of its list is a Sleep."""
    flat: int = PLAIN_FLAT[action] if action < FIRST_DECOY else 0
    kind, slot, now = KIND_OF[action], ACTION_SLOT[action], memory.steps + 1
    if kind == DO_ANALYSE:
        memory.analysed_at[slot] = now
    elif kind == DO_REMOVE:
        memory.removed_at[slot] = now
    elif kind == DO_RESTORE:
        memory.restored_at[slot] = now
        memory.fresh_alarms[slot] = 0
        memory.found_at[slot] = 0
        memory.placed[slot] = 0
    elif kind == DO_DECOY and memory.placed[slot] < LIST_LENGTH[slot]:
        flat = DECOY_FLAT[slot, memory.placed[slot]]
        memory.placed[slot] += 1
    for i in range(HISTORY - 1, 0, -1):
        memory.actions[i] = memory.actions[i - 1]
    memory.actions[0] = action
    return flat


@rule
def remember(memory: Any, bits: Any) -> None:
    """The step is over and the 52 bits are these."""
    memory.steps += 1
    for i in range(HISTORY - 1, 0, -1):
        memory.event_hosts[i] = memory.event_hosts[i - 1]
        memory.event_alarms[i] = memory.event_alarms[i - 1]
    memory.event_hosts[0] = NOWHERE
    memory.event_alarms[0] = 0
    for host in range(NUM_HOSTS):
        if bits[4 * host] == 1:
            _remember_event(memory, host, bits[4 * host + 1] == 1)
    action = memory.actions[0]
    if KIND_OF[action] == DO_ANALYSE:
        slot = ACTION_SLOT[action]
        host = SLOT_HOSTS[slot]
        if bits[4 * host + 2] == 1 and bits[4 * host + 3] == 1:
            memory.found_at[slot] = memory.steps
    _judge_attacker(memory)


@rule
def _remember_event(memory: Any, host: int, alarm: bool) -> None:
    slot = SLOT_OF[host]
    if memory.scans[host] + memory.alarms[host] == 0:
        memory.num_touched += 1
        if memory.first_host == NOWHERE:
            memory.first_host = host
        if slot >= 0:
            memory.placed_at_first_scan[slot] = memory.placed[slot]
    memory.event_at = memory.steps
    memory.event_hosts[0] = host
    memory.event_alarms[0] = alarm
    if alarm:
        memory.alarm_at[host] = memory.steps
        memory.alarms[host] = min(memory.alarms[host] + 1, MOST)
        if slot >= 0:
            memory.fresh_alarms[slot] = min(memory.fresh_alarms[slot] + 1, MOST)
    else:
        memory.scan_at[host] = memory.steps
        memory.scans[host] = min(memory.scans[host] + 1, MOST)
        if slot >= 0:
            memory.placed_at_last_scan[slot] = memory.placed[slot]
            memory.most_placed_at_scans[slot] = max(memory.most_placed_at_scans[slot], memory.placed[slot])


@rule
def _judge_attacker(memory: Any) -> None:
    """Meander scans several user hosts, User0 among them, before it exploits one; B_line begins with one of User1–4."""
    if memory.attacker <= AWAKE and memory.event_at > 0:
        if memory.first_host == USER0 or memory.num_touched > 1:
            memory.attacker = LOOKS_MEANDER
        elif memory.steps >= STEPS_TO_TELL:
            memory.attacker = LOOKS_B_LINE
        else:
            memory.attacker = AWAKE


@rule
def last_event_at(memory: Any, slot: int) -> int:
    """When a slot's host last showed activity of any kind."""
    host = SLOT_HOSTS[slot]
    time: int = max(memory.scan_at[host], memory.alarm_at[host])
    return time


@rule
def happened_since(time: int, since: int) -> bool:
    """Whether red did it at all, and not before blue did the other thing."""
    return time > 0 and time >= since


@rule
def write_mask(memory: Any, row: Any) -> None:
    """Which actions can be of use, 1 or 0 for each: row [A].

    Sleep always can. Analyse: after activity since the last Analyse and Restore, until a file is found. Remove: after
    an alarm since the last Remove and Restore, for only sessions that raised one can be removed. Restore: once somebody
    attacks, on hosts that showed activity since their last Restore or were never restored; so while red sleeps blue
    pays nothing. Decoy: while one of the list is left.
    """
    row[0] = 1
    for slot in range(NUM_SLOTS):
        restored = memory.restored_at[slot]
        event = last_event_at(memory, slot)
        alarm = memory.alarm_at[SLOT_HOSTS[slot]]
        row[FIRST_ANALYSE + slot] = (
            happened_since(event, max(restored, memory.analysed_at[slot])) and memory.found_at[slot] == 0
        )
        row[FIRST_REMOVE + slot] = happened_since(alarm, max(restored, memory.removed_at[slot]))
        row[FIRST_RESTORE + slot] = memory.attacker != QUIET and (restored == 0 or happened_since(event, restored))
    for action in range(FIRST_DECOY, NUM_EXPERT_ACTIONS):
        slot = ACTION_SLOT[action]
        row[action] = memory.placed[slot] < LIST_LENGTH[slot]
