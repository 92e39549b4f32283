"""AnchorChain: several anchors on one learner, such as OPR and self-imitation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from torch import Tensor

from optimist.core.anchor import Anchor, OptimizerStep
from optimist.core.memory import GoodRows
from optimist.core.policy import Policy
from optimist.core.steps import Batch, Steps
from optimist.errors import ConfigError

T = TypeVar("T")


class AnchorChain(Anchor):
    """Several anchors as one. Rewards pass through them in order, and all observe the same steps.

    One anchor of a chain may sample rows for the minibatches.
    """

    def __init__(self, anchors: Mapping[str, Anchor]) -> None:
        self.anchors = dict(anchors)
        self.capturable = all(anchor.capturable for anchor in self.anchors.values())
        self._sampler: Anchor | None = None  # the anchor whose rows were sampled last
        self._replayer: Anchor | None = None  # the anchor whose rows are replayed in this update

    def observe(self, steps: Steps) -> None:
        """Record the steps with every anchor."""
        for anchor in self.anchors.values():
            anchor.observe(steps)

    def shape(self, steps: Steps, policy: Policy) -> Tensor:
        """Shape the rewards by one anchor after the other."""
        for anchor in self.anchors.values():
            steps = replace(steps, rewards=anchor.shape(steps, policy))
        return steps.rewards

    def replay(self, batch: Batch, policy: Policy) -> Batch | None:
        """The replayed rows of the one anchor that has some."""
        found = {name: anchor.replay(batch, policy) for name, anchor in self.anchors.items()}
        name, rows = _only_one("replay rows", found)
        self._replayer = self.anchors[name] if name else None
        return rows

    def join(self, minibatch: Batch, replayed: Batch) -> Batch:
        """Add replayed rows by the anchor that gave them."""
        assert self._replayer is not None
        return self._replayer.join(minibatch, replayed)

    def sample(self, sizes: Sequence[int], policy: Policy) -> Iterator[GoodRows | None]:
        """The rows of the one anchor that samples some."""
        drawn = [anchor.sample(sizes, policy) for anchor in self.anchors.values()]
        for together in zip(*drawn, strict=True):
            name, rows = _only_one("sample rows", dict(zip(self.anchors, together, strict=True)))
            self._sampler = self.anchors[name] if name else None
            yield rows

    def loss_on(self, good: GoodRows, logp: Tensor, values: Tensor) -> Tensor:
        """The loss of the anchor that sampled the rows."""
        assert self._sampler is not None
        return self._sampler.loss_on(good, logp, values)

    def after_update(self, policy: Policy, step: OptimizerStep) -> None:
        """Do what is due, one anchor after the other."""
        for anchor in self.anchors.values():
            anchor.after_update(policy, step)

    def forget_unfinished(self) -> None:
        """Drop the unfinished episodes of every anchor."""
        for anchor in self.anchors.values():
            anchor.forget_unfinished()

    def in_place_tensors(self) -> Sequence[Tensor]:
        """The tensors that the anchors' losses write in place."""
        return [tensor for anchor in self.anchors.values() for tensor in anchor.in_place_tensors()]

    def metrics(self) -> dict[str, float]:
        """Metrics of every anchor."""
        return {name: value for anchor in self.anchors.values() for name, value in anchor.metrics().items()}

    def state_dict(self) -> dict[str, Any]:
        """The state of each anchor, by name."""
        return {name: anchor.state_dict() for name, anchor in self.anchors.items()}

    def load_state_dict(self, state: dict[str, Any], policy: Policy) -> None:
        """Restore `state_dict`."""
        for name, anchor in self.anchors.items():
            anchor.load_state_dict(state[name], policy)


def _only_one(verb: str, found: Mapping[str, T | None]) -> tuple[str, T | None]:
    """The one entry that is not None and its name; raise if there are two."""
    names = [name for name, rows in found.items() if rows is not None]
    if len(names) > 1:
        raise ConfigError(f"{names[0]} and {names[1]} both {verb}; one anchor of a chain may")
    return (names[0], found[names[0]]) if names else ("", None)
