"""Memory of one game for the expert interface, computed only from the 52 bits, blue's own actions and time.

Times are step numbers from 1; 0 means never. Blue acts before red within a step, so an event with the time of a Restore
happened after it. The environment, the defender and the exported agent share these functions.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from cage2.expert.actions import (
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
from cage2.rules.compile import rule
from cage2.rules.scenario import NOWHERE, NUM_HOSTS, USER0

NO_ATTACKER, UNKNOWN_ATTACKER, LOOKS_B_LINE, LOOKS_MEANDER = range(4)
"""The attacker, inferred from its first events; unreliable with an active green agent."""
STEPS_TO_IDENTIFY: Final = 3
"""Both attackers sweep, then scan a user host; then B_line exploits it and Meander scans another."""
HISTORY: Final = 6
"""Number of last steps whose event and action are kept."""
MAX_COUNT: Final = 100

EXPERT_MEMORY: Final = np.dtype(
    [
        ("steps", np.int32),
        ("attacker", np.int8),
        ("first_host", np.int8),  # first host with activity (B_line's X), or NOWHERE
        ("event_at", np.int32),  # last step with activity on any host
        ("num_touched", np.int8),  # number of hosts with activity so far
        # per host
        ("scans", np.int8, NUM_HOSTS),  # number of steps with Scan
        ("alarms", np.int8, NUM_HOSTS),  # number of steps with Exploit
        ("scan_at", np.int32, NUM_HOSTS),
        ("alarm_at", np.int32, NUM_HOSTS),
        # per slot
        ("fresh_alarms", np.int8, NUM_SLOTS),  # alarms since the last Restore
        ("analysed_at", np.int32, NUM_SLOTS),
        ("removed_at", np.int32, NUM_SLOTS),
        ("restored_at", np.int32, NUM_SLOTS),
        ("found_at", np.int32, NUM_SLOTS),  # when Analyse found a file, until the next Restore
        ("placed", np.int8, NUM_SLOTS),  # number of decoys
        ("placed_at_first_scan", np.int8, NUM_SLOTS),
        ("placed_at_last_scan", np.int8, NUM_SLOTS),
        ("most_placed_at_scans", np.int8, NUM_SLOTS),
        # last steps, newest first
        ("event_hosts", np.int8, HISTORY),  # NOWHERE for none
        ("event_alarms", np.int8, HISTORY),  # whether it was an Exploit
        ("actions", np.int8, HISTORY),  # NO_ACTION before the first
    ],
    align=True,
)


MEMORY_RANGES: Final = {
    **dict.fromkeys(("steps", "event_at", "scan_at", "alarm_at"), (0, 2**31 - 2)),
    **dict.fromkeys(("analysed_at", "removed_at", "restored_at", "found_at"), (0, 2**31 - 2)),
    **dict.fromkeys(("scans", "alarms", "fresh_alarms"), (0, MAX_COUNT)),
    **dict.fromkeys(
        ("placed", "placed_at_first_scan", "placed_at_last_scan", "most_placed_at_scans"), (0, int(LIST_LENGTH.max()))
    ),
    **dict.fromkeys(("first_host", "event_hosts"), (0, NOWHERE)),
    "attacker": (0, LOOKS_MEANDER),
    "num_touched": (0, NUM_HOSTS),
    "event_alarms": (0, 1),
    "actions": (NO_ACTION, NUM_EXPERT_ACTIONS - 1),
}
"""Field of a memory → its smallest and largest value."""


def _fresh_memory() -> Any:
    memory = np.zeros(1, EXPERT_MEMORY)
    memory["first_host"] = NOWHERE
    memory["event_hosts"] = NOWHERE
    memory["actions"] = NO_ACTION
    return memory


FRESH_EXPERT_MEMORY: Final = _fresh_memory()


@rule
def take_action(memory: Any, action: int) -> int:
    """Record blue's next action and return it as a flat action; Sleep for a decoy after the end of its list."""
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
    """Update the memory with the 52 bits after a step."""
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
    _identify_attacker(memory)


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
        memory.alarms[host] = min(memory.alarms[host] + 1, MAX_COUNT)
        if slot >= 0:
            memory.fresh_alarms[slot] = min(memory.fresh_alarms[slot] + 1, MAX_COUNT)
    else:
        memory.scan_at[host] = memory.steps
        memory.scans[host] = min(memory.scans[host] + 1, MAX_COUNT)
        if slot >= 0:
            memory.placed_at_last_scan[slot] = memory.placed[slot]
            memory.most_placed_at_scans[slot] = max(memory.most_placed_at_scans[slot], memory.placed[slot])


@rule
def _identify_attacker(memory: Any) -> None:
    """Meander scans several user hosts, also User0, before it exploits one; B_line attacks one of User1–4 first."""
    if memory.attacker <= UNKNOWN_ATTACKER and memory.event_at > 0:
        if memory.first_host == USER0 or memory.num_touched > 1:
            memory.attacker = LOOKS_MEANDER
        elif memory.steps >= STEPS_TO_IDENTIFY:
            memory.attacker = LOOKS_B_LINE
        else:
            memory.attacker = UNKNOWN_ATTACKER


@rule
def last_event_at(memory: Any, slot: int) -> int:
    """Time of the last activity on a slot's host."""
    host = SLOT_HOSTS[slot]
    time: int = max(memory.scan_at[host], memory.alarm_at[host])
    return time


@rule
def happened_since(time: int, since: int) -> bool:
    """Return whether red's event at `time` happened, and not before blue's action at `since`."""
    return time > 0 and time >= since


@rule
def write_mask(memory: Any, row: Any) -> None:
    """Write which actions can be useful, 1 or 0 for each: row [A].

    Sleep: always. Analyse: after activity since the last Analyse and Restore, until a file is found. Remove: after an
    alarm since the last Remove and Restore, because only sessions with an alarm can be removed. Restore: after the
    first sign of an attack, on hosts with activity since their last Restore or never restored; so blue loses nothing
    while red sleeps. Decoy: while its list has one left.
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
        row[FIRST_RESTORE + slot] = memory.attacker != NO_ATTACKER and (
            restored == 0 or happened_since(event, restored)
        )
    for action in range(FIRST_DECOY, NUM_EXPERT_ACTIONS):
        slot = ACTION_SLOT[action]
        row[action] = memory.placed[slot] < LIST_LENGTH[slot]
