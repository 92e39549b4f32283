"""The strongest defender, `best`: one policy a rule set on the expert interface; the card is BEST.md beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file

from optimist.envs.cage2.expert_defender import ExpertDefender
from optimist.envs.cage2.settings import RULES
from optimist.errors import unknown_name

FOLDER: Final = Path(__file__).parent


def weights_of(rules: str) -> Path:
    """The file with the weights for a rule set."""
    if rules not in RULES:
        raise unknown_name("rule set", rules, RULES)
    return FOLDER / f"best-{rules}.safetensors"


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


def load(rules: str) -> ExpertDefender:
    """The defender for a rule set, trained with the `official` table of alarms."""
    arrays = load_file(weights_of(rules))
    layers = [(arrays[f"{i}.weight"].astype(np.float32), arrays[f"{i}.bias"]) for i in range(len(arrays) // 2)]
    return ExpertDefender(ReluNetwork(layers))
