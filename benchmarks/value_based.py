"""DQN beside Stable-Baselines3's DQN with equal settings, steps and seeds.

    python benchmarks/value_based.py --envs CartPole-v1 Acrobot-v1 --seeds 5 --out results/value_based

Both sides are measured by the mean raw return of the last 100 training episodes, and their runs alternate in one
process, so that steps/s can be compared as a ratio: by the clock, and by the processor's time, which a busy machine
changes less. Runs in runs.jsonl are not repeated.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from optimist.config import DQNConfig, EnvConfig, RunConfig
from optimist.presets import get_preset
from optimist.training.loop import train

SETTINGS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "8 envs": ({}, {}),
    "1 env": ({"num_envs": 1, "vectorization": "sync"}, {"gradient_steps": 1}),
}
"""What a run changes of the preset `gym/dqn`, in its environment and in its learner: nothing, or one environment alone;
a gradient step for every 4 steps in both."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--envs", nargs="+", default=["CartPole-v1", "Acrobot-v1"])
    parser.add_argument("--settings", nargs="+", choices=list(SETTINGS), default=["8 envs"])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--total-steps", type=int, default=50_000)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    raw = args.out / "runs.jsonl"
    rows = [json.loads(line) for line in raw.read_text().splitlines()] if raw.exists() else []
    done = {(row["side"], row["env"], row["setting"], row["seed"]) for row in rows}
    sides: dict[str, Callable[[RunConfig], dict[str, Any]]] = {"optimist": run_ours, "stable-baselines3": run_rival}
    for env, setting, seed, side in itertools.product(args.envs, args.settings, range(args.seeds), sides):
        if (side, env, setting, seed) in done:
            continue
        config = make_config(env, setting, seed, args.total_steps)
        rows.append({"side": side, "env": env, "setting": setting, "seed": seed} | sides[side](config))
        print(rows[-1], file=sys.stderr)
        raw.write_text("".join(json.dumps(row, sort_keys=True) + "\n" for row in rows))
    table = render(rows)
    (args.out / "table.md").write_text(f"Command: `python {' '.join(sys.argv)}`\n\n{table}")
    print(table)


def make_config(env: str, setting: str, seed: int, total_steps: int) -> RunConfig:
    """The preset with a setting's changes."""
    config = get_preset("gym/dqn")(env=env)
    of_env, of_learner = SETTINGS[setting]
    return dataclasses.replace(
        config,
        seed=seed,
        total_steps=total_steps,
        env=dataclasses.replace(config.env, **of_env),
        algorithm=dataclasses.replace(config.algorithm, **of_learner),
        log_every=max(1, 1024 // (config.algorithm.rollout_steps * of_env.get("num_envs", config.env.num_envs))),
        checkpoint_every=10**9,
        tensorboard=False,
    )


def run_ours(config: RunConfig) -> dict[str, Any]:
    """Our preset."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.process_time()
        summary = train(config, Path(folder) / "run", progress=False)
        cpu = time.process_time() - began
    keep = ("steps", "episodes_in_statistic", "last_100_return")
    return {key: summary[key] for key in keep} | {"seconds": summary["time/seconds"], "cpu_seconds": cpu}


def run_rival(config: RunConfig) -> dict[str, Any]:
    """Stable-Baselines3's DQN with the same settings."""
    from stable_baselines3 import DQN
    from stable_baselines3.common.env_util import make_vec_env

    ours, env = config.algorithm, config.env
    assert isinstance(ours, DQNConfig)
    assert isinstance(env, EnvConfig)
    assert (config.network.activation, config.network.initialization, ours.loss) == ("relu", "default", "huber")
    torch.set_num_threads(config.threads)
    model = DQN(
        "MlpPolicy",
        make_vec_env(env.id, env.num_envs, seed=config.seed),
        learning_rate=ours.learning_rate,
        buffer_size=ours.replay_capacity,
        learning_starts=ours.learning_starts,
        batch_size=ours.minibatch_size,
        gamma=ours.gamma,
        train_freq=ours.rollout_steps,
        gradient_steps=ours.gradient_steps,
        target_update_interval=ours.target_interval,
        exploration_fraction=ours.epsilon_steps / config.total_steps,
        exploration_initial_eps=ours.epsilon_start,
        exploration_final_eps=ours.epsilon_final,
        max_grad_norm=ours.max_grad_norm or float("inf"),
        policy_kwargs={"net_arch": list(config.network.hidden)},
        seed=config.seed,
        device="cpu",
    )
    began, cpu = time.perf_counter(), time.process_time()
    model.learn(config.total_updates * config.batch_size)
    times = {"seconds": time.perf_counter() - began, "cpu_seconds": time.process_time() - cpu}
    assert model.ep_info_buffer is not None
    returns = [episode["r"] for episode in model.ep_info_buffer]
    statistic = {"episodes_in_statistic": len(returns), "last_100_return": statistics.fmean(returns)}
    return {"steps": model.num_timesteps} | statistic | times


def render(rows: list[dict[str, Any]]) -> str:
    """Mean return with a 95 % interval (Student's t over seeds), and steps/s as a ratio to the rival's."""
    lines = [
        "Mean raw return of the last 100 training episodes (ε-greedy actions), mean over seeds with a 95 % t-interval; "
        "steps/s: median over seeds, runs of both sides alternating in one process on one thread; by the clock and by "
        "the processor's time.",
        "",
        "| environment | setting | steps | side | seeds | return | 95 % interval | steps/s | × | per CPU-s | × |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for env, setting in dict.fromkeys((row["env"], row["setting"]) for row in rows):
        here = [row for row in rows if (row["env"], row["setting"]) == (env, setting)]
        rival = {name: speed([row for row in here if row["side"] != "optimist"], name) for name in TIMES}
        for side in dict.fromkeys(row["side"] for row in here):
            own = [row for row in here if row["side"] == side]
            returns = [row["last_100_return"] for row in own]
            mean, half = statistics.fmean(returns), half_width(returns)
            rates = [f"{speed(own, name):,.0f} | {speed(own, name) / rival[name]:.2f}" for name in TIMES]
            lines.append(
                f"| {env} | {setting} | {own[0]['steps']:,} | {side} | {len(own)} | {mean:.1f} "
                f"| {mean - half:.1f} – {mean + half:.1f} | {' | '.join(rates)} |"
            )
    return "\n".join(lines) + "\n"


TIMES = ("seconds", "cpu_seconds")


def speed(rows: list[dict[str, Any]], name: str) -> float:
    return statistics.median(row["steps"] / row[name] for row in rows) if rows else float("nan")


def half_width(values: list[float]) -> float:
    from scipy.stats import t

    if len(values) < 2:
        return float("nan")
    return float(t.ppf(0.975, len(values) - 1)) * statistics.stdev(values) / len(values) ** 0.5


if __name__ == "__main__":
    main()
