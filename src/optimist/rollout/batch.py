"""Rollout [T, N]: the steps of one collection, with the values GAE needs."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from optimist.core.batch import Batch
from optimist.core.episode import Steps
from optimist.core.shapes import require_same_shape


@dataclass(frozen=True, kw_only=True)
class Rollout(Steps):
    """T steps of N environments, with V of each state and of the one that follows it."""

    values: Tensor  # [T, N]
    next_values: Tensor  # [T, N]; 0 after a real end, the bootstrap value after a time limit
    truncated: Tensor | None = None  # [T, N]; steps whose `bootstraps` is a value; None: none
    final_obs: Tensor | None = None  # [M, ...]; what followed them, in order of time, then environment

    def __post_init__(self) -> None:
        super().__post_init__()
        require_same_shape(rewards=self.rewards, values=self.values, next_values=self.next_values)

    def flatten(self, advantages: Tensor, returns: Tensor, *, standardized: bool = False) -> Batch:
        """The valid rows as a Batch [T·N], its advantages to be standardised over all of them if asked."""
        columns = [
            column.flatten(0, 1) for column in (self.obs, self.actions, self.logp, advantages, returns, self.values)
        ]
        if self.valid is not None and not bool(self.valid.all()):
            rows = self.valid.flatten().nonzero().squeeze(-1)
            columns = [column[rows] for column in columns]
        obs, actions, logp, advantages, returns, values = columns
        return Batch(
            obs=obs,
            actions=actions,
            logp_old=logp,
            advantages=advantages,
            returns=returns,
            values_old=values,
            statistics_of=advantages if standardized else None,
        )
