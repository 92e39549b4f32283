"""Learners whose gradient step is a captured CUDA graph: forward, losses, backward, clipping and optimiser at once.

The learners know nothing of this; each class here overrides the gradient step of one of them.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, TypeVar

import torch
from torch import Tensor

from optimist.algorithms.base import Learner, LossTerms, QTerms
from optimist.algorithms.dqn import DQN
from optimist.algorithms.optimizers import CenteredRMSprop
from optimist.algorithms.ppo import PPO
from optimist.algorithms.rainbow import Rainbow
from optimist.core.memory import GoodRows
from optimist.core.steps import Batch
from optimist.cuda.graph import SideStream, capture

MAX_SHAPES = 16
"""Minibatch shapes that are captured, each with memory of its own; rollouts with reset steps have many."""
Record = TypeVar("Record", Batch, GoodRows)


class CapturedPPO(PPO):
    """PPO with one captured graph for each of the first minibatch shapes; further shapes run eagerly."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.optimizer = capturable_adam(self)
        self.captured: dict[Any, _CapturedStep] = {}

    def learn(self, minibatch: Batch, good: GoodRows | None) -> LossTerms:
        """Take the gradient step by a graph for this shape."""
        key = (minibatch.num_fresh, *((name, tensor.shape) for name, tensor in _tensors(minibatch, good).items()))
        if key not in self.captured:
            if len(self.captured) >= MAX_SHAPES:
                return super().learn(minibatch, good)
            self.captured[key] = _CapturedStep(self, minibatch, good)
        return self.captured[key].replay(minibatch, good)

    def learn_eagerly(self, minibatch: Batch, good: GoodRows | None) -> Tensor:
        """Take the gradient step without a graph; its loss terms as one vector."""
        return _stacked(super().learn(minibatch, good), self.flat.device)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore `state_dict`; captured graphs hold the addresses of the old tensors and are dropped."""
        super().load_state_dict(state)
        keep_rate_on_device(self)
        self.captured.clear()


class _CapturedStep:
    """The captured step for one shape, on tensors of its own into which each minibatch is copied."""

    def __init__(self, learner: CapturedPPO, minibatch: Batch, good: GoodRows | None) -> None:
        self.minibatch = _copy_of(minibatch)
        self.good = None if good is None else _copy_of(good)
        self.tensors = list(_tensors(self.minibatch, self.good).values())
        self.terms = torch.zeros(len(fields(LossTerms)), device=learner.flat.device)
        self.graph = capture(
            lambda: _assign(self.terms, learner.learn_eagerly(self.minibatch, self.good)),
            restored=[*optimizer_tensors(learner), *learner.anchor.in_place_tensors()],
        )

    def replay(self, minibatch: Batch, good: GoodRows | None) -> LossTerms:
        torch._foreach_copy_(self.tensors, list(_tensors(minibatch, good).values()))
        self.graph.replay()
        return LossTerms(*self.terms.clone().unbind())


class CapturedDQN(DQN):
    """DQN whose gradient step is a captured graph: draw, targets, loss, backward, step and priorities.

    There is one graph with rows of M and one without, captured when first needed and again when the replay grows.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.streams = {name: SideStream(self.flat.device) for name in ("targets", "next values")}
        self.good: GoodRows | None = None  # rows of M at the addresses that the graph reads
        self.terms = torch.zeros(3 + self.config.minibatch_size, device=self.flat.device)
        self.captured: dict[bool, torch.cuda.CUDAGraph] = {}  # by whether rows of M are cloned
        self.layout: tuple[object, ...] = ()

    def make_optimizer(self) -> torch.optim.Optimizer:
        """Create an optimiser that can be captured."""
        cfg = self.config
        if cfg.optimizer == "rmsprop":
            rate: Any = torch.tensor(cfg.learning_rate, device=self.flat.device)
            return CenteredRMSprop([self.flat], lr=rate, alpha=cfg.rmsprop_alpha, eps=cfg.rmsprop_eps)
        return capturable_adam(self)

    def minibatches(self) -> Any:
        """Yield None for each gradient step: the graph draws its minibatch."""
        yield from [None] * self.config.gradient_steps

    def learn(self, batch: Any, good: GoodRows | None) -> QTerms:
        """Take one gradient step by a graph."""
        if self.layout != self.replay.layout:
            self.captured.clear()
            self.layout = self.replay.layout
        if good is not None:
            self._copy_good(good)
        clones = good is not None
        if clones not in self.captured:
            self.captured[clones] = capture(
                lambda: self._draw_and_learn(clones),
                generators=[self.generator],
                restored=[*optimizer_tensors(self), *self.replay.written, *self.anchor.in_place_tensors()],
            )
        self.captured[clones].replay()
        terms = self.terms.clone()
        return QTerms(td=terms[0], anchor=terms[1], mean_q=terms[2], row_losses=terms[3:])

    def start(self, name: str, work: Any) -> Any:
        """Run `work` on the side stream of this name."""
        return self.streams[name].start(work)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore `state_dict`; captured graphs hold the addresses of the old tensors and are dropped."""
        super().load_state_dict(state)
        keep_rate_on_device(self)
        self.captured.clear()

    def _draw_and_learn(self, clones: bool) -> None:
        terms = super().learn(self.draw(), self.good if clones else None)
        zero = torch.zeros((), device=self.terms.device)  # without rows of M the anchor's term is on the CPU
        scalars = [zero + term.detach() for term in (terms.td, terms.anchor, terms.mean_q)]
        self.terms.copy_(torch.cat([torch.stack(scalars), terms.row_losses]))

    def _copy_good(self, good: GoodRows) -> None:
        if self.good is None:
            self.good = _copy_of(good)
        else:
            names = [name for name, column in vars(good).items() if column is not None]
            torch._foreach_copy_([getattr(self.good, n) for n in names], [getattr(good, n) for n in names])


class CapturedRainbow(CapturedDQN, Rainbow):
    """Rainbow whose gradient step is a captured graph."""


def capturable_adam(learner: Learner) -> torch.optim.Adam:
    """Adam whose step count and learning rate are on the device."""
    config = learner.config
    rate = torch.tensor(config.learning_rate, device=learner.flat.device)
    return torch.optim.Adam(
        [learner.flat], lr=rate, betas=config.adam_betas, eps=config.adam_eps, fused=True, capturable=True
    )


def optimizer_tensors(learner: Learner) -> list[Tensor]:
    """Weights and the optimiser's moments, which must exist before a step is captured."""
    flat, state = learner.flat.data, learner.optimizer.state[learner.flat]
    if not state and isinstance(learner.optimizer, CenteredRMSprop):
        state.update(CenteredRMSprop.fresh_state(flat))
    elif not state:  # Adam's
        state["step"] = torch.zeros((), device=flat.device)
        state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(flat), torch.zeros_like(flat)
    return [flat, *state.values()]


