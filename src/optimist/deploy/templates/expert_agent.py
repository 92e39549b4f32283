"""A defender for CAGE Challenge 2 (CybORG), exported by optimist: needs numpy and `weights.npz` beside it, no more.

    agent = BlueAgent()
    action = agent.get_action(observation, action_space)    # 52 numbers of the challenge's wrapper → 0..144
    agent.end_episode()

It remembers what each host showed and what it did there, and plays the best of the actions that can be of use.
"""

from __future__ import annotations

import copy
import json
import os
from types import SimpleNamespace
from typing import Any

import numpy as np

# rules begin
from optimist.envs.cage2.expert_features import NUM_ACTOR_BITS, NUM_FEATURES
from optimist.envs.cage2.expert_kernels import write_actor_bits
from optimist.envs.cage2.expert_memory import FRESH_EXPERT_MEMORY, remember, take_action

# rules end


class BlueAgent:
    """Plays the most probable action; with `greedy=False` it draws one."""

    def __init__(self, weights: str | None = None, greedy: bool = True, seed: int | None = None) -> None:
        path = weights or os.path.join(os.path.dirname(os.path.abspath(__file__)), "weights.npz")
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        self.settings = json.loads(str(arrays["settings"]))
        self.layers = [
            (arrays[f"policy.{i}.weight"], arrays[f"policy.{i}.bias"]) for i in range(self.settings["layers"])
        ]
        self.greedy = greedy
        self.random = np.random.default_rng(seed)
        self.begun = False
        self.end_episode()

    def get_action(self, observation: Any, action_space: Any = None) -> int:
        """The flat index of the action, 0..144."""
        bits = np.asarray(observation).reshape(-1).astype(int).tolist()
        if self.begun:
            remember(self.memory, bits)
        self.begun = True
        row = np.zeros(NUM_ACTOR_BITS, dtype=np.float32)
        write_actor_bits(self.memory, bits, self.settings["shows_mask"], row)
        logits = network(self.layers, row, self.settings["activation"])
        if self.settings["obeys_mask"]:
            logits = np.where(row[NUM_FEATURES:] == 1, logits, -np.inf)
        action = int(np.argmax(logits if self.greedy else logits + self.random.gumbel(size=logits.shape)))
        return int(take_action(self.memory, action))

    def end_episode(self) -> None:
        """Forget the episode."""
        self.memory: Any = SimpleNamespace(**copy.deepcopy(FRESH_EXPERT_MEMORY))
        self.begun = False

    def set_initial_values(self, action_space: Any, observation: Any) -> None:
        """A new episode begins."""
        self.end_episode()

    def train(self, results: Any) -> None:
        """It has been trained already."""


def network(layers: list[Any], inputs: Any, activation: str) -> Any:
    """Logits of one input vector; an activation between the layers, none at the end."""
    values = np.asarray(inputs, dtype=np.float32)
    for number, (weight, bias) in enumerate(layers):
        values = weight @ values + bias
        if number < len(layers) - 1:
            values = np.maximum(values, 0.0) if activation == "relu" else np.tanh(values)
    return values
