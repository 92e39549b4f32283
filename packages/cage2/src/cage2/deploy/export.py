"""Export to the original CAGE Challenge 2 (CybORG): one Python file that needs NumPy only, and weights as npz."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cage2.agents.defender import Defender, PolicyDefender, choose_action
from cage2.agents.shipped import ReluNetwork, load_agent
from cage2.cardiff import CardiffDefender
from cage2.deploy.function_source import source_of
from cage2.errors import Cage2Error, ConfigError
from cage2.expert.env import ExpertDefender
from cage2.expert.features import NUM_ACTOR_BITS, NUM_FEATURES, write_actor_bits
from cage2.expert.memory import FRESH_EXPERT_MEMORY, remember, take_action

TEMPLATE, AGENT, WEIGHTS = "blue_agent_template.py", "agent.py", "weights.npz"
CLASS_BEGIN, CLASS_END = "# begin of exported class\n", "# end of exported class\n"
"""Lines of the template; an export replaces the import between them by source code."""
Layers = list[tuple[NDArray[np.float32], NDArray[np.float32]]]
"""Weights [out, in] and biases [out]."""


def export_agent(name: str, folder: Path, rules: str) -> list[Path]:
    """Write a shipped agent for the original game, and return its files."""
    defender = load_agent(name, rules)
    if not isinstance(defender, ExpertDefender) or not isinstance(defender.network, ReluNetwork):
        raise ConfigError(f"no export for {type(defender).__name__}, the class of '{name}'; expected best")
    return write_agent(folder, defender, [rules], {0: (defender.network.layers, "relu")})


def write_agent(
    folder: Path, defender: Defender, rules: Sequence[str], networks: Mapping[int, tuple[Layers, str]]
) -> list[Path]:
    """Write a defender into a new or empty folder: its class, and its networks with their activation, relu or tanh.

    Several networks are specialists: attacker (index in `REDS`) → network.
    """
    kind, keywords = _exported(defender)
    settings = {
        "rules": list(rules),
        "specialists": len(networks) > 1,
        "networks": {name: (len(layers), activation == "relu") for name, (layers, activation) in networks.items()},
        "defender": keywords,
    }
    arrays: dict[str, NDArray[Any]] = {"settings": np.array(json.dumps(settings))}
    for name, (layers, _) in networks.items():
        for number, (weight, bias) in enumerate(layers):
            arrays |= {f"{name}.{number}.weight": weight, f"{name}.{number}.bias": bias}
    template = resources.files(__package__).joinpath(TEMPLATE).read_text(encoding="utf-8")
    before, _, rest = template.partition(CLASS_BEGIN)
    source = f"{before}{source_of(kind)}\n\n\nDefender = {kind.__name__}\n{rest.partition(CLASS_END)[2]}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise ConfigError(f"{folder} is not empty; expected a new folder")
        (folder / AGENT).write_text(source, encoding="utf-8")
        np.savez(folder / WEIGHTS, **arrays)  # type: ignore[arg-type]
    except OSError as error:
        raise Cage2Error(f"cannot write {folder}: {error.strerror}; expected a new folder") from error
    return [folder / AGENT, folder / WEIGHTS]


def rules_of(folder: Path) -> list[str]:
    """The rule sets that an exported agent was trained under."""
    with np.load(folder / WEIGHTS, allow_pickle=False) as arrays:
        found: list[str] = json.loads(str(arrays["settings"]))["rules"]
        return found


class ExpertAgent:
    """`ExpertDefender` for one game in plain Python, exported in its place.

    In an exported agent FRESH_EXPERT_MEMORY is a dictionary of lists, and the functions are not compiled.
    """

    def __init__(self, network: Any, *, shows_mask: bool, obeys_mask: bool) -> None:
        self.network, self.shows_mask, self.obeys_mask = network, shows_mask, obeys_mask

    def reset(self, num_games: int) -> None:
        """Clear the memory."""
        self.memory: Any = SimpleNamespace(**copy.deepcopy(FRESH_EXPERT_MEMORY))
        self.started = False

    def act(self, observations: Any, *, greedy: bool, generator: np.random.Generator) -> list[int]:
        """The flat action for the observation [1, 52]."""
        bits = observations[0].tolist()
        if self.started:
            remember(self.memory, bits)
        self.started = True
        row = np.zeros(NUM_ACTOR_BITS, dtype=np.int8)
        write_actor_bits(self.memory, bits, self.shows_mask, row)
        logits = self.network(row[None])
        if self.obeys_mask:
            logits = np.where(row[NUM_FEATURES:] == 1, logits, -np.inf)
        action = int(choose_action(logits, greedy=greedy, generator=generator)[0])
        return [take_action(self.memory, action)]


def _exported(defender: Defender) -> tuple[type, dict[str, bool]]:
    """The class that plays in the exported agent, and its keywords."""
    if isinstance(defender, CardiffDefender):
        return CardiffDefender, {"opening": defender.opening}
    if isinstance(defender, ExpertDefender):
        return ExpertAgent, {"shows_mask": defender.shows_mask, "obeys_mask": defender.obeys_mask}
    return PolicyDefender, {}
