"""A value-based learner's gradient step as a CUDA graph: draw, targets, loss, backward, step and priorities at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from optimist.algorithms.graphed import moments_of, touched_by
from optimist.algorithms.q_terms import QTerms
from optimist.core.memory import GoodRows
from optimist.core.regularizer import OptimisticRegularizer
from optimist.cuda.graph import record

if TYPE_CHECKING:
    from optimist.algorithms.dqn import DQN


class GraphedReplay:
    """One graph with rows of M and one without, recorded when they are first needed, and anew when the replay changes.

    Only where rows of M lie is drawn outside, for their number is not known to a graph; they are read within.
    """

    def __init__(self, learner: DQN) -> None:
        self.learner = learner
        self.numbers = torch.zeros(3 + learner.config.minibatch_size, device=learner.flat.device)
        self.picks: tuple[Tensor, Tensor] | None = None  # rows of M and of their frames, where the graph reads them
        self.graphs: dict[bool, torch.cuda.CUDAGraph] = {}  # by whether rows of M are cloned
        self.layout: tuple[object, ...] = ()

    def take(self) -> QTerms:
        """One gradient step; its terms, in memory of their own."""
        clones = self._pick()
        if self.layout != self.learner.replay.layout:
            self.forget()
            self.layout = self.learner.replay.layout
        if clones not in self.graphs:
            self.graphs[clones] = self._record(clones)
        self.graphs[clones].replay()
        numbers = self.numbers.clone()
        return QTerms(td=numbers[0], anchor=numbers[1], mean_q=numbers[2], row_losses=numbers[3:])

    def forget(self) -> None:
        """What the graphs read lies elsewhere now: record anew."""
        self.graphs.clear()

    def _record(self, clones: bool) -> torch.cuda.CUDAGraph:
        learner = self.learner
        kept = [*moments_of(learner), *learner.replay.written, *touched_by(learner.anchor)]
        return record(lambda: self._work(clones), generators=[learner.generator], kept=kept)

    def _work(self, clones: bool) -> None:
        terms = self.learner.improve(self.learner.draw(), self._picked() if clones else None)
        zero = torch.zeros((), device=self.numbers.device)  # where there is no anchor its term lies on the CPU
        scalars = [zero + term.detach() for term in (terms.td, terms.anchor, terms.mean_q)]
        self.numbers.copy_(torch.cat([torch.stack(scalars), terms.row_losses]))

    def _pick(self) -> bool:
        """Draw where rows of M lie; whether there are any to clone."""
        anchor = self.learner.anchor
        if not isinstance(anchor, OptimisticRegularizer) or not anchor.has_rows_to_clone:
            return False
        rows, frames = anchor.memory.pick(anchor.config.bc_batch_size, anchor.generator)
        if self.picks is None:
            self.picks = rows.clone(), frames.clone()
        else:
            self.picks[0].copy_(rows)
            self.picks[1].copy_(frames)
        return True

    def _picked(self) -> GoodRows:
        anchor = self.learner.anchor
        assert isinstance(anchor, OptimisticRegularizer)
        assert self.picks is not None
        return anchor.memory.at(*self.picks)
