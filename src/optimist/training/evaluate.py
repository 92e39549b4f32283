"""Evaluation: whole episodes with fresh seeds, sampled or greedy, equally many in every environment."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import torch

from optimist.config import EnvConfig
from optimist.envs.make import make_envs
from optimist.errors import OptimistError
from optimist.networks.policy import PolicyNetwork
from optimist.rollout.stepper import VectorStepper
from optimist.stats.intervals import mean_interval
from optimist.tracking.progress import counting
from optimist.training.agent import newest_agent
from optimist.training.build import prepare_torch
from optimist.training.seeding import derive_seed

MAX_ENVS = 16
MAX_STEPS = 200_000
"""Steps after which an episode counts as endless; a whole game of Atari has 27,000."""
MIN_EPISODES = 5
"""Episodes needed for an interval: two of Pong gave −31.7 to −6.3, and −21 is the lowest return there is."""


def play(
    policy: PolicyNetwork,
    config: EnvConfig,
    episodes: int,
    *,
    greedy: bool,
    seed: int,
    task_seed: int,
    tick: Callable[[], Any] = lambda: None,
) -> list[dict[str, Any]]:
    """Play whole episodes; return the return, length and goal of each. `tick` is called after each.

    Each environment finishes its share, so that short episodes are not counted more often than long ones.
    """
    num_envs = min(MAX_ENVS, episodes)
    envs = make_envs(replace(config, num_envs=num_envs), seed=task_seed)
    shares = [episodes // num_envs + (n < episodes % num_envs) for n in range(num_envs)]
    device = next(policy.parameters()).device
    generator = torch.Generator(device).manual_seed(seed)
    stepper = VectorStepper(envs)
    space = envs.single_action_space
    obs, _ = stepper.reset(seed)
    returns, lengths = np.zeros(num_envs), np.zeros(num_envs, int)
    played: list[list[dict[str, Any]]] = [[] for _ in range(num_envs)]
    training = policy.training
    policy.eval()  # value-based policies explore less in this mode
    try:
        while any(len(done) < share for done, share in zip(played, shares, strict=True)):
            tensor = torch.from_numpy(obs).to(device)
            actions = (policy.act_greedily(tensor) if greedy else policy.act(tensor, generator)).cpu().numpy()
            transition = stepper.step(
                np.clip(actions, space.low, space.high) if isinstance(space, gym.spaces.Box) else actions
            )
            obs = transition.obs
            returns += transition.rewards
            lengths += 1 if transition.valid is None else transition.valid
            if lengths.max() > MAX_STEPS:
                raise OptimistError(
                    f"an episode of {config.id} has not ended after {MAX_STEPS:,} steps, and an evaluation plays whole "
                    "episodes: set a limit (env.kwargs.max_episode_steps), or train with --final-episodes 0"
                )
            goals = transition.final_infos.get("goal")
            for n in np.flatnonzero(transition.ended):
                goal = None if goals is None else bool(goals[n])
                if len(played[n]) < shares[n]:
                    tick()
                played[n].append({"return": float(returns[n]), "length": int(lengths[n]), "goal": goal})
                returns[n], lengths[n] = 0.0, 0
    finally:
        policy.train(training)
        envs.close()
    return [episode for done, share in zip(played, shares, strict=True) for episode in done[:share]]


def summarize(played: list[dict[str, Any]]) -> dict[str, Any]:
    """Mean return with its standard error and 95 % interval (Student's), mean length, goal rate.

    There is no interval for fewer than `MIN_EPISODES`.
    """
    returns = [episode["return"] for episode in played]
    mean, half_width = mean_interval(returns)
    enough = len(returns) >= MIN_EPISODES
    error = statistics.stdev(returns) / len(returns) ** 0.5 if len(returns) > 1 else float("nan")
    summary = {
        "episodes": len(returns),
        "mean_return": mean,
        "standard_error": error,
        "interval_95": [mean - half_width, mean + half_width] if enough else None,
        "mean_length": statistics.fmean(episode["length"] for episode in played),
    }
    if played[0]["goal"] is not None:
        summary["goal_rate"] = statistics.fmean(episode["goal"] for episode in played)
    return summary


def evaluate(
    run: Path, episodes: int = 100, greedy: bool = False, seed: int = 0, *, env: str = "", progress: bool = False
) -> dict[str, Any]:
    """Evaluate a run's final policy on fresh episodes, or that of its newest checkpoint while it trains.

    `env` as in `load`.
    """
    agent, which = newest_agent(run, env)
    prepare_torch(agent.config)
    fresh = derive_seed(seed, "evaluation")
    settings, task = agent.config.env, agent.config.seed
    with counting(f"playing {episodes:,} episodes", episodes, progress) as tick:
        played = play(agent.policy, settings, episodes, greedy=greedy, seed=fresh, task_seed=task, tick=tick)
    return {"run": str(run), "seed": seed, **summarize_policy(played, settings, which, greedy=greedy)}


def summarize_policy(
    played: list[dict[str, Any]], env: EnvConfig, which: str = "final policy", *, greedy: bool
) -> dict[str, Any]:
    """The summary of one policy's episodes, with the name of its statistic."""
    actions, horizons = "greedy" if greedy else "sampled", env.kwargs.get("scored_at")
    kind = f"return, each the mean of those at {', '.join(map(str, horizons))} steps," if horizons else "raw return"
    statistic = f"mean {kind} of {len(played)} fresh episodes ({actions} actions), {which}"
    return {"statistic": statistic, "actions": actions, **summarize(played)}
