"""The shipped defender in NumPy takes the actions of its weights in PyTorch: results/cage2-best/numpy_actions.json.

    python benchmarks/cage2_numpy_actions.py [--games 2500]

Plays both rule sets against B_line and Meander for 100 steps. A tie is a decision in which the two best actions are
closer than 1e-5.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import torch

from cage2 import CageVectorEnv
from cage2.agents.shipped import load_best
from cage2.rules.state import RULES

TIE = 1e-5
OUT = Path("results/cage2-best/numpy_actions.json")


class Compared:
    """A network in NumPy, which counts how often PyTorch would choose another action."""

    def __init__(self, network, features: int) -> None:
        self.network, self.features = network, features
        layers = []
        for weight, bias in network.layers:
            linear = torch.nn.Linear(weight.shape[1], weight.shape[0])
            linear.weight.data, linear.bias.data = torch.from_numpy(weight), torch.from_numpy(bias)
            layers += [linear, torch.nn.ReLU()]
        self.torch = torch.nn.Sequential(*layers[:-1])
        self.counts = {"decisions": 0, "ties": 0, "different": 0, "different_without_tie": 0, "largest_difference": 0.0}

    def __call__(self, rows):
        """Logits of NumPy."""
        logits = self.network(rows)
        with torch.no_grad():
            others = self.torch(torch.from_numpy(rows).float()).numpy()
        allowed = rows[:, self.features :] == 1
        ours, theirs = (np.where(allowed, values, -np.inf) for values in (logits, others))
        best = np.sort(theirs, axis=1)[:, -2:]
        tie, different = best[:, 1] - best[:, 0] < TIE, ours.argmax(axis=1) != theirs.argmax(axis=1)
        self.counts["decisions"] += len(rows)
        self.counts["ties"] += int(tie.sum())
        self.counts["different"] += int(different.sum())
        self.counts["different_without_tie"] += int((different & ~tie).sum())
        largest = float(np.abs(logits - others).max())
        self.counts["largest_difference"] = max(self.counts["largest_difference"], largest)
        return logits


def main() -> int:
    from cage2.expert.features import NUM_FEATURES

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--games", type=int, default=2500)
    games = parser.parse_args().games
    result = {"command": f"python benchmarks/cage2_numpy_actions.py --games {games}", "tie": TIE, "cells": []}
    for rules in RULES:
        for seed, red in enumerate(("B_line", "Meander")):
            defender = load_best(rules)
            defender.network = compared = Compared(defender.network, NUM_FEATURES)
            env = CageVectorEnv(games, red=red, rules=rules, horizon=101)
            observations, _ = env.reset(seed=seed)
            defender.reset(games)
            for _ in range(100):
                actions = defender.act(observations, greedy=True, generator=np.random.default_rng(0))
                observations, *_ = env.step(actions)
            result["cells"].append({"rules": rules, "red": red, **compared.counts})
            print(result["cells"][-1])
    totals = {name: sum(cell[name] for cell in result["cells"]) for name in ("decisions", "ties", "different")}
    OUT.write_text(json.dumps(result | totals, indent=1) + "\n")
    return 1 if any(cell["different_without_tie"] for cell in result["cells"]) else 0


if __name__ == "__main__":
    raise SystemExit(main())
