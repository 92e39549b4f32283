"""A defender for CAGE Challenge 2 (CybORG), exported by optimist: needs numpy and `weights.npz` beside it, no more.

agent = BlueAgent()
action = agent.get_action(observation, action_space)    # 52 numbers of the challenge's wrapper → 0..144
agent.end_episode()
"""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np


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

    def get_action(self, observation: Any, action_space: Any = None) -> int:
        """The flat index of the action, 0..144."""
        logits = network(self.layers, observation, self.settings["activation"])
        return int(np.argmax(logits if self.greedy else logits + self.random.gumbel(size=logits.shape)))

    def end_episode(self) -> None:
        """Nothing is remembered, so nothing is forgotten."""

    def set_initial_values(self, action_space: Any, observation: Any) -> None:
        """A new episode begins."""
        self.end_episode()

    def train(self, results: Any) -> None:
        """It has been trained already."""


def network(layers: list[Any], inputs: Any, activation: str) -> Any:
    """Logits of one input vector; an activation between the layers, none at the end."""
    values = np.asarray(inputs, dtype=np.float32).reshape(-1)
    for number, (weight, bias) in enumerate(layers):
        values = weight @ values + bias
        if number < len(layers) - 1:
            values = np.maximum(values, 0.0) if activation == "relu" else np.tanh(values)
    return values
