"""P(R > V) at each step of an episode of CAGE 2, after training: `python benchmarks/value_by_step.py --seeds 5`.

A critic that is right is below the return about half of the time, at every step. Where returns end at a time limit and
the critic does not see the time, it is below it at the last steps in almost every game. The rows compare
`cage2/cardiff-corrected` with the same agent without the steps left and with the executed opening, as published before.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import torch

from optimist.algorithms.cardiff import monte_carlo_returns
from optimist.config.toml import merge
from optimist.presets import get_preset
from optimist.tracking.run_dir import RunDir
from optimist.training.trainer import Trainer

BLIND: dict[str, Any] = {
    "env": {"steps_left": False, "forced_actions": "executed"},
    "network": {"privileged": 0},
}
AGENTS: dict[str, Mapping[str, Any]] = {"without the steps left": BLIND, "cage2/cardiff-corrected": {}}
ROLLOUTS = 2
"""Collected with the trained policy: 1,332 episodes."""


def measure(changes: Mapping[str, Any], red: str, seed: int, steps: int) -> dict[str, Any]:
    """Train; return P(R > V) of each step and the mean return of the same games."""
    config = merge(get_preset("cage2/cardiff-corrected")(red=red), changes)
    config = merge(config, {"seed": seed, "total_steps": steps, "tensorboard": False})
    with tempfile.TemporaryDirectory() as folder, RunDir.create(Path(folder) / "run", config) as run:
        trainer = Trainer(config, run)
        with closing(trainer):
            while trainer.update < trainer.total_updates:
                trainer.one_update()
            learner, shares, returns = trainer.algorithm, [], []
            for _ in range(ROLLOUTS):
                rollout = trainer.collector.collect()
                actual = monte_carlo_returns(rollout.rewards, rollout, config.algorithm.gamma)
                expected = learner.in_rewards.from_critic(rollout.values)  # type: ignore[attr-defined]
                shares.append((actual > expected).float().mean(1))
                returns += [episode.raw_return for episode in trainer.collector.finished]
    share = torch.stack(shares).mean(0).tolist()
    return {"p_return_above_value": [round(p, 3) for p in share], "mean_return": sum(returns) / len(returns)}


def main() -> None:
    """Print one JSON line for each agent and seed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=500_000)
    parser.add_argument("--red", default="B_line")
    options = parser.parse_args()
    for seed in range(options.seeds):
        for name, changes in AGENTS.items():
            row = {"agent": name, "red": options.red, "seed": seed, "steps": options.steps}
            print(json.dumps(row | measure(changes, options.red, seed, options.steps)), flush=True)


if __name__ == "__main__":
    main()
