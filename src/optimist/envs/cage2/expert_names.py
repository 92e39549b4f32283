"""What each bit of the expert interface says, for people: names in the order in which the bits are written."""

from __future__ import annotations

from typing import Any

from optimist.envs.cage2.expert_actions import EXPERT_ACTION_NAMES, LIST_LENGTH, NUM_SLOTS, SLOTS
from optimist.envs.cage2.expert_features import AGES, COUNTS, ENTRY_HOSTS, FEW_AGES, LEFT, OTHERS, TIMES
from optimist.envs.cage2.expert_memory import HISTORY
from optimist.envs.cage2.network import HOSTS, USER0

_SLOT_STATES = (
    *("active", "exploited", "status 0", "status 1"),
    *("touched", "touched since Restore", "alarm since Restore", "alarm since Remove or Restore"),
    *("to be analysed", "file found", "restored", "removed since alarm"),
)
_DECOY_TIMES = ("now", "at first scan", "at last scan", "at any scan")


def _at_most(what: str, ages: Any) -> list[str]:
    return [f"{what} ≤ {age}" for age in ages]


def _at_least(what: str, counts: Any) -> list[str]:
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
    """The names of the `NUM_ACTOR_BITS` bits that a policy sees."""
    names = [name for slot in range(NUM_SLOTS) for name in _slot_names(slot)]
    names += [name for host in OTHERS for name in _other_names(int(host))]
    names += _at_least("steps", TIMES) + _at_most("steps left", LEFT) + _at_most("age of last event", AGES)
    names += ["attacker: somebody", "attacker: B_line", "attacker: Meander"]
    names += [f"began on {HOSTS[USER0 + i]}" for i in range(ENTRY_HOSTS)]
    names += _at_least("hosts touched", range(1, len(HOSTS) + 1))
    names += [name for ago in range(HISTORY) for name in _step_names(ago)]
    return names + [f"may {action}" for action in EXPERT_ACTION_NAMES]
