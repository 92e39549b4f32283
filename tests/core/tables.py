"""Shared by the tests of the method: a policy that is a table; steps, episodes and batches made from lists."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from optimist.core.config import OPRConfig
from optimist.core.episode import Episode
from optimist.core.memory import GoodRows
from optimist.core.regularizer import OptimisticRegularizer
from optimist.core.steps import Batch, Steps

LOG_HALF, LOG_THREE_QUARTERS = math.log(1 / 2), math.log(3 / 4)


class TablePolicy(nn.Module):
    """π_θ and V as tables over S states and A actions; every number in it is known."""

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
    """An episode whose every row carries `label`, so that its rows can be identified."""
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


def make_batch(size: int, **more: Any) -> Batch:
    """A batch whose row i has action i, and multiples of i in the other columns."""
    numbers = torch.arange(float(size))
    return Batch(
        obs=numbers[:, None],
        actions=numbers.long(),
        logp_old=-numbers,
        advantages=numbers * 2,
        returns=numbers * 3,
        values_old=numbers * 4,
        **more,
    )


def episodes(returns: list[float], groups: list[int] | None = None) -> Steps:
    """One stream whose every step is an episode with the given return; its state is its place in the list."""
    rewards, more = [[r] for r in returns], {} if groups is None else {"groups": [[g] for g in groups]}
    zeros = [[0]] * len(returns)
    return make_steps(rewards, [[1]] * len(returns), obs=[[i] for i in range(len(returns))], actions=zeros, **more)


def regularizer(**settings: Any) -> OptimisticRegularizer:
    """OPR with γ = 0.5 and λ = 0.8."""
    return OptimisticRegularizer(OPRConfig(**settings), gamma=0.5, gae_lambda=0.8)


def filled(**settings: Any) -> OptimisticRegularizer:
    """OPR whose memory has two one-step episodes: states 0 and 1, returns 1 and 2, action 0."""
    opr = regularizer(**({"percentile": 0.0} | settings))
    opr.observe(episodes([1.0, 2.0]))
    return opr


def stored_rows(opr: OptimisticRegularizer) -> GoodRows:
    """The two rows of `filled`, in order."""
    good = opr.memory.sample(200, torch.Generator().manual_seed(0))
    first = [int((good.returns == value).nonzero()[0]) for value in (1.0, 2.0)]
    return GoodRows(
        obs=good.obs[first], actions=good.actions[first], returns=good.returns[first], rows=good.rows[first]
    )


def two_state_policy(values: tuple[float, float] = (0.0, 0.0)) -> TablePolicy:
    """π(0|s) is 1/2 in state 0 and 3/4 in state 1."""
    policy = TablePolicy(num_states=2, num_actions=2)
    with torch.no_grad():
        policy.logits.copy_(torch.tensor([[0.0, 0.0], [math.log(3.0), 0.0]]))
        policy.values.copy_(torch.tensor(values))
    return policy