def keep_rate_on_device(learner: Learner) -> None:
    """Move the learning rate, which loading puts on the CPU, back to the device."""
    for group in learner.optimizer.param_groups:
        group["lr"] = group["lr"].to(learner.flat.device)


def _tensors(minibatch: Batch, good: GoodRows | None) -> dict[str, Tensor]:
    """Every tensor of a minibatch and of its rows of M, by name."""
    own = {f.name: getattr(minibatch, f.name) for f in fields(minibatch)}
    cloned = {} if good is None else {f"good.{f.name}": getattr(good, f.name) for f in fields(good)}
    return {name: value for name, value in (own | cloned).items() if isinstance(value, Tensor)}


def _copy_of(record: Record) -> Record:
    values = {f.name: getattr(record, f.name) for f in fields(record)}
    copies: dict[str, Any] = {name: value.clone() for name, value in values.items() if isinstance(value, Tensor)}
    return replace(record, **copies)


def _stacked(terms: LossTerms, device: torch.device) -> Tensor:
    zero = torch.zeros((), device=device)  # without rows of M the anchor's term is on the CPU
    return torch.stack([zero + getattr(terms, f.name).detach() for f in fields(LossTerms)])


def _assign(target: Tensor, values: Tensor) -> None:
    target.copy_(values)
