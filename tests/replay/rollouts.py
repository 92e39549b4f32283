"""Synthetic rollouts for the tests of the replay buffer, and n-step transitions by a plain loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from optimist.core.steps import Rollout


def make_rollout(
    obs: torch.Tensor, rewards: Any, dones: Any, *, truncated: Any = None, valid: Any = None, actions: Any = None
) -> Rollout:
    """A rollout of N environments; what follows a truncated step is its observation + 0.5."""
    rewards, dones = torch.as_tensor(rewards, dtype=torch.float32), torch.as_tensor(dones)
    zeros = torch.zeros_like(rewards)
    mask = None if truncated is None else torch.as_tensor(truncated)
    return Rollout(
        obs=obs,
        actions=torch.zeros(rewards.shape, dtype=torch.int64) if actions is None else torch.as_tensor(actions),
        rewards=rewards,
        logp=zeros,
        dones=dones,
        raw_rewards=rewards,
        episode_ends=dones,
        bootstraps=zeros,
        valid=None if valid is None else torch.as_tensor(valid),
        values=zeros,
        next_values=zeros,
        truncated=mask,
        final_obs=None if mask is None or not mask.any() else obs[mask] + 0.5,
    )


def random_stream(seed: int, num_steps: int, num_envs: int) -> dict[str, torch.Tensor]:
    """Steps of `num_envs` environments: observations all differ, episodes end or are cut off by a time limit."""
    generator = np.random.default_rng(seed)
    shape = (num_steps, num_envs)
    dones = generator.random(shape) < 0.2
    return {
        "obs": torch.arange(num_steps * num_envs, dtype=torch.float32).view(*shape, 1),
        "rewards": torch.from_numpy(generator.normal(size=shape).astype(np.float32)),
        "dones": torch.from_numpy(dones),
        "truncated": torch.from_numpy(dones & (generator.random(shape) < 0.5)),
        "actions": torch.from_numpy(generator.integers(0, 5, shape)),
    }


def plain_transition(stream: dict[str, torch.Tensor], t: int, env: int, n: int, gamma: float) -> dict[str, float]:
    """What an n-step transition is, step by step."""
    total = 0.0
    for k in range(n):
        total += gamma**k * float(stream["rewards"][t + k, env])
        if stream["truncated"][t + k, env]:
            following, discount = float(stream["obs"][t + k, env, 0]) + 0.5, gamma ** (k + 1)
            break
        if stream["dones"][t + k, env]:
            following, discount = float("nan"), 0.0
            break
        following, discount = float(stream["obs"][t + k + 1, env, 0]), gamma ** (k + 1)
    return {"return": total, "next_obs": following, "discount": discount, "action": int(stream["actions"][t, env])}
