"""The 32 actions of the expert interface: the useful ones on the eight hosts worth defending, and Sleep."""

from __future__ import annotations

from typing import Final

import numpy as np

from cage2.rules.scenario import (
    ACTION_NAMES,
    ANALYSE,
    ENTERPRISE0,
    ENTERPRISE1,
    ENTERPRISE2,
    HOSTS,
    NUM_HOSTS,
    OP_SERVER0,
    REMOVE,
    RESTORE,
    SLEEP,
    USER1,
    USER2,
    USER3,
    USER4,
    flat_action,
)

SLOTS: Final = (ENTERPRISE0, ENTERPRISE1, ENTERPRISE2, OP_SERVER0, USER1, USER2, USER3, USER4)
"""The defended hosts. Red gains nothing on Defender and cannot lose User0; it reaches Op_Hosts only through Enterprise
hosts, and its goal is Op_Server0."""
NUM_SLOTS: Final = len(SLOTS)
SLOT_HOSTS: Final = np.array(SLOTS)
SLOT_OF: Final = np.array([SLOTS.index(h) if h in SLOTS else -1 for h in range(NUM_HOSTS)])

DECOY_LISTS: Final = (
    ("HarakaSMPT", "Tomcat", "Apache"),
    ("Femitter",),
    ("Femitter",),
    ("HarakaSMPT", "Tomcat", "Apache"),
    ("Apache", "Tomcat", "Smss", "Svchost"),
    ("Femitter", "Tomcat", "Apache", "SSHD"),
    ("SSHD",),
    (),  # User4 accepts only Vsftpd, on a port where its genuine service answers first
)
"""Decoys of each slot in order of placement, most attractive first; the host accepts all of them."""
MAX_DECOYS: Final = max(len(decoys) for decoys in DECOY_LISTS)
LIST_LENGTH: Final = np.array([len(decoys) for decoys in DECOY_LISTS])
DECOY_SLOTS: Final = tuple(slot for slot, decoys in enumerate(DECOY_LISTS) if decoys)

FIRST_ANALYSE: Final = 1
FIRST_REMOVE: Final = FIRST_ANALYSE + NUM_SLOTS
FIRST_RESTORE: Final = FIRST_REMOVE + NUM_SLOTS
FIRST_DECOY: Final = FIRST_RESTORE + NUM_SLOTS
NUM_EXPERT_ACTIONS: Final = FIRST_DECOY + len(DECOY_SLOTS)
NO_ACTION: Final = -1
"""Before the first action."""

DO_SLEEP, DO_ANALYSE, DO_REMOVE, DO_RESTORE, DO_DECOY = range(5)
NUM_KINDS: Final = 5
KIND_OF: Final = np.repeat(np.arange(NUM_KINDS), (1, NUM_SLOTS, NUM_SLOTS, NUM_SLOTS, len(DECOY_SLOTS)))
ACTION_SLOT: Final = np.array([0, *[*range(NUM_SLOTS)] * 3, *DECOY_SLOTS])
"""Slot of each action; unused for Sleep."""


def _flat_decoy(slot: int, index: int) -> int:
    decoys = DECOY_LISTS[slot]
    return ACTION_NAMES.index(f"Decoy{decoys[index]} {HOSTS[SLOTS[slot]]}") if index < len(decoys) else SLEEP


PLAIN_FLAT: Final = np.array(
    [SLEEP, *(flat_action(verb, host) for verb in (ANALYSE, REMOVE, RESTORE) for host in SLOTS)]
)
"""Flat actions of all actions but decoys."""
DECOY_FLAT: Final = np.array([[_flat_decoy(slot, index) for index in range(MAX_DECOYS)] for slot in range(NUM_SLOTS)])
"""Flat actions of the decoys: [slot, index in its list]."""


def expert_action_name(action: int) -> str:
    """Readable name; `Decoy User2` places the next decoy of User2's list."""
    kind = ("Sleep", "Analyse", "Remove", "Restore", "Decoy")[KIND_OF[action]]
    return kind if action == 0 else f"{kind} {HOSTS[SLOTS[ACTION_SLOT[action]]]}"


EXPERT_ACTION_NAMES: Final = tuple(expert_action_name(action) for action in range(NUM_EXPERT_ACTIONS))
