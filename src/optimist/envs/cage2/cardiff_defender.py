"""CardiffDefender: networks behind the Cardiff interface as a defender of the original game.

The 62 inputs and the marks of placed decoys are kept here from observations and actions alone, as an agent in the
original has to. `CardiffVectorEnv` keeps the same, compiled, for training.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from optimist.envs.cage2.actions import HOST_OF, RESTORE, SLEEP, VERB_OF
from optimist.envs.cage2.cardiff import DECISION_OF_FINGERPRINT, LIST_LENGTHS, fall_back, fingerprint
from optimist.envs.cage2.cardiff_rules import (
    DECOY_HOSTS,
    DECOY_ORDER,
    DIRECT_OUTPUTS,
    EARLIER,
    FIRST_DECOY,
    LATEST,
    NUM_SCANS,
    OPENING,
    SCAN_HOSTS,
    SLEEP_OUTPUT,
)
from optimist.envs.cage2.defender import Logits, choose
from optimist.envs.cage2.state import B_LINE, MEANDER, NUM_BITS, REDS
from optimist.errors import ConfigError

_FLAT: Final = np.array([*DIRECT_OUTPUTS, *[SLEEP] * len(DECOY_HOSTS), SLEEP])
"""Flat actions of the outputs that are no decoys."""
_ORDER: Final = np.array([[*order, *[order[0]] * (4 - len(order))] for order in DECOY_ORDER])
_RESTORED: Final = np.array(
    [DECOY_HOSTS.index(HOST_OF[a]) if VERB_OF[a] == RESTORE else -1 for a in DIRECT_OUTPUTS] + [-1] * 10
)
"""The decoy list whose marks an output clears, or −1."""


class CardiffInterface:
    """What the Cardiff agent remembers of N games: its scan memory and the decoys it has issued."""

    def __init__(self, num_games: int) -> None:
        self.scans = np.zeros((num_games, NUM_SCANS), np.int8)
        self.placed = np.zeros((num_games, len(DECOY_HOSTS)), np.int64)

    def inputs(self, observations: NDArray[np.int8]) -> NDArray[np.int8]:
        """The 62 inputs [N, 62]; the first host that shows exactly Scan becomes the most recent one."""
        activity = observations.reshape(len(observations), -1, 4)[:, SCAN_HOSTS, :2]
        scanned = (activity[..., 0] == 1) & (activity[..., 1] == 0)
        games = np.flatnonzero(scanned.any(axis=1))
        self.scans[games] = np.minimum(self.scans[games], EARLIER)
        self.scans[games, scanned[games].argmax(axis=1)] = LATEST
        return np.concatenate([observations, self.scans], axis=1)

    def free_decoys(self) -> NDArray[np.bool_]:
        """Whether the list behind each decoy output 27..35 still has an entry [N, 9]."""
        return self.placed < LIST_LENGTHS

    def play(self, outputs: NDArray[np.int64]) -> NDArray[np.int64]:
        """The flat actions [N] of the outputs (`SLEEP_OUTPUT` sleeps); marks decoys, and a Restore clears marks."""
        flat = _FLAT[outputs]
        games = np.flatnonzero((outputs >= FIRST_DECOY) & (outputs < SLEEP_OUTPUT))
        lists = outputs[games] - FIRST_DECOY
        placed = self.placed[games, lists]
        free = placed < LIST_LENGTHS[lists]
        flat[games] = _ORDER[lists, np.where(free, placed, 0)]
        self.placed[games, lists] = placed + free
        restored = np.flatnonzero(_RESTORED[outputs] >= 0)
        self.placed[restored, _RESTORED[outputs[restored]]] = 0
        return flat


class CardiffDefender:
    """One network for all attackers, or one expert each with the Cardiff agent's fingerprint to choose between them.

    Experts (`REDS` index → network, at least B_line and Meander) play behind the fixed opening; at the fourth decision
    the scan memory says who attacks. Without an expert for it, a sleeping attacker is answered by sleep.
    """

    def __init__(
        self, networks: Logits | Mapping[int, Logits], *, opening: bool = True, table: str = "cardiff"
    ) -> None:
        self.fingerprints = isinstance(networks, Mapping)
        self.networks = dict(networks) if isinstance(networks, Mapping) else {0: networks}
        self.opening, self.table = opening, table
        if self.fingerprints and not (opening and {B_LINE, MEANDER} <= self.networks.keys()):
            given = ", ".join(REDS[red] for red in self.networks) or "none"
            raise ConfigError(
                "experts need the opening and one network each for B_line and Meander; "
                f"got {given} {'with' if opening else 'without'} the opening"
            )
        self.reset(0)

    def reset(self, num_games: int) -> None:
        """So many new games begin."""
        self.interface = CardiffInterface(num_games)
        self.steps = 0
        self.attackers = np.zeros(num_games, np.int64)

    def act(self, observations: NDArray[np.int8], *, greedy: bool, generator: np.random.Generator) -> NDArray[np.int64]:
        """The opening, then the chosen network's output; where its decoy list is used up, the next best."""
        inputs = self.interface.inputs(observations)
        if self.opening and self.steps < len(OPENING):
            outputs = np.full(len(observations), OPENING[self.steps])
        else:
            if self.fingerprints and self.steps == DECISION_OF_FINGERPRINT:
                self.attackers = fingerprint(inputs[:, NUM_BITS:])
            outputs = self._outputs(inputs, greedy, generator)
        self.steps += 1
        return self.interface.play(outputs)

    def _outputs(self, inputs: NDArray[np.int8], greedy: bool, generator: np.random.Generator) -> NDArray[np.int64]:
        outputs = np.full(len(inputs), SLEEP_OUTPUT)
        free: NDArray[Any] = self.interface.free_decoys()
        for attacker, network in self.networks.items():
            games = np.flatnonzero(self.attackers == attacker)
            if len(games):
                logits = network(inputs[games])
                chosen = choose(logits, greedy=greedy, generator=generator)
                outputs[games] = fall_back(chosen, logits, free[games])
        return outputs
