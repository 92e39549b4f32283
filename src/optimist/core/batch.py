"""Batch: the rows a learner trains on; rows of M may join its minibatches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Protocol

import torch
from torch import Tensor

from optimist.core.memory import GoodRows
from optimist.core.policy import Evaluator
from optimist.core.shapes import require_same_shape


class Joiner(Protocol):
    """Adds rows of M to a minibatch."""

    def join(self, minibatch: Batch) -> Batch:
        """The minibatch with replayed rows behind its fresh ones, and with rows for the cloning loss."""


@dataclass(frozen=True, kw_only=True)
class Batch:
    """B rows. Fresh ones first; behind them, if the anchor augments, rows replayed from M."""

    obs: Tensor  # [B, ...]
    actions: Tensor  # [B, ...]
    logp_old: Tensor  # [B] log-probability around which the ratio is clipped
    advantages: Tensor  # [B]
    returns: Tensor  # [B] value targets
    values_old: Tensor  # [B]
    weights: Tensor | None = None  # [B] weight in the policy loss; None: all 1
    value_weights: Tensor | None = None  # [B] weight in the value loss; None: all 1
    statistics_of: Tensor | None = None  # advantages whose mean and spread standardise these; None: not asked for
    num_fresh: int = -1  # rows of this rollout; −1: all
    good: GoodRows | None = None  # rows of M for the cloning loss
    joiner: Joiner | None = None  # adds rows of M to each minibatch

    def __post_init__(self) -> None:
        require_same_shape(
            logp_old=self.logp_old, advantages=self.advantages, returns=self.returns, values_old=self.values_old
        )

    def __len__(self) -> int:
        return len(self.logp_old)

    def of_fresh(self, values: Tensor) -> Tensor:
        """The entries that belong to this rollout: the only ones in advantage statistics, entropy and KL."""
        return values if self.num_fresh < 0 else values[: self.num_fresh]

    def minibatches(
        self, epochs: int, size: int, generator: torch.Generator, *, merge_last: bool = False
    ) -> Iterator[Batch]:
        """Every row once per epoch, in random minibatches of `size`; what remains comes last, or joins the last."""
        begins = list(range(0, len(self), size))
        if merge_last and len(self) % size and len(begins) > 1:
            begins.pop()
        slices = list(pairwise([*begins, len(self)]))
        if size >= len(self):
            shuffled = [self] * epochs  # a full-batch step needs no order
        else:
            orders = (torch.randperm(len(self), generator=generator, device=generator.device) for _ in range(epochs))
            shuffled = (self._rows(order.to(self.logp_old.device)) for order in orders)  # type: ignore[assignment]
        for batch in shuffled:
            for begin, end in slices:
                minibatch = batch if size >= len(self) else batch._rows(slice(begin, end))
                yield minibatch if self.joiner is None else self.joiner.join(minibatch)

    def _rows(self, index: Tensor | slice) -> Batch:
        columns = {name: getattr(self, name) for name in _ROW_FIELDS}
        return replace(self, **{name: column[index] for name, column in columns.items() if column is not None})


_ROW_FIELDS = ("obs", "actions", "logp_old", "advantages", "returns", "values_old", "weights", "value_weights")


@dataclass(frozen=True)
class Evaluated:
    """What a policy says about the rows of a minibatch; asked as a policy itself, it knows the rows of M already."""

    logp: Tensor  # [B]
    entropy: Tensor  # [B]
    values: Tensor  # [B]
    policy: Evaluator
    good: GoodRows | None = None
    logp_good: Tensor | None = None
    values_good: Tensor | None = None

    @classmethod
    def of(cls, policy: Evaluator, batch: Batch) -> Evaluated:
        """One pass through the network for the rows of the minibatch and those of M that came with it."""
        good = batch.good
        if good is None:
            return cls(*policy.evaluate(batch.obs, batch.actions), policy)
        both = policy.evaluate(torch.cat([batch.obs, good.obs]), torch.cat([batch.actions, good.actions]))
        logp, entropy, values = (column[: len(batch)] for column in both)
        return cls(logp, entropy, values, policy, good, both[0][len(batch) :], both[2][len(batch) :])

    def log_prob(self, obs: Tensor, actions: Tensor) -> Tensor:
        """log π_θ(a|s), [B]."""
        known = self.good is not None and obs is self.good.obs and actions is self.good.actions
        return self.logp_good if known and self.logp_good is not None else self.policy.log_prob(obs, actions)

    def value(self, obs: Tensor) -> Tensor:
        """V(s), [B]."""
        known = self.good is not None and obs is self.good.obs
        return self.values_good if known and self.values_good is not None else self.policy.value(obs)
