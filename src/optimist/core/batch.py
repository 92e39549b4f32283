"""Batch: the rows a learner trains on; rows of M may join its minibatches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Protocol

import torch
from torch import Tensor

from optimist.core.memory import GoodRows
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
