"""Anchor, which a learner calls at each station, and NoAnchor, the plain learner's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import repeat
from typing import Any, NamedTuple

import torch
from torch import Tensor

from optimist.core.memory import GoodRows
from optimist.core.policy import Evaluator, Policy
from optimist.core.steps import Batch, Steps

OptimizerStep = Callable[[Tensor], None]
"""Takes one optimiser step on a loss."""


class Anchor:
    """Something that holds a policy to what it has seen: OPR, self-imitation, or nothing.

    A learner calls it at each station of its update. Here every station does nothing: rewards and batches pass through.
    An anchor overrides the stations at which it acts.
    """

    capturable = True
    """Whether `loss_on` can be part of a CUDA graph: it draws nothing and reads no number from the device."""

    def observe(self, steps: Steps) -> None:
        """Record the steps just executed."""

    def shape(self, steps: Steps, policy: Policy) -> Tensor:
        """Return the rewards to learn from, [T, N]."""
        return steps.rewards

    def replay(self, batch: Batch, policy: Policy) -> Batch | None:
        """Return rows of M for this update, from which rows join each minibatch of `batch`; None for none."""
        return None

    def join(self, minibatch: Batch, replayed: Batch) -> Batch:
        """Add a share of the replayed rows to a minibatch."""
        return minibatch

    def sample(self, sizes: Sequence[int], policy: Policy) -> Iterator[GoodRows | None]:
        """Yield rows of M for the loss of each minibatch of an update, or None where there is nothing to clone.

        `sizes`: rows of each minibatch. `policy` is that of the start of the update.
        """
        return repeat(None, len(sizes))

    def loss_on(self, good: GoodRows, logp: Tensor, values: Tensor) -> Tensor:
        """Return the loss on sampled rows, its coefficient included, given their log π_θ(a|s) and V(s)."""
        return torch.zeros(())

    def after_update(self, policy: Policy, step: OptimizerStep) -> None:
        """Do what is due between updates, such as a cloning phase."""

    def forget_unfinished(self) -> None:
        """Drop unfinished episodes: their environments have been reset."""

    def in_place_tensors(self) -> Sequence[Tensor]:
        """Return the tensors that `loss_on` writes in place: captured CUDA graphs hold their addresses."""
        return ()

    def metrics(self) -> dict[str, float]:
        """Return the metrics of the last update."""
        return {}

    def state_dict(self) -> dict[str, Any]:
        """Return everything that an exact resume needs."""
        return {}

    def load_state_dict(self, state: dict[str, Any], policy: Policy) -> None:
        """Restore `state_dict`."""


class NoAnchor(Anchor):
    """The plain learner's anchor: it does nothing at any station."""


class Evaluated(NamedTuple):
    """A policy's answer for a minibatch and for the rows of M that are cloned with it."""

    logp: Tensor  # [B]
    entropy: Tensor  # [B]
    values: Tensor  # [B]
    logp_good: Tensor | None = None  # [G]
    values_good: Tensor | None = None  # [G]

    def anchor_loss(self, anchor: Anchor, good: GoodRows | None) -> Tensor:
        """The anchor's loss on the sampled rows; zero without rows."""
        if good is None or self.logp_good is None or self.values_good is None:
            return torch.zeros(())
        return anchor.loss_on(good, self.logp_good, self.values_good)


def evaluate_together(policy: Evaluator, batch: Batch, good: GoodRows | None) -> Evaluated:
    """Evaluate a minibatch and rows of M in one forward pass."""
    if good is None:
        return Evaluated(*policy.evaluate(batch.obs, batch.actions))
    both, size = policy.evaluate(torch.cat([batch.obs, good.obs]), torch.cat([batch.actions, good.actions])), len(batch)
    logp, logp_good = torch.split(both[0], [size, len(good)])
    return Evaluated(logp, both[1][:size], both[2][:size], logp_good, both[2].detach()[size:])


def anchor_loss(anchor: Anchor, policy: Policy, good: GoodRows | None) -> Tensor:
    """Evaluate the policy on sampled rows and return the anchor's loss; zero without rows."""
    if good is None:
        return torch.zeros(())
    logp = policy.log_prob(good.obs, good.actions)
    with torch.no_grad():
        values = policy.value(good.obs)
    return anchor.loss_on(good, logp, values)
