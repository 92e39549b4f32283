"""AnchorChain: several anchors on one learner, such as OPR and self-imitation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from torch import Tensor

from optimist.core.anchor import Anchor, OptimizerStep
from optimist.core.batch import Batch
from optimist.core.episode import Steps
from optimist.core.memory import GoodRows
from optimist.core.policy import Policy
from optimist.errors import ConfigError


class AnchorChain:
    """Each station passes through the anchors in their order; losses add up.

    Rewards shaped by one anchor are what the next one shapes. What an anchor remembers is what was executed: all of
    them observe the same steps. One anchor of a chain may have rows of its memory join the minibatches.
    """

    def __init__(self, anchors: Mapping[str, Anchor]) -> None:
        self.anchors = dict(anchors)
        if len(self.anchors) < 2:
            raise ConfigError(f"a chain needs at least two anchors, got {list(self.anchors)}")

    def observe(self, steps: Steps) -> None:
        """All look at the same steps."""
        for anchor in self.anchors.values():
            anchor.observe(steps)

    def shape(self, steps: Steps, policy: Policy) -> Tensor:
        """The rewards, shaped by one after the other."""
        for anchor in self.anchors.values():
            steps = replace(steps, rewards=anchor.shape(steps, policy))
        return steps.rewards

    def augment(self, batch: Batch, policy: Policy) -> Batch:
        """The batch, with the rows that one of the anchors has join it."""
        joining = None
        for name, anchor in self.anchors.items():
            augmented = anchor.augment(batch, policy)
            if augmented.joiner is not batch.joiner and joining is not None:
                raise ConfigError(f"{joining} and {name} both have rows join the minibatches; a chain takes one")
            joining = name if augmented.joiner is not batch.joiner else joining
            batch = augmented
        return batch

    def loss(self, policy: Policy, good: GoodRows | None = None) -> Tensor:
        """The sum of their losses."""
        first, *others = (anchor.loss(policy, good) for anchor in self.anchors.values())
        return sum(others, first)

    def after_update(self, policy: Policy, step: OptimizerStep) -> None:
        """One after the other."""
        for anchor in self.anchors.values():
            anchor.after_update(policy, step)

    def forget_unfinished(self) -> None:
        """All of them."""
        for anchor in self.anchors.values():
            anchor.forget_unfinished()

    def metrics(self) -> dict[str, float]:
        """Of all of them."""
        return {name: value for anchor in self.anchors.values() for name, value in anchor.metrics().items()}

    def state_dict(self) -> dict[str, Any]:
        """Of each, by name."""
        return {name: anchor.state_dict() for name, anchor in self.anchors.items()}

    def load_state_dict(self, state: dict[str, Any], policy: Policy) -> None:
        """Take over the state of `state_dict`."""
        for name, anchor in self.anchors.items():
            anchor.load_state_dict(state[name], policy)
