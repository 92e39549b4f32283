"""DQN; with an OptimisticRegularizer it is DQN+OPR."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from optimist.algorithms.base import Learner
from optimist.algorithms.flat_adam import FlatAdam
from optimist.algorithms.graphed import take_rate_along
from optimist.algorithms.graphed_replay import GraphedReplay
from optimist.algorithms.q_terms import QTerms
from optimist.algorithms.rmsprop import CenteredRMSprop
from optimist.algorithms.value_based_config import DQNConfig, RainbowConfig
from optimist.core.anchor import Anchor
from optimist.core.memory import GoodRows
from optimist.core.policy import Policy
from optimist.cuda.beside import Beside
from optimist.errors import NonFiniteLoss
from optimist.losses.policy import weighted_mean
from optimist.losses.q_learning import large_margin, td_gradients, td_losses, td_target
from optimist.networks.flat import flatten_parameters
from optimist.networks.q_gradient import MLPGradient
from optimist.networks.q_network import QNetwork
from optimist.replay.buffer import Replay, Transitions
from optimist.rollout.batch import Rollout

DRAWN_TOGETHER = 8
"""Minibatches that are drawn in one go from a replay in the computer's own memory."""


class DQN(Learner):
    """Deep Q-network (Mnih et al., 2015), with an optional anchor such as OPR."""

    policy: QNetwork

    def __init__(
        self,
        policy: QNetwork,
        config: DQNConfig | RainbowConfig,
        anchor: Anchor | None = None,
        *,
        seed: int = 0,
        frame_stack: int = 1,
        graphs: bool = False,
    ) -> None:
        """`graphs`: draw, learn and set priorities as CUDA graphs; the replay lies with the learner then."""
        super().__init__(policy, config, anchor, seed)
        self.config: DQNConfig | RainbowConfig = config
        device = self.flat.device
        self.generator = torch.Generator(device).manual_seed(seed)  # draws stay where the learner is
        self.target = copy.deepcopy(policy).requires_grad_(False)
        self.target_flat = flatten_parameters(self.target).requires_grad_(False)
        self.replay = self.make_replay(frame_stack, device if config.replay_device == "learner" else "cpu")
        self.optimizer = self._make_optimizer(graphs)
        self.graphed = GraphedReplay(self) if graphs else None
        forked = device if graphs else None
        self.bootstrapping, self.valuing = Beside(forked), Beside(forked)  # the three passes of a recorded step
        self.gradient = MLPGradient(policy) if MLPGradient.fits(policy) else None
        self.steps = self.gradient_steps = 0
        self.cloned: Policy = MarginPolicy(policy, config.cloning_margin) if config.cloning == "margin" else policy
        policy.epsilon = config.epsilon(0)

    def make_replay(self, frame_stack: int, device: torch.device | str) -> Replay:
        """What is learnt from."""
        cfg = self.config
        return Replay(cfg.replay_capacity, gamma=cfg.gamma, frame_stack=frame_stack, device=device)

    def update(self, rollout: Rollout) -> dict[str, float]:
        """Learn from replayed steps: memory → shaping → replay → targets → loss → step."""
        cfg = self.config
        self.set_progress(rollout.progress)

        self.anchor.observe(without_promises(rollout))  # E enters M if R(E) > τ
        rewards = self.anchor.shape(rollout, self.policy)  # [T, N]
        self.replay.add(rollout, rewards)
        self.count_steps(rewards.numel())

        terms: list[QTerms] = []
        if self.replay.num_written >= cfg.learning_starts and self.replay.num_ready:
            terms = self.gradient_phase()
            self.anchor.after_update(self.cloned, self.step_alone)  # e.g. a BC phase now and then
        return self.metrics(terms) | self.anchor.metrics()

    def set_progress(self, progress: float) -> None:
        """What changes over the run."""
        self.set_learning_rate(progress)

    def count_steps(self, number: int) -> None:
        """So many more environment steps: ε falls, and the target network may be due."""
        cfg, before = self.config, self.steps
        self.steps += number
        self.policy.epsilon = cfg.epsilon(self.steps)
        if cfg.target_unit == "steps" and self.steps // cfg.target_interval > before // cfg.target_interval:
            self.target_flat.data.copy_(self.flat.data)

    def gradient_phase(self) -> list[QTerms]:
        """The gradient steps of an update."""
        if self.graphed is None:
            return [self.learn(batch) for batch in self.minibatches()]
        terms = []
        for _ in range(self.config.gradient_steps):
            terms.append(self.graphed.take())
            self.count_gradient_step()
        return terms

    def draw(self) -> Transitions:
        """One minibatch, all replayed steps alike."""
        return self.replay.sample(self.config.minibatch_size, self.generator)

    def minibatches(self) -> Iterator[Transitions]:
        """One for each gradient step; where that is cheaper, several are drawn at once."""
        size, left = self.config.minibatch_size, self.config.gradient_steps
        while left:
            together = min(left, DRAWN_TOGETHER) if self.replay.device.type == "cpu" else 1
            yield from self.replay.sample(together * size, self.generator).split(size)
            left -= together

    def learn(self, batch: Transitions) -> QTerms:
        """One gradient step."""
        terms = self.improve(to_device(batch, self.flat.device))
        self.count_gradient_step()
        return terms

    def improve(self, batch: Transitions, good: GoodRows | None = None) -> QTerms:
        """One step down the gradient; what it does can be recorded, if the anchor need not draw rows itself."""
        if self.gradient is not None:
            terms = self.differentiated(batch, self.gradient, good)
            self.descend()
        else:
            terms = self.losses(batch, good)
            self.step(terms.total)
        return terms

    def count_gradient_step(self) -> None:
        """One more: the target network may be due."""
        self.gradient_steps += 1
        if self.config.target_unit == "gradient_steps" and self.gradient_steps % self.config.target_interval == 0:
            self.target_flat.data.copy_(self.flat.data)

    def losses(self, batch: Transitions, good: GoodRows | None = None) -> QTerms:
        """L_total = E[w L(y − Q(s, a))] + λ_BC L_BC, with y = R + γᵐ max Q_target(s′, ·)."""
        noise = self.policy.draw_noise(self.generator)
        targets = self.bootstrapping.begin(lambda: self.targets(batch))
        q = self.policy.forward(batch.obs, noise)
        values = q.gather(-1, batch.actions.unsqueeze(-1)).squeeze(-1)
        row_losses = td_losses(values, targets(), self.config.loss)
        return QTerms(
            td=weighted_mean(row_losses, batch.weights),
            anchor=self.anchor.loss(self.cloned, good),  # λ_BC included; rows of M are drawn there if none are given
            mean_q=values.detach().mean(),
            row_losses=row_losses.detach(),
        )

    def differentiated(self, batch: Transitions, gradient: MLPGradient, good: GoodRows | None = None) -> QTerms:
        """The same terms, with the gradient of their sum already in its place: no graph is made for the TD error."""
        cfg, index = self.config, batch.actions.unsqueeze(-1)
        with torch.no_grad():
            q = gradient.forward(batch.obs)
            values, targets = q.gather(-1, index).squeeze(-1), self.targets(batch)
            row_losses = td_losses(values, targets, cfg.loss)
            slopes = td_gradients(values, targets, cfg.loss).mul_(1.0 / len(values))
            if batch.weights is not None:
                slopes = slopes * batch.weights
            gradient.backward(torch.zeros_like(q).scatter_(-1, index, slopes.unsqueeze(-1)))
        anchor = self.anchor.loss(self.cloned, good)
        if anchor.requires_grad:
            torch.autograd.backward(anchor)  # on top of what is there
        return QTerms(
            td=weighted_mean(row_losses, batch.weights), anchor=anchor, mean_q=values.mean(), row_losses=row_losses
        )  # fmt: skip

    @torch.no_grad()
    def targets(self, batch: Transitions) -> Tensor:
        """y, [B]."""
        next_q = self.valuing.begin(
            lambda: self.target.q_values(batch.next_obs, self.target.draw_noise(self.generator))
        )
        chosen = self.chosen(batch.next_obs)
        return td_target(batch.returns, batch.discounts, next_q(), chosen)

    def chosen(self, next_obs: Tensor) -> Tensor | None:
        """The online network's next actions [B] if learning is double; else None: the target network's own."""
        if not self.config.double:
            return None
        return self.policy.q_values(next_obs, self.policy.draw_noise(self.generator)).argmax(-1)

    def metrics(self, terms: list[QTerms]) -> dict[str, float]:
        """Means over the gradient steps of an update, ε and the replay; one read from the device."""
        known = {
            "policy/epsilon": self.policy.epsilon,
            "replay/transitions": float(self.replay.num_transitions),
            "replay/bytes": float(self.replay.num_bytes),
        }
        if not terms:
            return known
        columns = {
            "loss/td": [term.td.detach() for term in terms],
            "loss/anchor": [term.anchor.detach() for term in terms],
            "q/mean": [term.mean_q for term in terms],
        }
        known |= means_of(columns)
        for name, value in known.items():
            if not math.isfinite(value):
                raise NonFiniteLoss(f"{name} became {value}; lower the learning rate, or look at the rewards")
        return known

    def forget_unfinished(self) -> None:
        """Episodes in play were cut off: their environments have been restarted."""
        super().forget_unfinished()
        self.replay.forget_unfinished()

    def state_dict(self) -> dict[str, Any]:
        """Weights, target, optimiser, generator, anchor, clocks and, if the config says so, the replay."""
        return super().state_dict() | {
            "target": self.target_flat.detach().clone(),
            "clocks": [self.steps, self.gradient_steps],
            "replay": self.replay.state_dict() if self.config.save_replay else None,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over the state of `state_dict`."""
        super().load_state_dict(state)
        self.target_flat.data.copy_(state["target"])
        self.steps, self.gradient_steps = state["clocks"]
        self.policy.epsilon = self.config.epsilon(self.steps)
        if state["replay"] is not None:
            self.replay.load_state_dict(state["replay"])
        if self.graphed is not None:
            take_rate_along(self)
            self.graphed.forget()

    def _make_optimizer(self, graphs: bool) -> torch.optim.Optimizer:
        cfg = self.config
        rate = torch.tensor(cfg.learning_rate, device=self.flat.device) if graphs else cfg.learning_rate
        if cfg.optimizer == "rmsprop":
            return CenteredRMSprop([self.flat], lr=rate, alpha=cfg.rmsprop_alpha, eps=cfg.rmsprop_eps)
        if graphs:  # counts its steps on the device
            return torch.optim.Adam(
                [self.flat], lr=rate, betas=cfg.adam_betas, eps=cfg.adam_eps, fused=True, capturable=True
            )
        return FlatAdam([self.flat], lr=cfg.learning_rate, betas=cfg.adam_betas, eps=cfg.adam_eps)


def without_promises(rollout: Rollout) -> Rollout:
    """The rollout with values behind time limits that are costs at most.

    Values learnt by a maximum are too high at first. As part of a good episode's return they would make it look better
    than V, cloning it would raise the values further, and so on.
    """
    values = rollout.bootstraps
    return rollout if values is None else replace(rollout, bootstraps=values.clamp_max(0.0))


def means_of(columns: dict[str, list[Tensor]]) -> dict[str, float]:
    """The mean of each column of scalars; from a device all of them are read at once."""
    scalars = [scalar for column in columns.values() for scalar in column]
    device = next((scalar.device for scalar in scalars if scalar.is_cuda), None)
    if device is None:
        numbers = iter([scalar.item() for scalar in scalars])
    else:
        numbers = iter(torch.stack([scalar.to(device) for scalar in scalars]).tolist())
    return {name: sum(next(numbers) for _ in column) / len(column) for name, column in columns.items()}


class MarginPolicy:
    """Q as an anchor sees it when cloning is a large margin: the margin's loss in the place of −log π."""

    def __init__(self, policy: QNetwork, margin: float) -> None:
        self.policy, self.margin = policy, margin

    def log_prob(self, obs: Tensor, actions: Tensor) -> Tensor:
        """Minus the large-margin loss, [B]."""
        return -large_margin(self.policy.q_values(obs), actions, self.margin)

    def value(self, obs: Tensor) -> Tensor:
        """V(s), [B]."""
        return self.policy.value(obs)


def to_device(batch: Transitions, device: torch.device) -> Transitions:
    """The batch on the learner's device; itself where it is there."""
    if batch.returns.device == device:
        return batch
    columns = {name: getattr(batch, name) for name in ("obs", "actions", "returns", "next_obs", "discounts", "weights")}
    moved = {name: column.to(device) for name, column in columns.items() if column is not None}
    return replace(batch, **moved)
