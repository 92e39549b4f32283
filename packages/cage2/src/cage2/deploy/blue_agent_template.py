"""A defender for CAGE Challenge 2 (CybORG), exported by cage2; needs NumPy, and `weights.npz` in the same folder.

agent = BlueAgent()
action = agent.get_action(observation, action_space)    # 52 numbers of the challenge's wrapper → 0..144
agent.end_episode()
"""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np

# begin of exported class
from cage2.agents.defender import PolicyDefender as Defender

# end of exported class


class BlueAgent:
    """Takes the most probable action; with `greedy=False` a sample."""

    def __init__(self, weights: str | None = None, greedy: bool = True, seed: int | None = None) -> None:
        path = weights or os.path.join(os.path.dirname(os.path.abspath(__file__)), "weights.npz")
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        settings = json.loads(str(arrays["settings"]))
        networks: Any = {
            int(name): Network([(arrays[f"{name}.{i}.weight"], arrays[f"{name}.{i}.bias"]) for i in range(count)], relu)
            for name, (count, relu) in settings["networks"].items()
        }
        self.defender = Defender(networks if settings["specialists"] else networks[0], **settings["defender"])
        self.greedy = greedy
        self.random = np.random.default_rng(seed)
        self.end_episode()

    def get_action(self, observation: Any, action_space: Any = None) -> int:
        """Return the flat index of an action, 0..144."""
        bits = np.asarray(observation).reshape(1, -1).astype(np.int8)
        return int(self.defender.act(bits, greedy=self.greedy, generator=self.random)[0])

    def end_episode(self) -> None:
        """Clear the memory of the episode."""
        self.defender.reset(1)

    def set_initial_values(self, action_space: Any, observation: Any) -> None:
        """Start a new episode."""
        self.end_episode()

    def train(self, results: Any) -> None:
        """Do nothing: the agent is already trained."""


class Network:
    """Linear layers, each a weight [out, in] and a bias [out], with ReLU or tanh between them."""

    def __init__(self, layers: list[Any], relu: bool) -> None:
        self.layers, self.relu = layers, relu

    def __call__(self, rows: Any) -> Any:
        """Inputs [N, I] → logits [N, A]."""
        values = rows.astype(np.float32)
        for number, (weight, bias) in enumerate(self.layers):
            if number > 0:
                values = np.maximum(values, 0.0) if self.relu else np.tanh(values)
            values = values @ weight.T + bias
        return values
