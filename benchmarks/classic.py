"""Classic control with our presets, beside Stable-Baselines3's PPO or A2C with equal settings, steps and seeds.

    python benchmarks/classic.py --envs CartPole-v1 Acrobot-v1 Pendulum-v1 --seeds 5 --out results/classic
    python benchmarks/classic.py --algorithm a2c --envs CartPole-v1 Acrobot-v1 --seeds 5 --out results/classic_a2c

Both sides are measured by the mean raw return of the last 100 training episodes, and their runs alternate in one
process, so that steps/s can be compared as a ratio. `--ours-only` leaves the rival out. Runs in runs.jsonl are
not repeated.
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

from optimist.config import A2CConfig, PPOConfig, RunConfig
from optimist.presets import get_preset
from optimist.training.loop import train

SETTINGS: dict[str, dict[str, Any]] = {
    "preset": {},
    "8x128x4": {
        "rollout_steps": 128,
        "epochs": 4,
        "minibatch_size": 256,
        "learning_rate_schedule": "constant",
        "gamma": 0.98,
        "gae_lambda": 0.9,
    },
}
SETTINGS["32x32x4"] = SETTINGS["8x128x4"] | {"num_envs": 32, "rollout_steps": 32}
"""What a run changes of the preset: nothing; fewer passes, so that collecting weighs more; and more environments."""
USUAL = {"CartPole-v1": 475.0, "Acrobot-v1": -100.0, "LunarLander-v3": 200.0, "Pendulum-v1": -250.0}
"""Scores commonly called solved, or usual for PPO where an environment has no such mark (Acrobot, Pendulum)."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--envs", nargs="+", default=list(USUAL))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--algorithm", choices=["ppo", "a2c"], default="ppo")
    parser.add_argument(
        "--settings", nargs="+", choices=list(SETTINGS), default=["preset"], help="other ones: PPO only"
    )
    parser.add_argument("--total-steps", type=int, help="instead of the preset's")
    parser.add_argument("--ours-only", action="store_true")
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    if args.algorithm == "a2c" and args.settings != ["preset"]:
        parser.error("--settings other than preset change PPO's; A2C runs with its preset")
    args.out.mkdir(parents=True, exist_ok=True)
    raw = args.out / "runs.jsonl"
    rows = [json.loads(line) for line in raw.read_text().splitlines()] if raw.exists() else []
    if any(row.get("algorithm", "ppo") != args.algorithm for row in rows):
        parser.error(f"{raw} holds runs of another algorithm: choose another --out")
    done = {(row["side"], row["env"], row["setting"], row["seed"]) for row in rows}
    sides: dict[str, Callable[[RunConfig], dict[str, Any]]] = {"optimist": run_ours}
    if not args.ours_only:
        sides["stable-baselines3"] = run_rival
    jobs = itertools.product(args.envs, args.settings, range(args.seeds), sides)
    for env, setting, seed, side in jobs:
        if (side, env, setting, seed) in done:
            continue
        config = dataclasses.replace(get_preset(f"gym/{args.algorithm}")(env=env), seed=seed, tensorboard=False)
        config = dataclasses.replace(config, total_steps=args.total_steps or config.total_steps)
        config = changed(config, SETTINGS[setting])
        about = {"algorithm": args.algorithm, "side": side, "env": env, "setting": setting, "seed": seed}
        rows.append(about | sides[side](config))
        print(rows[-1], file=sys.stderr)
        raw.write_text("".join(json.dumps(row, sort_keys=True) + "\n" for row in rows))
    table = render(rows)
    (args.out / "table.md").write_text(f"Command: `python {' '.join(sys.argv)}`\n\n{table}")
    print(table)


def changed(config: RunConfig, changes: dict[str, Any]) -> RunConfig:
    """The preset with a setting's changes."""
    env = dataclasses.replace(config.env, num_envs=changes.get("num_envs", config.env.num_envs))
    ppo = {name: value for name, value in changes.items() if name != "num_envs"}
    return dataclasses.replace(config, env=env, algorithm=dataclasses.replace(config.algorithm, **ppo))


