"""Small things the tests of the method share: a policy that is a table, and steps and episodes made from lists."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from optimist.core.episode import Episode, Steps


class TablePolicy(nn.Module):
    """π_θ and V as tables over S states and A actions; every number in it can be written down."""

    def __init__(self, num_states: int = 6, num_actions: int = 3, seed: int = 0) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.logits = nn.Parameter(torch.randn(num_states, num_actions, generator=generator))
        self.values = nn.Parameter(torch.randn(num_states, generator=generator))

    def log_prob(self, obs: Tensor, actions: Tensor) -> Tensor:
        return self.logits.log_softmax(-1)[obs.long(), actions.long()]

    def value(self, obs: Tensor) -> Tensor:
        return self.values[obs.long()]


def make_steps(rewards: Any, dones: Any, obs: Any = None, actions: Any = None, logp: Any = None, **more: Any) -> Steps:
    """Steps [T, N] from nested lists; states and actions 0 and log-probability −1 unless given."""
    rewards = torch.as_tensor(rewards, dtype=torch.float32)
    zeros = torch.zeros(rewards.shape, dtype=torch.int64)
    booleans = {"dones": dones} | {name: more.pop(name) for name in ("episode_ends", "valid") if name in more}
    tensors = {name: None if value is None else torch.as_tensor(value).bool() for name, value in booleans.items()}
    more = {name: torch.as_tensor(v) if isinstance(v, list) else v for name, v in more.items()}
    return Steps(
        rewards=rewards,
        obs=zeros if obs is None else torch.as_tensor(obs),
        actions=zeros if actions is None else torch.as_tensor(actions),
        logp=torch.full(rewards.shape, -1.0) if logp is None else torch.as_tensor(logp),
        **tensors,
        **more,
    )


def make_episode(
    length: int, total_reward: float = 0.0, *, label: int = 0, group: int = 0, stack: int = 1, **columns: Any
) -> Episode:
    """An episode whose every row carries `label`, so that a row can be traced back to where it came from."""
    steps = torch.arange(length, dtype=torch.float32)
    defaults = {
        "frames": torch.stack([torch.full((length + stack - 1,), float(label)), torch.arange(length + stack - 1.0)], 1),
        "actions": torch.full((length,), label),
        "rewards": steps + 1000.0 * label,
        "logp": -steps - 1.0,
        "dones": torch.arange(length) == length - 1,
        "bootstraps": torch.zeros(length),
    }
    return Episode(**(defaults | columns), total_reward=total_reward, group=group)
