"""A learner's gradient step as CUDA graphs: forward, losses, backward, clipping and Adam in one launch."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from optimist.algorithms.base import Learner, LossTerms
from optimist.algorithms.rmsprop import CenteredRMSprop
from optimist.core.anchor import Anchor, NoAnchor
from optimist.core.batch import Batch
from optimist.core.regularizer import OptimisticRegularizer
from optimist.cuda.graph import record

if TYPE_CHECKING:
    from optimist.algorithms.ppo import PPO


MOST_SHAPES = 16
"""Shapes of minibatch that are recorded, each with memory of its own. Where dead steps fall out of a rollout, what
remains of a pass has another size each time."""


def can_record(anchor: Anchor) -> bool:
    """Whether the anchor's loss on given rows can be part of a graph: it draws nothing, and asks for no number."""
    return isinstance(anchor, NoAnchor | OptimisticRegularizer)


class GraphedSteps:
    """One graph for each of the first shapes of minibatch, recorded when they come along; others kernel by kernel."""

    def __init__(self, learner: PPO) -> None:
        self.learner = learner
        self.steps: dict[Any, _GraphedStep] = {}

    def take(self, minibatch: Batch) -> LossTerms:
        """The gradient step on this minibatch, and its loss terms."""
        key = (minibatch.num_fresh, *((name, tensor.shape) for name, tensor in _tensors(minibatch).items()))
        if key not in self.steps:
            if len(self.steps) >= MOST_SHAPES:
                return LossTerms(*_step_on(self.learner, minibatch).unbind())
            self.steps[key] = _GraphedStep(self.learner, minibatch)
        return self.steps[key].take(minibatch)

    def forget(self) -> None:
        """Weights or moments lie elsewhere now: record anew."""
        self.steps.clear()


class _GraphedStep:
    """The step for one shape, on rows of its own into which each minibatch is copied."""

    def __init__(self, learner: PPO, example: Batch) -> None:
        self.learner = learner
        self.rows = _copy_of(example)
        self.tensors = list(_tensors(self.rows).values())
        self.numbers = torch.zeros(len(fields(LossTerms)), device=learner.flat.device)
        self.graph = record(self._work, kept=[*moments_of(learner), *touched_by(learner.anchor)])

    def take(self, minibatch: Batch) -> LossTerms:
        torch._foreach_copy_(self.tensors, list(_tensors(minibatch).values()))
        self.graph.replay()
        return LossTerms(*self.numbers.clone().unbind())

    def _work(self) -> None:
        self.numbers.copy_(_step_on(self.learner, self.rows))


def _step_on(learner: PPO, rows: Batch) -> Tensor:
    """The gradient step kernel by kernel; its loss terms, side by side on the learner's device."""
    terms = learner.losses(rows)
    learner.step(terms.total)
    zero = torch.zeros((), device=learner.flat.device)  # where there is no anchor its term lies on the CPU
    return torch.stack([zero + getattr(terms, f.name).detach() for f in fields(LossTerms)])


def _tensors(batch: Batch) -> dict[str, Tensor]:
    """Every tensor of a minibatch, its rows of M included, by name."""
    own = {f.name: getattr(batch, f.name) for f in fields(batch)}
    good = {} if batch.good is None else {f"good.{f.name}": getattr(batch.good, f.name) for f in fields(batch.good)}
    return {name: value for name, value in (own | good).items() if isinstance(value, Tensor)}


def _copy_of(batch: Batch) -> Batch:
    own = {f.name: getattr(batch, f.name) for f in fields(batch)}
    copies: dict[str, Any] = {name: value.clone() for name, value in own.items() if isinstance(value, Tensor)}
    good = batch.good
    if good is not None:
        good = replace(good, **{f.name: getattr(good, f.name).clone() for f in fields(good)})
    return replace(batch, **copies, good=good, joiner=None)


def moments_of(learner: Learner) -> list[Tensor]:
    """Weights and the optimiser's moments, which have to be there before a step is recorded."""
    flat, state = learner.flat.data, learner.optimizer.state[learner.flat]
    if not state and isinstance(learner.optimizer, CenteredRMSprop):
        state.update(CenteredRMSprop.fresh_state(flat))
    elif not state:  # Adam's
        state["step"] = torch.zeros((), device=flat.device)
        state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(flat), torch.zeros_like(flat)
    return [flat, *state.values()]


def take_rate_along(learner: Learner) -> None:
    """After a load: the learning rate back to where recorded steps read it."""
    for group in learner.optimizer.param_groups:
        group["lr"] = group["lr"].to(learner.flat.device)


def touched_by(anchor: Anchor) -> list[Tensor]:
    """What the anchor's loss writes: the priorities of M."""
    if isinstance(anchor, OptimisticRegularizer) and "priorities" in anchor.memory.pools:
        return [anchor.memory.pools["priorities"]]
    return []
