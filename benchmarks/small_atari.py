"""MinAtar, five Atari games at 10 × 10: does OPR help or hurt where rewards are dense, and is Rainbow ahead of DQN?

    pip install minatar
    python benchmarks/small_atari.py --seeds 5 --jobs 2 --out results/minatar
    python benchmarks/small_atari.py --methods dqn rainbow --total-steps 200000 --seeds 3 --jobs 2 --out results/minatar

Sticky actions and rising difficulty as MinAtar has them. Raw data goes to runs.jsonl, one line a run, its curve
included; runs that stand there with the same steps are not run again.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from pathlib import Path
from typing import Any

from resumable import Runs
from trained import thinned, train_away
from variants import changed

from optimist.report.means import mean_interval

GAMES = ["Asterix", "Breakout", "Freeway", "Seaquest", "SpaceInvaders"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--games", nargs="+", choices=GAMES, default=GAMES)
    parser.add_argument("--methods", nargs="+", default=["ppo", "opr"], help="ppo, opr, opr:bc_coef=0.03, dqn, rainbow")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--total-steps", type=int, default=1_000_000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    seeds = range(args.first_seed, args.first_seed + args.seeds)
    jobs = [(game, method, seed, args.total_steps) for seed in seeds for game in args.games for method in args.methods]
    runs = Runs(args.out / "runs.jsonl", ("game", "method", "seed", "budget"))
    runs.add(run_one, runs.missing(jobs), args.jobs)
    rows = runs.sort(lambda row: (row["game"], row["budget"], row["method"], row["seed"]))
    table = render(rows)
    (args.out / "table.md").write_text(f"Command: `python {' '.join(sys.argv)}`\n\n{table}")
    print(table)


def run_one(game: str, method: str, seed: int, total_steps: int) -> dict[str, Any]:
    """One training run, in a process of its own."""
    config = dataclasses.replace(configure(game, method), seed=seed, total_steps=total_steps, tensorboard=False)
    summary, curve = train_away(config)
    return {
        "game": game,
        "method": method,
        "seed": seed,
        "budget": total_steps,
        "last_100_return": summary["last_100_return"],
        "mean_return": sum(value for _, value in curve) / len(curve),
        "steps_per_second": round(summary["time/steps_per_second"]),
        "curve": thinned(curve),
    }


def configure(game: str, method: str) -> Any:
    """The shape of Atari's presets in small, on two layers of 128."""
    import gymnasium
    import minatar.gym

    from optimist.config import NetworkConfig
    from optimist.presets import get_preset

    if f"MinAtar/{game}-v1" not in gymnasium.registry:
        minatar.gym.register_envs()
    name, _, changes = method.partition(":")
    config = get_preset(f"gym/{name}")(env=f"MinAtar/{game}-v1")
    shape = value_based if name in ("dqn", "rainbow") else policy_gradient
    network = NetworkConfig(hidden=(128, 128), activation="relu")
    return changed(dataclasses.replace(shape(config), network=network), changes)


def policy_gradient(config: Any) -> Any:
    """That of `atari/fast`: PPO's usual clip and a rate that falls from 10⁻³, 16 environments."""
    from optimist.config import PPOConfig

    algorithm = PPOConfig(
        rollout_steps=128,
        epochs=4,
        minibatch_size=256,
        learning_rate=1e-3,
        learning_rate_schedule="linear",
        clip_eps=0.2,
        value_coef=0.25,
        entropy_coef=0.01,
    )
    return dataclasses.replace(config, env=dataclasses.replace(config.env, num_envs=16), algorithm=algorithm)


def value_based(config: Any) -> Any:
    """That of `atari/dqn` and `atari/rainbow`: a gradient step of 32 rows every 4 steps; a tenth of their replay."""
    shared = {"rollout_steps": 1, "gradient_steps": 2, "minibatch_size": 32, "replay_capacity": 100_000}
    shared |= {"learning_starts": 5_000, "learning_rate": 2.5e-4, "target_interval": 1_000}
    own = {"value_min": -20.0, "value_max": 20.0}
    if config.algorithm.name == "dqn":
        own = {"epsilon_steps": 100_000, "epsilon_final": 0.02}
    algorithm = dataclasses.replace(config.algorithm, **shared, **own)
    env = dataclasses.replace(config.env, num_envs=8)
    return dataclasses.replace(config, env=env, algorithm=algorithm, log_every=250)


def render(rows: list[dict[str, Any]]) -> str:
    """Mean over seeds with a 95 % interval (Student's t)."""
    lines = [
        "Mean return of the last 100 training episodes (sampled actions), and of the whole run; means over seeds with "
        "a 95 % t-interval.",
        "",
        "| game | steps | method | seeds | at the end | whole run | steps/s |",
        "|---|---|---|---|---|---|---|",
    ]
    for key in dict.fromkeys((row["game"], row["budget"], row["method"]) for row in rows):
        runs = [row for row in rows if (row["game"], row["budget"], row["method"]) == key]
        cells = [mean_interval([row[name] for row in runs]) for name in ("last_100_return", "mean_return")]
        speed = sum(row["steps_per_second"] for row in runs) / len(runs)
        game, budget, method = key
        lines.append(f"| {game} | {budget:,} | {method} | {len(runs)} | {cells[0]} | {cells[1]} | {speed:,.0f} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
