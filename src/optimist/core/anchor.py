"""The protocol a host calls at each station (observe, shape, augment, loss, after_update), and NoAnchor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from optimist.core.batch import Batch
from optimist.core.episode import Steps
from optimist.core.memory import GoodRows
from optimist.core.policy import Policy

OptimizerStep = Callable[[Tensor], None]
"""Takes one optimiser step on a loss."""


@runtime_checkable
class Anchor(Protocol):
    """Something that holds a policy to what it has seen: OPR, self-imitation, or nothing."""

    def observe(self, steps: Steps) -> None:
        """Look at the steps just executed."""

    def shape(self, steps: Steps, policy: Policy) -> Tensor:
        """The rewards to learn from, [T, N]."""

    def augment(self, batch: Batch, policy: Policy) -> Batch:
        """The batch, ready to have good rows join its minibatches."""

    def loss(self, policy: Policy, good: GoodRows | None = None) -> Tensor:
        """What is added to the learner's loss, its coefficient included."""

    def after_update(self, policy: Policy, step: OptimizerStep) -> None:
        """Anything that happens between updates."""

    def forget_unfinished(self) -> None:
        """Episodes in play were cut off: their environments have been restarted."""

    def metrics(self) -> dict[str, float]:
        """What there is to log about the last update."""

    def state_dict(self) -> dict[str, Any]:
        """All that is needed to go on as if nothing had happened."""

    def load_state_dict(self, state: dict[str, Any], policy: Policy) -> None:
        """Take over the state of `state_dict`."""


class NoAnchor:
    """The plain learner: rewards and batches pass through, and the loss is zero."""

    def observe(self, steps: Steps) -> None:
        """Nothing."""

    def shape(self, steps: Steps, policy: Policy) -> Tensor:
        """The rewards as they are."""
        return steps.rewards

    def augment(self, batch: Batch, policy: Policy) -> Batch:
        """The batch as it is."""
        return batch

    def loss(self, policy: Policy, good: GoodRows | None = None) -> Tensor:
        """Zero."""
        return torch.zeros(())

    def after_update(self, policy: Policy, step: OptimizerStep) -> None:
        """Nothing."""

    def forget_unfinished(self) -> None:
        """Nothing."""

    def metrics(self) -> dict[str, float]:
        """None."""
        return {}

    def state_dict(self) -> dict[str, Any]:
        """Nothing to keep."""
        return {}

    def load_state_dict(self, state: dict[str, Any], policy: Policy) -> None:
        """Nothing to take over."""
