"""Agents of this package by name: `best`, described in BEST.md next to this file, and three simple ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from cage2.agents.defender import Defender, PolicyDefender
from cage2.errors import unknown_name
from cage2.expert.env import ExpertDefender
from cage2.rules.scenario import MONITOR, NUM_ACTIONS, RESTORE, SLEEP, USER0, flat_action
from cage2.rules.state import RULES

FOLDER: Final = Path(__file__).parent


class ReluNetwork:
    """A multilayer perceptron with ReLU between its layers, each a weight [out, in] and a bias [out]."""

    def __init__(self, layers: list[tuple[NDArray[np.float32], NDArray[np.float32]]]) -> None:
        self.layers = layers

    def __call__(self, rows: NDArray[np.int8]) -> NDArray[np.float32]:
        """Logits [N, A]."""
        values = rows.astype(np.float32)
        for number, (weight, bias) in enumerate(self.layers):
            values = (values if number == 0 else np.maximum(values, 0.0)) @ weight.T + bias
        return values


def weights_file(rules: str) -> Path:
    """Weights of `best` for a rule set."""
    if rules not in RULES:
        raise unknown_name("rule set", rules, RULES)
    return FOLDER / f"best-{rules}.npz"


def origin_of(rules: str) -> dict[str, str]:
    """The training that the weights come from: preset, rules, seed, total_steps."""
    with np.load(weights_file(rules), allow_pickle=False) as arrays:
        origin: dict[str, str] = json.loads(str(arrays["origin"]))
        return origin


def save_weights(rules: str, layers: list[tuple[NDArray[Any], NDArray[Any]]], origin: dict[str, str]) -> Path:
    """Store the layers of a new `best` in half precision, with their origin."""
    arrays: dict[str, NDArray[Any]] = {"origin": np.array(json.dumps(origin))}
    for number, (weight, bias) in enumerate(layers):
        arrays |= {f"{number}.weight": weight.astype(np.float16), f"{number}.bias": bias}
    np.savez_compressed(weights_file(rules), **arrays)  # type: ignore[arg-type]
    return weights_file(rules)


def load_best(rules: str) -> ExpertDefender:
    """`best`: the strongest defender, one policy per rule set, trained with the `official` table."""
    with np.load(weights_file(rules), allow_pickle=False) as arrays:
        count = sum(name.endswith(".weight") for name in arrays.files)
        layers = [(arrays[f"{i}.weight"].astype(np.float32), arrays[f"{i}.bias"]) for i in range(count)]
    return ExpertDefender(ReluNetwork(layers))


class RandomDefender:
    """Takes every action with the same probability."""

    table = "official"

    def reset(self, num_games: int) -> None:
        """Do nothing: there is no memory."""

    def act(self, observations: NDArray[np.int8], *, greedy: bool, generator: np.random.Generator) -> NDArray[np.int64]:
        """Random actions [N]."""
        return generator.integers(NUM_ACTIONS, size=len(observations))


class ReactDefender:
    """Restores the first host other than User0 with the status User or Privileged, else monitors."""

    table = "official"

    def reset(self, num_games: int) -> None:
        """Do nothing: there is no memory."""

    def act(self, observations: NDArray[np.int8], *, greedy: bool, generator: np.random.Generator) -> NDArray[np.int64]:
        """A Restore or Monitor for each game [N]."""
        alarmed = observations[:, 3::4] == 1
        alarmed[:, USER0] = False
        return np.where(alarmed.any(axis=1), flat_action(RESTORE, 0) + alarmed.argmax(axis=1), MONITOR)


def asleep(observations: NDArray[np.int8]) -> NDArray[np.float32]:
    """Logits of an agent that always sleeps."""
    return np.eye(1, NUM_ACTIONS, SLEEP, dtype=np.float32).repeat(len(observations), 0) * 1e3


SHIPPED_AGENTS: dict[str, Callable[[str], Defender]] = {
    "best": load_best,
    "react": lambda rules: ReactDefender(),
    "random": lambda rules: RandomDefender(),
    "sleep": lambda rules: PolicyDefender(asleep),
}
"""Name → function from a rule set (`final` or `competition`) to the agent."""


def load_agent(name: str, rules: str) -> Defender:
    """Load the shipped agent of this name for a rule set."""
    if name not in SHIPPED_AGENTS:
        raise unknown_name("agent", name, SHIPPED_AGENTS)
    return SHIPPED_AGENTS[name](rules)