def run_ours(config: RunConfig) -> dict[str, Any]:
    """Our preset as it is."""
    with tempfile.TemporaryDirectory() as folder:
        summary = train(config, Path(folder) / "run", progress=False)
    keep = ("steps", "episodes_in_statistic", "last_100_return")
    speed = {"seconds": summary["time/seconds"], "steps_per_second": summary["time/steps_per_second"]}
    return {key: summary[key] for key in keep} | speed


def run_rival(config: RunConfig) -> dict[str, Any]:
    """Stable-Baselines3's learner of the same name with the same settings."""
    from stable_baselines3 import A2C, PPO
    from stable_baselines3.common.env_util import make_vec_env

    ours = config.algorithm
    torch.set_num_threads(config.threads)
    falling = ours.learning_rate_schedule == "linear"
    shared = {
        "policy": "MlpPolicy",
        "env": make_vec_env(config.env.id, config.env.num_envs, seed=config.seed),
        "learning_rate": (lambda left: ours.learning_rate * left) if falling else ours.learning_rate,
        "policy_kwargs": {"net_arch": list(config.network.hidden)},
        "seed": config.seed,
        "device": "cpu",
    }
    assert isinstance(ours, PPOConfig | A2CConfig)
    shared |= {
        "n_steps": ours.rollout_steps,
        "gamma": ours.gamma,
        "gae_lambda": ours.gae_lambda,
        "ent_coef": ours.entropy_coef,
        "vf_coef": ours.value_coef,
        "max_grad_norm": ours.max_grad_norm or float("inf"),
    }
    if isinstance(ours, A2CConfig):  # its RMSprop is torch's too, with the same smoothing
        assert ours.rmsprop_alpha == 0.99
        model = A2C(**shared, rms_prop_eps=ours.rmsprop_eps, normalize_advantage=ours.normalize_advantages == "batch")
    else:
        model = PPO(**shared, batch_size=ours.minibatch_size, n_epochs=ours.epochs, clip_range=ours.clip_eps)
    started = time.perf_counter()
    model.learn(config.total_updates * config.batch_size)
    seconds = time.perf_counter() - started
    assert model.ep_info_buffer is not None
    returns = [episode["r"] for episode in model.ep_info_buffer]
    return {
        "steps": model.num_timesteps,
        "episodes_in_statistic": len(returns),
        "last_100_return": statistics.fmean(returns),
        "seconds": seconds,
        "steps_per_second": model.num_timesteps / seconds,
    }


def render(rows: list[dict[str, Any]]) -> str:
    """Mean return with a 95 % interval (Student's t over seeds), the usual score, and steps/s as a ratio."""
    lines = [
        "Mean raw return of the last 100 training episodes (sampled actions), mean over seeds with a 95 % t-interval; "
        "steps/s: median over seeds, runs of both sides alternating in one process on one thread.",
        "",
        "| environment | settings | steps | side | seeds | return | 95 % interval | usual | steps/s | ratio |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for env, setting in dict.fromkeys((row["env"], row["setting"]) for row in rows):
        here = [row for row in rows if (row["env"], row["setting"]) == (env, setting)]
        rival = [row["steps_per_second"] for row in here if row["side"] != "optimist"]
        for side in dict.fromkeys(row["side"] for row in here):
            own = [row for row in here if row["side"] == side]
            returns = [row["last_100_return"] for row in own]
            mean, half = statistics.fmean(returns), half_width(returns)
            speed = statistics.median(row["steps_per_second"] for row in own)
            ratio = f"{speed / statistics.median(rival):.2f}" if rival else "–"
            lines.append(
                f"| {env} | {setting} | {own[0]['steps']:,} | {side} | {len(own)} | {mean:.1f} "
                f"| {mean - half:.1f} – {mean + half:.1f} | {USUAL.get(env, '–')} | {speed:,.0f} | {ratio} |"
            )
    return "\n".join(lines) + "\n"


def half_width(values: list[float]) -> float:
    from scipy.stats import t

    if len(values) < 2:
        return float("nan")
    return float(t.ppf(0.975, len(values) - 1)) * statistics.stdev(values) / len(values) ** 0.5


if __name__ == "__main__":
    main()
