"""A defender for CAGE Challenge 2 (CybORG), exported by optimist: needs numpy and `weights.npz` beside it, no more.

    agent = BlueAgent()
    action = agent.get_action(observation, action_space)    # 52 numbers of the challenge's wrapper → 0..144
    agent.end_episode()

It plays through the interface of the Cardiff agent: 36 outputs of which nine place the next decoy of a list, a memory
of scans, and (where it was trained so) three fixed opening decoys. With experts the scans seen by then say who attacks.
"""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np

SLEEP = 0
OUTPUTS = [
    *(133, 134, 135, 139),
    *(3, 4, 5, 9),
    *(16, 17, 18, 22),
    *(11, 12, 13, 14),
    *(141, 142, 143, 144),
    *(132, 2, 15),
    *(24, 25, 26, 27),
]
"""Flat actions of the outputs 0..26: Restore, Analyse and Remove."""
FIRST_RESTORE = 132
DECOYS = {  # host number: its decoys as flat actions, in order; outputs 27..35
    1: [55, 107, 120, 29],
    2: [43],
    3: [44],
    9: [37, 115, 76, 102],
    10: [51, 116, 38, 90],
    11: [130, 91],
    12: [131],
    0: [54, 106, 28, 119],
    7: [61, 35, 113, 126],
}
DECOY_HOSTS = list(DECOYS)
SLEEP_OUTPUT = len(OUTPUTS) + len(DECOYS)
"""What some networks have besides: an output that sleeps."""
SCAN_HOSTS = [0, 1, 2, 3, 7, 8, 9, 10, 11, 12]
OPENING = [31, 31, 27]
ATTACKER_OF_SUM = {2: "B_line", 3: "Meander"}
"""Sum of the scan memory after the opening → who attacks; anything else is a sleeping attacker."""


class BlueAgent:
    """Plays the most probable output; with `greedy=False` it draws one."""

    def __init__(self, weights: str | None = None, greedy: bool = True, seed: int | None = None) -> None:
        path = weights or os.path.join(os.path.dirname(os.path.abspath(__file__)), "weights.npz")
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        self.settings = json.loads(str(arrays["settings"]))
        self.networks = {
            name: [(arrays[f"{name}.{i}.weight"], arrays[f"{name}.{i}.bias"]) for i in range(count)]
            for name, count in self.settings["networks"].items()
        }
        self.greedy = greedy
        self.random = np.random.default_rng(seed)
        self.end_episode()

    def get_action(self, observation: Any, action_space: Any = None) -> int:
        """The flat index of the action, 0..144."""
        observation = np.asarray(observation, dtype=np.float32).reshape(-1)
        self.remember_scan(observation)
        if self.settings["opening"] and self.step < len(OPENING):
            output: int | None = OPENING[self.step]
        else:
            if self.settings["experts"] and self.step == len(OPENING):
                self.player = ATTACKER_OF_SUM.get(int(self.scans.sum()), "Sleep")
            output = self.choose(np.concatenate([observation, self.scans]))
        self.step += 1
        return SLEEP if output is None else self.play(output)

    def end_episode(self) -> None:
        """Forget the episode."""
        self.step = 0
        self.scans = np.zeros(len(SCAN_HOSTS), dtype=np.float32)
        self.placed = dict.fromkeys(DECOYS, 0)
        self.player = "policy"

    def set_initial_values(self, action_space: Any, observation: Any) -> None:
        """A new episode begins."""
        self.end_episode()

    def train(self, results: Any) -> None:
        """It has been trained already."""

    def remember_scan(self, observation: Any) -> None:
        """0 never scanned, 1 earlier, 2 most recently; of several hosts that show a scan only the first counts."""
        for place, host in enumerate(SCAN_HOSTS):
            if observation[4 * host] == 1 and observation[4 * host + 1] == 0:
                self.scans = np.minimum(self.scans, 1)
                self.scans[place] = 2
                return

    def choose(self, inputs: Any) -> int | None:
        """An output of the network; instead of a decoy whose list is used up, the next best that is no Restore."""
        if self.player not in self.networks:
            return None
        logits = network(self.networks[self.player], inputs, self.settings["activations"][self.player])
        output = int(np.argmax(logits if self.greedy else logits + self.random.gumbel(size=logits.shape)))
        if self.useful(output) or output < len(OUTPUTS):
            return output
        return max((other for other in range(len(logits)) if self.useful(other)), key=lambda other: logits[other])

    def useful(self, output: int) -> bool:
        """Whether an output can stand in: a decoy that is left, an Analyse, a Remove or sleep."""
        if output < len(OUTPUTS):
            return OUTPUTS[output] < FIRST_RESTORE
        if output == SLEEP_OUTPUT:
            return True
        host = DECOY_HOSTS[output - len(OUTPUTS)]
        return self.placed[host] < len(DECOYS[host])

    def play(self, output: int) -> int:
        """The flat action of an output; marks a decoy as placed, and a Restore clears the marks of its host."""
        if output < len(OUTPUTS):
            action = OUTPUTS[output]
            if action >= FIRST_RESTORE:
                self.placed[action - FIRST_RESTORE] = 0
            return action
        if output == SLEEP_OUTPUT:
            return SLEEP
        host = DECOY_HOSTS[output - len(OUTPUTS)]
        number = self.placed[host]
        if number == len(DECOYS[host]):
            return DECOYS[host][0]
        self.placed[host] = number + 1
        return DECOYS[host][number]


def network(layers: list[Any], inputs: Any, activation: str) -> Any:
    """Logits of one input vector; an activation between the layers, none at the end."""
    values = np.asarray(inputs, dtype=np.float32)
    for number, (weight, bias) in enumerate(layers):
        values = weight @ values + bias
        if number < len(layers) - 1:
            values = np.maximum(values, 0.0) if activation == "relu" else np.tanh(values)
    return values
