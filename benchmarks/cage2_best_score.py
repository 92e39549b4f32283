"""Scores runs of `cage2/best` over the challenge's nine cells, each through the game's own interface.

    python benchmarks/cage2_best_score.py RUN... [--episodes 10000] [--device cpu] [--out FILE]

One line a run: the nine means, their total and its 95 % interval, argmax.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from optimist.door import load
from optimist.envs.cage2.env import CageVectorEnv
from optimist.envs.cage2.expert_defender import ExpertDefender, policy_logits

HORIZONS = (30, 50, 100)
REDS = ("B_line", "Meander", "Sleep")


def play_cell(defender: Any, red: str, rules: str, horizon: int, episodes: int, seed: int) -> np.ndarray:
    """The returns of so many games of one cell."""
    env = CageVectorEnv(episodes, red=red, rules=rules, table=defender.table, horizon=horizon)
    observations, _ = env.reset(seed=seed)
    defender.reset(episodes)
    generator = np.random.default_rng(seed)
    returns = np.zeros(episodes)
    for _ in range(horizon):
        observations, rewards, *_ = env.step(defender.act(observations, greedy=True, generator=generator))
        returns += rewards
    env.close()
    return returns


def score(defender: Any, rules: str, episodes: int, seed: int = 2024) -> dict[str, Any]:
    cells: dict[str, Any] = {}
    total = variance = 0.0
    for i, red in enumerate(REDS):
        for horizon in HORIZONS:
            returns = play_cell(defender, red, rules, horizon, episodes, seed + 1000 * i + horizon)
            error = returns.std(ddof=1) / episodes**0.5
            cells[f"{red}-{horizon}"] = {"mean": returns.mean(), "interval": 1.96 * error, "worst": returns.min()}
            total += returns.mean()
            variance += error**2
    half = 1.96 * variance**0.5
    return {"rules": rules, "episodes": episodes, "total": total, "interval_95": [total - half, total + half]} | cells


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--episodes", type=int, default=10_000)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--rules", help="default: those that the run was trained with")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    scores = {}
    for run in arguments.runs:
        begin = time.perf_counter()
        agent = load(run, arguments.device)
        rules = arguments.rules or agent.config.env.kwargs["rules"]
        defender = ExpertDefender(policy_logits(agent.policy))
        scores[str(run)] = result = score(defender, rules, arguments.episodes)
        means = " ".join(f"{cell['mean']:.3f}" for cell in result.values() if isinstance(cell, dict))
        low, high = result["interval_95"]
        seconds = time.perf_counter() - begin
        print(f"{run} {rules}: {result['total']:.3f} [{low:.3f}, {high:.3f}] | {means} ({seconds:.0f} s)", flush=True)
    if arguments.out:
        arguments.out.write_text(json.dumps(scores, indent=1) + "\n")


if __name__ == "__main__":
    main()
