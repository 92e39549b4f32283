"""PPO, A2C and DQN next to Stable-Baselines3 with equal settings, steps and seeds: returns and speed.

    python benchmarks/against_sb3.py experiments/classic.toml --out DIR

The runs are those of a sweep file. Runs of both libraries alternate in one process on one thread, so that their speeds
can be compared as a ratio: by wall-clock time, and by CPU time, which other work on the machine affects less. The rows
of runs.jsonl have the sweep's format; runs that are in it are not repeated.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

from optimist.config import A2CConfig, DQNConfig, PPOConfig, RunConfig
from optimist.sweep.plan import Run, read_plan
from optimist.sweep.results import markdown
from optimist.training.trainer import train

LIBRARIES = ("optimist", "stable-baselines3")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="sweep file with runs of gym/ppo, gym/a2c or gym/dqn")
    parser.add_argument("--libraries", nargs="+", choices=LIBRARIES, default=list(LIBRARIES))
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    file = args.out / "runs.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    done = {row["run"] for row in rows}
    plan = read_plan(args.file)
    for run in plan.runs:
        for library in args.libraries:
            row = describe(run, library)
            if row["run"] not in done:
                torch.set_num_threads(run.config.threads)
                steps, metrics = train_ours(run.config) if library == "optimist" else train_sb3(run.config)
                rows.append(row | {"steps": steps, "value": metrics["last_100_return"], "metrics": metrics})
                print(rows[-1], file=sys.stderr)
                file.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    table = markdown(rows, plan.file)
    (args.out / "table.md").write_text(table)
    print(table)


def describe(run: Run, library: str) -> dict[str, Any]:
    """The row of a run before it starts."""
    row = run.record | {"state": "finished", "statistic": "mean raw return of the last 100 training episodes"}
    if library != "optimist":
        row |= {"run": f"{library}_{run.name}", "method": f"{run.method} of {library}", "library": library}
    return row


def train_ours(config: RunConfig) -> tuple[int, dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        started = time.process_time()
        summary = train(config, Path(folder) / "run", progress=False)
        cpu_seconds = time.process_time() - started
    metrics = {name: summary[name] for name in ("episodes_in_statistic", "last_100_return")}
    return summary["steps"], metrics | {"seconds": summary["time/seconds"], "cpu_seconds": cpu_seconds}


def train_sb3(config: RunConfig) -> tuple[int, dict[str, Any]]:
    model = make_sb3(config)
    started, cpu_started = time.perf_counter(), time.process_time()
    model.learn(config.total_updates * config.batch_size)
    times = {"seconds": time.perf_counter() - started, "cpu_seconds": time.process_time() - cpu_started}
    returns = [episode["r"] for episode in model.ep_info_buffer]
    metrics = {"episodes_in_statistic": len(returns), "last_100_return": statistics.fmean(returns)}
    return model.num_timesteps, metrics | times


def make_sb3(config: RunConfig) -> Any:
    """The algorithm of the same name of Stable-Baselines3 with the same settings."""
    from stable_baselines3 import A2C, DQN, PPO
    from stable_baselines3.common.env_util import make_vec_env

    ours = config.algorithm
    shared = {
        "policy": "MlpPolicy",
        "env": make_vec_env(config.env.id, config.env.num_envs, seed=config.seed),
        "policy_kwargs": {"net_arch": list(config.network.hidden)},
        "gamma": ours.gamma,
        "max_grad_norm": ours.max_grad_norm or float("inf"),
        "seed": config.seed,
        "device": "cpu",
    }
    if isinstance(ours, DQNConfig):
        assert (config.network.activation, config.network.initialization, ours.loss) == ("relu", "default", "huber")
        return DQN(
            **shared,
            learning_rate=ours.learning_rate,
            buffer_size=ours.replay_capacity,
            learning_starts=ours.learning_starts,
            batch_size=ours.minibatch_size,
            train_freq=ours.rollout_steps,
            gradient_steps=ours.gradient_steps,
            target_update_interval=ours.target_interval,
            exploration_fraction=ours.epsilon_steps / config.total_steps,
            exploration_initial_eps=ours.epsilon_start,
            exploration_final_eps=ours.epsilon_final,
        )
    assert isinstance(ours, PPOConfig | A2CConfig)
    linear = ours.learning_rate_schedule == "linear"
    shared |= {
        "learning_rate": (lambda left: ours.learning_rate * left) if linear else ours.learning_rate,
        "n_steps": ours.rollout_steps,
        "gae_lambda": ours.gae_lambda,
        "ent_coef": ours.entropy_coef,
        "vf_coef": ours.value_coef,
    }
    if isinstance(ours, A2CConfig):  # both have torch's RMSprop, with the same smoothing
        assert ours.rmsprop_alpha == 0.99
        return A2C(**shared, rms_prop_eps=ours.rmsprop_eps, normalize_advantage=ours.normalize_advantages == "batch")
    return PPO(**shared, batch_size=ours.minibatch_size, n_epochs=ours.epochs, clip_range=ours.clip_eps)


if __name__ == "__main__":
    main()
